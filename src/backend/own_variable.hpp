#pragma once

namespace weir::backend {

/// A variable of the thread's own, found once: in a shared library each look is a call, and compilers make it again at every
/// use, since the address never changes.
template <class T>
[[nodiscard]] T& found_once(T& of_thread) noexcept {
    T* place = &of_thread;
    asm("" : "+r"(place));  // may be any address from here on
    return *place;
}

}  // namespace weir::backend
