#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace weir::runtime {

/// Room for an object that is made later, if at all: what most operations do not need must cost them nothing, and a
/// std::optional clears all of its room where it is made.
template <class T>
class late {
public:
    late() noexcept {}  // NOLINT(modernize-use-equals-default): leaves the room as it is
    late(const late&) = delete;
    late& operator=(const late&) = delete;
    ~late() {
        if (made_) {
            std::destroy_at(get());
        }
    }

    /// Makes the object, once.
    template <class... Arguments>
    T& make(Arguments&&... arguments) {
        T* const made = std::construct_at(reinterpret_cast<T*>(room_), std::forward<Arguments>(arguments)...);
        made_ = true;
        return *made;
    }
    explicit operator bool() const noexcept { return made_; }
    [[nodiscard]] T* operator->() noexcept { return get(); }
    [[nodiscard]] const T* operator->() const noexcept { return const_cast<late*>(this)->get(); }

private:
    [[nodiscard]] T* get() noexcept { return std::launder(reinterpret_cast<T*>(room_)); }

    alignas(T) std::byte room_[sizeof(T)];
    bool made_ = false;
};

}  // namespace weir::runtime
