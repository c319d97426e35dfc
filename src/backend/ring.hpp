#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace weir::backend {

/// A first-in-first-out list whose elements are numbered in the order of arrival, and can be accessed by number.
/// Allocates only when it grows.
template <class T>
    requires std::is_nothrow_move_assignable_v<T>
class ring {
public:
    /// The numbers of the oldest element and of the one that comes next.
    [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
    [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
    [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(end_ - first_); }
    [[nodiscard]] bool empty() const noexcept { return first_ == end_; }
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] bool has_room_for(std::size_t more) const noexcept { return size() + more <= capacity_; }

    [[nodiscard]] T& operator[](std::uint64_t number) noexcept { return elements_[number & (capacity_ - 1)]; }
    [[nodiscard]] const T& operator[](std::uint64_t number) const noexcept {
        return elements_[number & (capacity_ - 1)];
    }

    /// Where the next element will be, unless the ring grows; null if it has no room yet.
    [[nodiscard]] const T* next_place() const noexcept { return elements_.get() + (end_ & (capacity_ - 1)); }

    /// Sets the capacity to the next power of two that holds `wanted` elements, and those present. Throws std::bad_alloc;
    /// nothing has changed then.
    void resize(std::size_t wanted) {
        const std::size_t capacity = std::bit_ceil(std::max({wanted, size(), std::size_t{8}}));
        if (capacity == capacity_) {
            return;
        }
        auto moved = std::make_unique<T[]>(capacity);
        for (std::uint64_t i = first_; i != end_; ++i) {
            moved[i & (capacity - 1)] = std::move((*this)[i]);
        }
        elements_ = std::move(moved);
        capacity_ = capacity;
    }

    /// Adds an element and returns its slot, which holds the value of a former element, to be assigned to. There must be room.
    [[nodiscard]] T& push() noexcept { return (*this)[end_++]; }
    /// Adds all elements before `number`, for which there is room: their slots were written to by their numbers.
    void push_until(std::uint64_t number) noexcept { end_ = number; }
    /// Drops all elements before `number`. Their values are released only when their slots are used again.
    void drop_before(std::uint64_t number) noexcept { first_ = number; }

private:
    std::unique_ptr<T[]> elements_;
    std::size_t capacity_ = 0;  ///< 0 or a power of two
    std::uint64_t first_ = 0;
    std::uint64_t end_ = 0;
};

}  // namespace weir::backend
