#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace weir::runtime {

/// Storage for an object that is constructed later, if at all. Most operations do not need the object, and then it must cost
/// nothing; a std::optional may clear all of its storage when it is constructed.
template <class T>
class lazy {
public:
    lazy() noexcept {}  // NOLINT(modernize-use-equals-default): leaves the storage uninitialized
    lazy(const lazy&) = delete;
    lazy& operator=(const lazy&) = delete;
    ~lazy() {
        if (made_) {
            std::destroy_at(get());
        }
    }

    /// Constructs the object; may be called once.
    template <class... Arguments>
    T& make(Arguments&&... arguments) {
        T* const made = std::construct_at(reinterpret_cast<T*>(room_), std::forward<Arguments>(arguments)...);
        made_ = true;
        return *made;
    }
    explicit operator bool() const noexcept { return made_; }
    [[nodiscard]] T* operator->() noexcept { return get(); }
    [[nodiscard]] const T* operator->() const noexcept { return const_cast<lazy*>(this)->get(); }

private:
    [[nodiscard]] T* get() noexcept { return std::launder(reinterpret_cast<T*>(room_)); }

    alignas(T) std::byte room_[sizeof(T)];
    bool made_ = false;
};

}  // namespace weir::runtime
