// Labels, in reports and timelines, of operations that Python programs enqueue.
#pragma once

#include "weir/arithmetic.hpp"
#include "weir/launch.hpp"
#include "weir/reduction.hpp"

namespace weir::python {

/// Where an operation goes, with its label.
[[nodiscard]] inline on called(binary_operation what, on where) {
    switch (what) {
        case binary_operation::add:
            return where.label("add");
        case binary_operation::subtract:
            return where.label("subtract");
        case binary_operation::multiply:
            return where.label("multiply");
        case binary_operation::divide:
            return where.label("divide");
        case binary_operation::power:
            return where.label("power");
        case binary_operation::equal:
            return where.label("equal");
        case binary_operation::not_equal:
            return where.label("not_equal");
        case binary_operation::less:
            return where.label("less");
        case binary_operation::less_equal:
            return where.label("less_equal");
        case binary_operation::greater:
            return where.label("greater");
        case binary_operation::greater_equal:
            return where.label("greater_equal");
        case binary_operation::bitwise_and:
            return where.label("bitwise_and");
        case binary_operation::bitwise_or:
            return where.label("bitwise_or");
        case binary_operation::bitwise_xor:
            return where.label("bitwise_xor");
    }
    return where;
}
[[nodiscard]] inline on called(unary_operation what, on where) {
    return what == unary_operation::negative ? where.label("negative") : where.label("invert");
}
[[nodiscard]] inline on called(reduction what, on where) {
    switch (what) {
        case reduction::sum:
            return where.label("sum");
        case reduction::min:
            return where.label("min");
        case reduction::max:
            return where.label("max");
        case reduction::mean:
            return where.label("mean");
    }
    return where;
}

}  // namespace weir::python
