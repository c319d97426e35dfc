// A callable whose type is erased without an allocation of its own. Layer: base.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace weir::detail {

/// What can be done with a callable of some type that lies at an address.
struct task_type {
    std::size_t size;
    std::size_t align;
    void (*move)(void* from, void* to) noexcept;  ///< move-constructs at `to`; `from` stays to be destroyed
    void (*run)(void* object);
    void (*destroy)(void* object) noexcept;
};

/// A callable that its maker still owns and that a stream's queue moves into its own storage.
struct task_ref {
    const task_type* type = nullptr;
    void* object = nullptr;
};

/// The largest callable that is kept in place; a larger one goes to the heap.
inline constexpr std::size_t largest_inline_task = 512;

template <class F>
inline constexpr task_type task_type_of = {
    sizeof(F), alignof(F), [](void* from, void* to) noexcept { ::new (to) F(std::move(*static_cast<F*>(from))); },
    [](void* object) { (*static_cast<F*>(object))(); }, [](void* object) noexcept { static_cast<F*>(object)->~F(); }};

/// Whether a callable can be moved into a queue's storage, and out of it, without failing.
template <class F>
constexpr bool fits_in_place() noexcept {
    if (sizeof(F) > largest_inline_task) {
        return false;
    }
    return alignof(F) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<F>;
}

/// Calls `use(task_ref)` with a reference to `fn`, or to a box around it where it is too large, too strictly aligned or
/// could throw when moved.
template <class F, class Use>
decltype(auto) with_task(F&& fn, Use&& use) {
    using stored = std::decay_t<F>;
    if constexpr (fits_in_place<stored>()) {
        stored kept(std::forward<F>(fn));
        return use(task_ref{&task_type_of<stored>, &kept});
    } else {
        auto kept = [boxed = std::make_unique<stored>(std::forward<F>(fn))] { (*boxed)(); };
        return use(task_ref{&task_type_of<decltype(kept)>, &kept});
    }
}

}  // namespace weir::detail
