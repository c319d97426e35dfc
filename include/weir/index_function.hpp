// C functions over an index space as work of streams. Layer: array.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weir/completion.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/event.hpp"
#include "weir/export.hpp"
#include "weir/kernel.hpp"
#include "weir/launch.hpp"
#include "weir/stream.hpp"

namespace weir {

/// A C function that does the indices `begin` to `end - 1` of an index space (rule K2). `arguments[k]` is the address of the value of
/// argument k, as in cuLaunchKernel: of an array's argument that value is the address of its first element. Several threads call it at
/// once, each with indices of its own. Returns 0 when they are done; any other number fails the operation. It must not throw.
using index_function = int (*)(std::int64_t begin, std::int64_t end, void* const* arguments);

namespace detail {

/// Throws argument_error if it is null.
WEIR_EXPORT void expect_index_function(index_function what);

/// Whether several threads may share one operation of the stream: those of asynchronous CPU streams, and no others. On the inline
/// device the calling thread alone runs operations, and simulated devices have a time of their own.
[[nodiscard]] WEIR_EXPORT bool shares_indices(const stream_ref& on) noexcept;

/// Some indices of a space: `context` is what the caller passed. May throw.
using indices_body = void (*)(void* context, std::int64_t begin, std::int64_t end);

/// Calls `body` for parts that make up begin to end - 1; on the CPU's idle workers as well if `shares` and there is enough to do: that is
/// measured, since the cost of an index is not known. Returns when all are done. Throws the first exception of a part.
WEIR_EXPORT void run_indices(std::int64_t begin, std::int64_t end, bool shares, indices_body body, void* context);

[[noreturn]] WEIR_EXPORT void refuse_status(int status);

/// A launch of an index_function on its way.
template <class... Values>
struct index_launch {
    index_function function;
    std::int64_t begin;
    std::int64_t end;
    bool shares;
    std::tuple<Values...> values;

    struct call {
        index_function function;
        void* const* arguments;
    };

    void operator()() {
        std::apply(
            [&](auto&... value) {
                // One more, so that there is an array without arguments, too.
                const std::array<void*, sizeof...(Values) + 1> addresses{
                    const_cast<void*>(static_cast<const void*>(&value))..., nullptr};
                call one{function, addresses.data()};
                run_indices(
                    begin, end, shares,
                    [](void* context, std::int64_t from, std::int64_t to) {
                        const call& its = *static_cast<call*>(context);
                        if (const int status = its.function(from, to, its.arguments); status != 0) {
                            refuse_status(status);
                        }
                    },
                    &one);
            },
            values);
    }
};

}  // namespace detail

/// Enqueues a C function over the indices of `over`, with these arguments: arrays as `in(x)`, `out(x)` and `inout(x)`, numbers and
/// trivially copyable structures by value, copied at the call. On the CPU the threads of its streams share the indices
/// (WEIR_CPU_THREADS) once some tens of microseconds of work are left. Returns once enqueued.
///
/// \code
/// extern "C" int axpy(int64_t begin, int64_t end, void* const* arguments);  // const float* x, float* y, float a
/// weir::launch(s, axpy, n, weir::in(x.view<float>()), weir::inout(y.view<float>()), 2.0F);
/// \endcode
///
/// Throws argument_error (null; a stream of a device that runs no code of the host), and as parallel_for does. Then nothing
/// was enqueued.
template <kernel_operand... Arguments>
completion launch(const on& where, index_function what, range over, Arguments&&... arguments) {
    detail::expect_index_function(what);
    constexpr std::size_t arrays =
        (std::size_t{0} + ... + detail::kernel_value<std::remove_cvref_t<Arguments>>::arrays);
    const detail::requests_of<arrays, std::remove_cvref_t<Arguments>...> requests(arguments...);
    detail::index_launch<typename detail::kernel_value<std::remove_cvref_t<Arguments>>::type...> body{
        what,
        static_cast<std::int64_t>(over.begin),
        static_cast<std::int64_t>(over.end),
        detail::shares_indices(where.stream()),
        {detail::kernel_value<std::remove_cvref_t<Arguments>>::value(arguments)...}};
    return detail::with_task(std::move(body), [&](detail::task_ref work) {
        return runtime::submit(
            where.stream().state(detail::key),
            {requests.all(), where.dependencies(), work, where.site(detail::key), runtime::work_kind::device});
    });
}

/// The same, with an event for its end.
template <kernel_operand... Arguments>
[[nodiscard]] event launch_event(const on& where, index_function what, range over, Arguments&&... arguments) {
    return launch(where, what, over, std::forward<Arguments>(arguments)...);
}

}  // namespace weir
