#include "array/cuda/call.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "weir/shape.hpp"

namespace weir::array_kernels {

namespace {

bool is_packed(const walk::plan& all, const description& what) noexcept {
    if (all.dimensions() > 1) {
        return false;
    }
    for (std::size_t k = 0; k < what.operands; ++k) {
        const auto item = static_cast<std::int64_t>(size_of(what.stored[k]));
        if (!what.by_value[k] && all.elements() > 1 && all.column_stride(k) != item) {
            return false;
        }
    }
    return true;
}

}  // namespace

call call_of(function what, const argument& result, std::span<const argument> inputs, const walk::plan& all,
             std::array<std::uint64_t, 2> extra) {
    call made;
    description& kernel = made.kernel;
    kernel.what = what;
    kernel.operands = static_cast<std::uint8_t>(1 + inputs.size());
    kernel.stored[0] = result.stored;
    kernel.computed[0] = result.computed;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        kernel.by_value[i + 1] = inputs[i].number != nullptr;
        kernel.computed[i + 1] = inputs[i].computed;
        kernel.stored[i + 1] = inputs[i].number != nullptr ? inputs[i].computed : inputs[i].stored;
    }
    kernel.packed = is_packed(all, kernel);
    kernel.rank = rank_for(all.dimensions());
    const auto elements = static_cast<std::uint64_t>(all.elements());
    kernel.wide = elements > INT32_MAX;

    constexpr std::size_t most_words =
        3 + 2 * description::most_operands + shape::most * (1 + description::most_operands);
    std::array<std::uint64_t, most_words> words;  // only the words in use are initialized
    std::uint64_t* next = words.data();
    const auto put = [&](std::uint64_t one) { *next++ = one; };
    put(elements);
    put(extra[0]);
    put(extra[1]);
    for (std::size_t k = 0; k < kernel.operands; ++k) {
        std::array<std::uint64_t, 2> value{};
        if (kernel.by_value[k]) {
            std::memcpy(value.data(), inputs[k - 1].number, size_of(kernel.computed[k]));
        } else {
            value[0] = word(all.first(k));
        }
        put(value[0]);
        put(value[1]);
    }
    const std::size_t missing = kernel.rank - all.dimensions();
    for (std::size_t d = 0; d < missing; ++d) {
        put(1);
    }
    for (std::size_t d = 0; d < all.dimensions(); ++d) {
        put(word(all.extent(d)));
    }
    for (std::size_t i = 0; i < missing * kernel.operands; ++i) {
        put(0);
    }
    for (std::size_t d = 0; d < all.dimensions(); ++d) {
        for (std::size_t k = 0; k < kernel.operands; ++k) {
            put(word(all.stride(d, k)));
        }
    }
    made.words.append(words.data(), next);
    return made;
}

}  // namespace weir::array_kernels
