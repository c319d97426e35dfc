#pragma once

namespace weir::backend {

/// Returns a thread-local variable whose address is computed once: in a shared library each access is a call, and compilers repeat
/// it at every use, since they know that the address never changes.
template <class T>
[[nodiscard]] T& found_once(T& of_thread) noexcept {
    T* place = &of_thread;
    asm("" : "+r"(place));  // hides from the compiler which address it is
    return *place;
}

}  // namespace weir::backend
