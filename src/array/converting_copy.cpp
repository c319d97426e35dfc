#include "array/converting_copy.hpp"

#include "array/operation.hpp"

namespace weir {

namespace {

/// Number of elements converted at a time: they stay in the first-level cache.
constexpr std::int64_t most = 256;

walk::plan plan_of(const array& to, const array& from) {
    const walk::operand operands[] = {operation::operand_of(to), operation::operand_of(from)};
    return {to.shape().extents(), operands};
}

}  // namespace

converting_copy::converting_copy(const array& to, const array& from)
    : converting_copy(plan_of(to, from), to.dtype(), from.dtype()) {}

void converting_copy::operator()() const {
    const std::size_t to = size_of(to_);
    if (to_ == from_) {
        walk::copy_elements(both_, to);
        return;
    }
    both_.for_each_chunk(most, [&](const walk::plan::pointers& at, std::int64_t rows, std::int64_t columns) {
        const walk::grid target{at[0], both_.row_stride(0), both_.column_stride(0)};
        const walk::grid source{at[1], both_.row_stride(1), both_.column_stride(1)};
        alignas(64) std::byte gathered[most * 16];
        alignas(64) std::byte converted[most * 16];
        const std::byte* const in = walk::gather(source, rows, columns, size_of(from_), gathered);
        const bool direct = walk::is_packed(target, rows, columns, to);
        convert_(in, direct ? target.first : converted, static_cast<std::size_t>(rows * columns));
        if (!direct) {
            walk::copy_grid(target, walk::packed(converted, columns, to), rows, columns, to);
        }
    });
}

}  // namespace weir
