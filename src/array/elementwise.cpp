#include "array/elementwise.hpp"

#include <algorithm>
#include <string>

#include "array/cuda/source.hpp"
#include "array/loops.hpp"
#include "array/promotion.hpp"
#include "array/visit.hpp"
#include "weir/error.hpp"
#include "weir/operands.hpp"

namespace weir {

namespace {

const char* name_of_operation(binary_operation what) noexcept {
    static constexpr std::array names = {"add",           "subtract",    "multiply",   "divide",     "power",
                                         "equal",         "not_equal",   "less",       "less_equal", "greater",
                                         "greater_equal", "bitwise_and", "bitwise_or", "bitwise_xor"};
    return names[static_cast<std::size_t>(what)];
}

const shape& shape_of(const operand& one) {
    static const shape of_numbers;
    return one.is_array() ? one.of_array().shape() : of_numbers;
}

[[noreturn]] void refuse(const char* name, dtype type) {
    throw argument_type_error(std::string(name) + " is not for elements of " + std::string(name_of(type)) +
                              ": convert them with astype(on, x, dtype)");
}

/// The loop for two operands, and the types in which it takes them.
struct chosen {
    binary_operation what;
    loops::binary_loop loop;
    bool swapped = false;           ///< the loop takes the second operand first
    dtype common = dtype::float64;  ///< the type that numbers are rounded to; unused where the loop takes two types
};

/// In a comparison, a number may not fit the array's integer type: it then has the type that it would have alone.
dtype compared_as(const operand& one, const operand& other) {
    if (one.is_array()) {
        return one.of_array().dtype();
    }
    if (other.is_array() && one.number().kind() == dtype_kind::signed_integer) {
        const bool large = std::holds_alternative<std::uint64_t>(one.number().value());
        return large && *std::get_if<std::uint64_t>(&one.number().value()) > INT64_MAX ? dtype::uint64 : dtype::int64;
    }
    return promotion::alone(one.number());
}

binary_operation mirrored(binary_operation what) noexcept {
    switch (what) {
        case binary_operation::less:
            return binary_operation::greater;
        case binary_operation::less_equal:
            return binary_operation::greater_equal;
        case binary_operation::greater:
            return binary_operation::less;
        case binary_operation::greater_equal:
            return binary_operation::less_equal;
        default:
            return what;
    }
}

bool fits(const operand& one, dtype type) {
    if (!one.is_array()) {
        try {
            one.number().expect_fits(type);
        } catch (const argument_error&) {
            return false;
        }
    }
    return true;
}

/// Throws argument_type_error for an array of a type without arithmetic.
void expect_numbers(const operand& one, const char* name) {
    if (one.is_array()) {
        detail::expect_arithmetic(one.of_array().dtype(), name);
    }
}

chosen choose(binary_operation what, const operand& a, const operand& b) {
    expect_numbers(a, name_of_operation(what));
    expect_numbers(b, name_of_operation(what));
    dtype common = dtype::bool_;
    if (loops::is_comparison(what)) {
        // Integers are compared by their values, whatever the promotion of their types.
        const dtype left = compared_as(a, b);
        const dtype right = compared_as(b, a);
        const bool integers =
            kind_of(left) <= dtype_kind::signed_integer && kind_of(right) <= dtype_kind::signed_integer;
        if (integers && left == dtype::uint64 && kind_of(right) == dtype_kind::signed_integer) {
            return {what, loops::find_mixed(what), false, dtype::bool_};
        }
        if (integers && right == dtype::uint64 && kind_of(left) == dtype_kind::signed_integer) {
            return {what, loops::find_mixed(mirrored(what)), true, dtype::bool_};
        }
        common = promotion::common(a, b);
        if (!fits(a, common) || !fits(b, common)) {
            common = promote_types(left, right);
        }
        return {what, loops::find(what, common), false, common};
    }
    common = promotion::common(a, b);
    const loops::binary_loop found = loops::find(what, common);
    if (found.run == nullptr) {
        refuse(name_of_operation(what), common);
    }
    for (const operand* const one : {&a, &b}) {
        // Throws for a number that does not fit the array's type.
        if (!one->is_array()) {
            one->number().expect_fits(found.result);
        }
    }
    if (what == binary_operation::power && !b.is_array() && is_integer(found.a)) {
        if (const auto* const exponent = std::get_if<std::int64_t>(&b.number().value()); exponent && *exponent < 0) {
            throw argument_error("integers to the power of " + b.number().to_string() +
                                 ": convert them to a floating-point type first");
        }
    }
    return {what, found, false, found.result};
}

/// Throws unless results of `result` with the shape `of` can be written to `out`.
void expect_takes(const on& where, const array& out, const shape& of, dtype result, const char* name) {
    detail::expect_arithmetic(out.dtype(), name);
    operation::expect_on_device_of(where, out);
    detail::expect_own_elements(out);
    if (of != out.shape() && broadcast_shapes(of, out.shape()) != out.shape()) {
        throw argument_error(std::string(name) + ": the results have the shape " + of.to_string() +
                             ", the array for them " + out.shape().to_string());
    }
    if (kind_of(result) > kind_of(out.dtype())) {
        throw argument_type_error(std::string(name) + ": the results are " + std::string(name_of(result)) +
                                  ", the array for them holds " + std::string(name_of(out.dtype())) +
                                  ": compute into a new array, or convert with astype(on, x, dtype)");
    }
}

struct binary_body {
    loops::binary run;
    bool swapped;
    binary_operation what;
    [[nodiscard]] array_kernels::function same_as() const noexcept { return array_kernels::of(what); }
    void operator()(const std::array<const std::byte*, 2>& in, std::byte* out, std::size_t count) const {
        run(in[swapped ? 1 : 0], in[swapped ? 0 : 1], out, count);
    }
};

completion run(const on& where, const chosen& how, const operand& a, const operand& b, const array& out) {
    using work = elementwise<2, binary_body>;
    const dtype left = how.swapped ? how.loop.b : how.loop.a;
    const dtype right = how.swapped ? how.loop.a : how.loop.b;
    // The type in which the loop computes: for short floating-point numbers wider than its result.
    const dtype computed = loops::computed_in(how.loop.result);
    const bool two = how.loop.a != how.loop.b;
    return work::enqueue(where, out, computed,
                         {{{&a, left, two ? left : how.common}, {&b, right, two ? right : how.common}}},
                         {how.loop.run, how.swapped, how.what});
}

struct unary_body {
    loops::unary run;
    array_kernels::function what;
    [[nodiscard]] array_kernels::function same_as() const noexcept { return what; }
    void operator()(const std::array<const std::byte*, 1>& in, std::byte* out, std::size_t count) const {
        run(in[0], out, count);
    }
};

loops::unary_loop choose(unary_operation what, const array& x) {
    detail::expect_arithmetic(x.dtype(), what == unary_operation::negative ? "negative" : "invert");
    const loops::unary_loop found = loops::find(what, x.dtype());
    if (found.run == nullptr) {
        refuse(what == unary_operation::negative ? "negative" : "invert", x.dtype());
    }
    return found;
}

completion run(const on& where, unary_operation what, const loops::unary_loop& how, const array& x, const array& out) {
    const operand in(x, where.site(detail::key).where);
    const auto same =
        what == unary_operation::negative ? array_kernels::function::negative : array_kernels::function::invert;
    return elementwise<1, unary_body>::enqueue(where, out, how.in, {{{&in, how.in, how.in}}}, {how.run, same});
}

/// Results that are elements of the operands, moved as bytes of their size.
template <class Bytes>
void pick(const std::array<const std::byte*, 3>& in, std::byte* out, std::size_t count) {
    const auto* const condition = reinterpret_cast<const bool*>(in[0]);
    const auto* const x = reinterpret_cast<const Bytes*>(in[1]);
    const auto* const y = reinterpret_cast<const Bytes*>(in[2]);
    auto* const z = reinterpret_cast<Bytes*>(out);
    for (std::size_t i = 0; i < count; ++i) {
        z[i] = condition[i] ? x[i] : y[i];
    }
}

}  // namespace

array compute(const on& where, binary_operation what, const operand& a, const operand& b) {
    const chosen how = choose(what, a, b);
    const shape extents = broadcast_shapes(shape_of(a), shape_of(b));
    array out = empty(extents, how.loop.result, where.stream(), where.site(detail::key).where);
    run(where, how, a, b, out);
    return out;
}

completion compute(const on& where, binary_operation what, const operand& a, const operand& b, array& out) {
    const chosen how = choose(what, a, b);
    expect_takes(where, out, broadcast_shapes(shape_of(a), shape_of(b)), how.loop.result, name_of_operation(what));
    return run(where, how, a, b, out);
}

array compute(const on& where, unary_operation what, const array& x) {
    const loops::unary_loop how = choose(what, x);
    array out = empty(x.shape(), how.result, where.stream(), where.site(detail::key).where);
    run(where, what, how, x, out);
    return out;
}

completion compute(const on& where, unary_operation what, const array& x, array& out) {
    const loops::unary_loop how = choose(what, x);
    expect_takes(where, out, x.shape(), how.result, what == unary_operation::negative ? "negative" : "invert");
    return run(where, what, how, x, out);
}

array select(const on& where, const array& condition, const operand& x, const operand& y) {
    detail::expect_arithmetic(condition.dtype(), "select");
    expect_numbers(x, "select");
    expect_numbers(y, "select");
    const dtype type = promotion::common(x, y);
    for (const operand* const one : {&x, &y}) {
        if (!one->is_array()) {
            one->number().expect_fits(type);
        }
    }
    const shape extents = broadcast_shapes(condition.shape(), broadcast_shapes(shape_of(x), shape_of(y)));
    array out = empty(extents, type, where.stream(), where.site(detail::key).where);
    const auto body = detail::visit(
        type, []<class T>(std::type_identity<T>) { return element_body<3>(pick<T>, array_kernels::function::select); });
    const operand of(condition, where.site(detail::key).where);
    elementwise<3, element_body<3>>::enqueue(
        where, out, type, {{{&of, dtype::bool_, dtype::bool_}, {&x, type, type}, {&y, type, type}}}, body);
    return out;
}

}  // namespace weir
