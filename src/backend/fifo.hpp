#pragma once

#include <cstddef>

namespace weir::backend {

/// A first-in-first-out list of objects that are linked through their member `next`: costs no allocation. An object is in one
/// list at a time.
template <class T>
class fifo {
public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] T* first() const noexcept { return first_; }

    void push(T& one) noexcept {
        one.next = nullptr;
        (last_ == nullptr ? first_ : last_->next) = &one;
        last_ = &one;
        ++size_;
    }
    /// Takes out the oldest; null if there is none.
    [[nodiscard]] T* pop() noexcept { return first_ == nullptr ? nullptr : take_after(nullptr); }
    /// Takes out the one behind `previous`; the oldest if that is null.
    [[nodiscard]] T* take_after(T* previous) noexcept {
        T*& link = previous == nullptr ? first_ : previous->next;
        T* const one = link;
        link = one->next;
        if (last_ == one) {
            last_ = previous;
        }
        --size_;
        return one;
    }

private:
    T* first_ = nullptr;
    T* last_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace weir::backend
