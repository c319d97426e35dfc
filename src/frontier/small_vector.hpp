#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace weir::detail {

/// A vector that keeps up to N elements in place, where a std::vector would allocate: most sets of points and most plans have very few
/// elements, and they are made for each operation.
///
/// Has the part of std::vector's interface that is used, with its guarantees; moving the vector moves its elements if they are in place.
template <class T, std::size_t N>
    requires std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>
class small_vector {
public:
    small_vector() noexcept {}  // NOLINT(modernize-use-equals-default): leaves the storage uninitialized
    small_vector(const T* first, const T* last) { append(first, last); }
    small_vector(const small_vector& other) { append(other.begin(), other.end()); }
    small_vector(small_vector&& other) noexcept { take(other); }
    small_vector& operator=(const small_vector& other) {
        if (this != &other) {
            small_vector copy(other);
            *this = std::move(copy);
        }
        return *this;
    }
    small_vector& operator=(small_vector&& other) noexcept {
        if (this != &other) {
            release();
            take(other);
        }
        return *this;
    }
    ~small_vector() { release(); }

    [[nodiscard]] T* begin() noexcept { return data_; }
    [[nodiscard]] T* end() noexcept { return data_ + size_; }
    [[nodiscard]] const T* begin() const noexcept { return data_; }
    [[nodiscard]] const T* end() const noexcept { return data_ + size_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_[i]; }
    operator std::span<const T>() const noexcept { return {data_, size_}; }  // NOLINT(google-explicit-constructor)

    void reserve(std::size_t wanted) {
        if (wanted > capacity_) [[unlikely]] {
            enlarge(wanted);
        }
    }
    void push_back(T value) {
        if (size_ == capacity_) [[unlikely]] {
            enlarge(2 * capacity_);
        }
        std::construct_at(end(), std::move(value));
        ++size_;
    }
    void append(const T* first, const T* last) {
        reserve(size_ + static_cast<std::size_t>(last - first));
        if constexpr (std::is_trivially_copyable_v<T>) {
            if (first != last) {
                std::memcpy(static_cast<void*>(end()), first, static_cast<std::size_t>(last - first) * sizeof(T));
            }
        } else {
            std::uninitialized_copy(first, last, end());
        }
        size_ += static_cast<std::size_t>(last - first);
    }
    void insert(const T* where, T value) {
        const std::ptrdiff_t at = where - data_;
        push_back(std::move(value));
        std::rotate(begin() + at, end() - 1, end());
    }
    void erase(T* first, T* last) noexcept {
        T* const rest = std::move(last, end(), first);
        std::destroy(rest, end());
        size_ = static_cast<std::size_t>(rest - data_);
    }
    void erase(T* one) noexcept { erase(one, one + 1); }
    void clear() noexcept {
        std::destroy(begin(), end());
        size_ = 0;
    }

    friend bool operator==(const small_vector& a, const small_vector& b) noexcept {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

private:
    T* in_place() noexcept { return std::launder(reinterpret_cast<T*>(room_)); }

    /// Out of line, so that the code of a push that has room is short.
    [[gnu::cold, gnu::noinline]] void enlarge(std::size_t wanted) {
        T* const larger = std::allocator<T>().allocate(wanted);
        std::uninitialized_move(begin(), end(), larger);
        std::destroy(begin(), end());
        deallocate();
        data_ = larger;
        capacity_ = wanted;
    }

    void take(small_vector& other) noexcept {
        if (other.data_ == other.in_place()) {
            std::uninitialized_move(other.begin(), other.end(), data_);
            size_ = other.size_;
            other.clear();
            return;
        }
        data_ = std::exchange(other.data_, other.in_place());
        size_ = std::exchange(other.size_, 0);
        capacity_ = std::exchange(other.capacity_, N);
    }
    void release() noexcept {
        clear();
        deallocate();
        data_ = in_place();
        capacity_ = N;
    }
    void deallocate() noexcept {
        if (data_ != in_place()) {
            std::allocator<T>().deallocate(data_, capacity_);
        }
    }

    T* data_ = in_place();
    std::size_t size_ = 0;
    std::size_t capacity_ = N;
    alignas(T) std::byte room_[N * sizeof(T)];
};

}  // namespace weir::detail
