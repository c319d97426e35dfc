// The loops for each pair of element types: the only source file that is compiled for all pairs.
#include "array/convert.hpp"

#include <array>
#include <cstring>

namespace weir::convert {

namespace {

template <class From, class To>
void loop(const std::byte* from, std::byte* to, std::size_t count) noexcept {
    const auto* const source = reinterpret_cast<const From*>(from);
    auto* const target = reinterpret_cast<To*>(to);
    for (std::size_t i = 0; i < count; ++i) {
        target[i] = element<To>(source[i]);
    }
}

}  // namespace

function between(dtype from, dtype to) noexcept {
    return detail::visit(from, [&]<class From>(std::type_identity<From>) {
        return detail::visit(to, []<class To>(std::type_identity<To>) -> function { return loop<From, To>; });
    });
}

}  // namespace weir::convert
