#pragma once

#include <cstddef>

#include "array/convert.hpp"
#include "array/walk.hpp"
#include "weir/array.hpp"

namespace weir {

/// Work that copies operand 1 of a plan to operand 0, converting elements on the way; the two must not overlap.
class converting_copy {
public:
    converting_copy(walk::plan both, dtype to, dtype from)
        : both_(std::move(both)),
          convert_(convert::between(from, to)),
          to_(size_of(to)),
          from_(size_of(from)),
          same_(from == to) {}
    /// Of arrays with the same shape.
    converting_copy(const array& to, const array& from);

    void operator()() const;

private:
    walk::plan both_;
    convert::function convert_;
    std::size_t to_;
    std::size_t from_;
    bool same_;
};

}  // namespace weir
