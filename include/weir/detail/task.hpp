// A callable whose type is erased without an allocation of its own. Layer: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "weir/export.hpp"

namespace weir::detail {

/// What a callable does when it is called.
enum class task_nature : std::uint8_t {
    work,    ///< the work itself
    native,  ///< on a device with queues of its own, puts the work into the queue that it is called for: see native_task
    foreign,  ///< the same, by code that is not Weir's: the work that it puts there may wait for anything
};

/// The operations on a callable of some type at an address.
struct task_type {
    std::size_t size;
    std::size_t align;
    void (*move)(void* from, void* to) noexcept;  ///< move-constructs at `to`; `from` must still be destroyed
    void (*run)(void* object);
    void (*put)(void* object, void* queue);  ///< null unless the callable puts its work plainly: see queue_handle
    void (*destroy)(void* object) noexcept;
    task_nature nature;
    bool trivial;  ///< need not be destroyed
};

/// The driver's handle of a queue (CUstream). A native task whose body is called with the handle, and which need not be destroyed, puts
/// its work there *plainly*. It calls only functions of CUDA that take their context from the handle, or makes the context current itself,
/// and no code that asks for which operation it acts.
struct queue_handle {
    void* value = nullptr;
};
/// Within the body of a native task: the driver's handle of the queue into which the body puts work. Null where the body does the work
/// itself.
[[nodiscard]] WEIR_EXPORT void* native_queue_handle() noexcept;

/// Marks a callable that, on a device with queues of its own, does not do the work but puts it into the queue that it is called for
/// (native_queue_handle). On other devices it does the work itself.
template <class F, task_nature Nature = task_nature::native>
struct native_task {
    F body;
    void operator()() {
        if constexpr (std::is_invocable_v<F&, queue_handle>) {
            body(queue_handle{native_queue_handle()});
        } else {
            body();
        }
    }
};
template <class F>
native_task(F) -> native_task<F>;

template <class F>
inline constexpr task_nature nature_of = task_nature::work;
template <class F, task_nature Nature>
inline constexpr task_nature nature_of<native_task<F, Nature>> = Nature;

template <class F>
inline constexpr bool puts_plainly = false;
template <class F>
inline constexpr bool puts_plainly<native_task<F, task_nature::native>> =
    std::is_invocable_v<F&, queue_handle>&& std::is_trivially_destructible_v<F>;

template <class F>
constexpr auto put_of() noexcept -> void (*)(void*, void*) {
    if constexpr (puts_plainly<F>) {
        return [](void* object, void* queue) { static_cast<F*>(object)->body(queue_handle{queue}); };
    } else {
        return nullptr;
    }
}

/// A callable that its maker still owns, and that a stream's queue moves into its own storage.
struct task_ref {
    const task_type* type = nullptr;
    void* object = nullptr;
};

/// The size of the largest callable that is stored in place; a larger one is allocated on the heap.
inline constexpr std::size_t largest_inline_task = 512;

template <class F>
inline constexpr task_type task_type_of = {
    sizeof(F),
    alignof(F),
    [](void* from, void* to) noexcept { ::new (to) F(std::move(*static_cast<F*>(from))); },
    [](void* object) { (*static_cast<F*>(object))(); },
    put_of<F>(),
    [](void* object) noexcept { static_cast<F*>(object)->~F(); },
    nature_of<F>,
    std::is_trivially_destructible_v<F>};

/// Whether a callable can be moved into a queue's storage, and out of it, without an exception.
template <class F>
constexpr bool fits_in_place() noexcept {
    if (sizeof(F) > largest_inline_task) {
        return false;
    }
    return alignof(F) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<F>;
}

/// Calls `use(task_ref)` with a reference to `fn`; to a copy, if the caller keeps `fn`; or to a box around it, if it is too large, has too
/// strict an alignment, or could throw when moved.
template <class F, class Use>
decltype(auto) with_task(F&& fn, Use&& use) {
    using stored = std::decay_t<F>;
    if constexpr (fits_in_place<stored>() && std::is_same_v<F, stored>) {
        return use(task_ref{&task_type_of<stored>, &fn});
    } else if constexpr (fits_in_place<stored>()) {
        stored kept(std::forward<F>(fn));
        return use(task_ref{&task_type_of<stored>, &kept});
    } else {
        auto call = [boxed = std::make_unique<stored>(std::forward<F>(fn))] { (*boxed)(); };
        native_task<decltype(call), nature_of<stored>> kept{std::move(call)};
        return use(task_ref{&task_type_of<decltype(kept)>, &kept});
    }
}

}  // namespace weir::detail
