// Elements with gaps between them, for code that runs in a stream. Layer: array.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace weir {

/// A window onto the elements of an array of `Rank` dimensions with any strides: `x(i, j)` is an element. Trivially
/// copyable; neither checks indices nor owns anything.
template <class T, std::size_t Rank>
class strided_span {
public:
    /// One number for each dimension.
    using extents_type = std::array<std::int64_t, Rank>;

    /// `first` is the element with all indices 0; extents and strides count elements.
    constexpr strided_span(T* first, const extents_type& extents, const extents_type& strides) noexcept
        : first_(first), extents_(extents), strides_(strides) {}

    /// The same elements, for reading only.
    template <class U>
        requires(std::is_const_v<T>&& std::same_as<U, std::remove_const_t<T>>)
    // NOLINTNEXTLINE(google-explicit-constructor): as std::span does
    constexpr strided_span(const strided_span<U, Rank>& other) noexcept
        : strided_span(other.data(), other.extents(), other.strides()) {}

    /// The element at these indices, which are not checked.
    template <std::integral... Index>
    [[nodiscard]] constexpr T& operator()(Index... index) const noexcept {
        static_assert(sizeof...(Index) == Rank, "one index for each dimension");
        std::int64_t at = 0;
        std::size_t axis = 0;
        ((at += static_cast<std::int64_t>(index) * strides_[axis++]), ...);
        return first_[at];
    }

    /// The element with all indices 0.
    [[nodiscard]] constexpr T* data() const noexcept { return first_; }
    /// The number of indices of each dimension.
    [[nodiscard]] constexpr const extents_type& extents() const noexcept { return extents_; }
    /// Elements, not bytes, from one index to the next, for each dimension.
    [[nodiscard]] constexpr const extents_type& strides() const noexcept { return strides_; }
    /// The number of indices of one dimension.
    [[nodiscard]] constexpr std::int64_t extent(std::size_t axis) const noexcept { return extents_[axis]; }
    /// Elements, not bytes, from one index to the next.
    [[nodiscard]] constexpr std::int64_t stride(std::size_t axis) const noexcept { return strides_[axis]; }

private:
    T* first_;
    extents_type extents_;
    extents_type strides_;
};

}  // namespace weir
