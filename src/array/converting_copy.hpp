#pragma once

#include <cstddef>

#include "array/convert.hpp"
#include "array/cuda/launch.hpp"
#include "array/walk.hpp"
#include "weir/array.hpp"

namespace weir {

/// Work that copies operand 1 of a plan to operand 0, converting elements on the way; the two must not overlap.
class converting_copy {
public:
    converting_copy(walk::plan both, dtype to, dtype from)
        : both_(std::move(both)), convert_(convert::between(from, to)), to_(to), from_(from) {}
    /// For arrays of the same shape.
    converting_copy(const array& to, const array& from);

    void operator()() const;
    /// The same with a kernel.
    void add_to(array_kernels::launches& some) const { some.add_copy(both_, to_, from_); }

private:
    walk::plan both_;
    convert::function convert_;
    dtype to_;
    dtype from_;
};

}  // namespace weir
