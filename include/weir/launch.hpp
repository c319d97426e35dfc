// Work: operations, which declare what they read and write. Layer: array.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/detail/submission.hpp"
#include "weir/event.hpp"
#include "weir/on.hpp"
#include "weir/operands.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace detail {

[[noreturn]] WEIR_EXPORT void refuse_negative_index();

template <std::integral Integer>
[[nodiscard]] std::size_t index_of(Integer index) {
    if (std::cmp_less(index, 0)) [[unlikely]] {
        refuse_negative_index();
    }
    return static_cast<std::size_t>(index);
}

}  // namespace detail

/// The half-open range of indices [begin, end).
struct range {
    std::size_t begin = 0;  ///< the first index
    std::size_t end = 0;    ///< the end: one past the last index
    /// The indices 0 to count - 1. Empty if the count is not positive.
    template <std::integral Integer>
    range(Integer count) noexcept  // NOLINT(google-explicit-constructor): a number alone is the common case
        : end(count > 0 ? static_cast<std::size_t>(count) : 0) {}
    /// The indices first to last - 1. Empty if first is not less than last. Throws argument_error if one is negative.
    template <std::integral First, std::integral Last>
    range(First first, Last last) : begin(detail::index_of(first)), end(detail::index_of(last)) {}
};

namespace detail {

template <class F, class... T, class... Data>
completion submit_work(const on& where, runtime::work_kind kind, F&& body,
                       const access_argument<T, Data>&... arguments) {
    const std::array<runtime::access_request, sizeof...(T)> requests{arguments.request(detail::key)...};
    return with_task(std::forward<F>(body), [&](task_ref task) {
        return runtime::submit(where.stream().state(detail::key),
                               {requests, where.dependencies(), task, where.site(detail::key), kind});
    });
}

template <class F>
[[nodiscard]] native_task<F, task_nature::foreign> foreign_task(F fn) {
    return {std::move(fn)};
}

template <class Data>
inline constexpr bool is_given = !std::is_same_v<Data, no_data>;

/// What one operand gives a body: nothing for a token.
template <class Data>
[[nodiscard]] auto given_by(const Data& data) {
    if constexpr (is_given<Data>) {
        return std::tuple<Data>(data);
    } else {
        return std::tuple<>();
    }
}

/// What each operand gives a body, tokens left out.
template <class... Data>
[[nodiscard]] auto given_data(const Data&... data) {
    if constexpr ((is_given<Data> && ...)) {
        return std::tuple<Data...>(data...);
    } else {
        return std::tuple_cat(given_by(data)...);
    }
}

template <class F, class First, class Given>
inline constexpr bool takes = false;
template <class F, class... First, class... Given>
inline constexpr bool takes<F, std::tuple<First...>, std::tuple<Given...>> = std::invocable<F&, First..., Given&...>;

/// Whether F can be called with objects of the types `First`, and then what each operand gives.
template <class F, class First, class... Data>
concept body_after = takes<F, First, decltype(given_data(std::declval<const Data&>()...))>;

/// From this many indices on, a loop on the CPU is shared among threads: less is done before a second thread has begun.
inline constexpr std::size_t shared_loop_from = 32768;

/// Calls `run(loop, begin, end)` for parts of `over` that make it up: on the calling thread and on the CPU's idle workers. Returns once
/// all parts are done. Throws what a part throws first.
WEIR_EXPORT void share_indices(range over, void (*run)(void* loop, std::size_t begin, std::size_t end), void* loop);

/// The body of a loop with what its operands give (`Given`, a tuple).
template <class F, class Given>
class index_loop {
public:
    index_loop(range over, F body, bool is_shared, Given given)
        : over_(over), body_(std::move(body)), given_(std::move(given)), is_shared_(is_shared) {}

    void operator()() {
        if (!is_shared_) {
            run(over_.begin, over_.end);
            return;
        }
        share_indices(
            over_,
            [](void* loop, std::size_t begin, std::size_t end) { static_cast<index_loop*>(loop)->run(begin, end); },
            this);
    }

private:
    void run(std::size_t begin, std::size_t end) {
        std::apply(
            [&](auto&... span) {
                for (std::size_t i = begin; i < end; ++i) {
                    if constexpr (takes<F, std::tuple<std::size_t>, Given>) {
                        body_(i, span...);
                    } else {
                        body_(i);
                    }
                }
            },
            given_);
    }

    range over_;
    F body_;
    Given given_;
    bool is_shared_;
};

}  // namespace detail

/// A body of weir::parallel_for: takes an index and the `Data` of each operand, or only the index.
template <class F, class... Data>
concept body_of_indices = detail::body_after<F, std::tuple<std::size_t>, Data...> || std::invocable<F&, std::size_t>;

/// A function for weir::host_task: takes the `Data` of each operand.
template <class F, class... Data>
concept body_of_operands = detail::body_after<F, std::tuple<>, Data...>;

/// A function for weir::access: takes the native stream and the `Data` of each operand.
template <class F, class... Data>
concept body_of_native_stream = detail::body_after<F, std::tuple<const native_stream&>, Data...>;

#ifdef __CUDACC__
namespace detail {

template <class F, class... T, class... Data>
completion parallel_for_on_cuda(const on& where, range over, F body, const access_argument<T, Data>&... arguments);
[[noreturn]] WEIR_EXPORT void refuse_device_lambda(const on& where);

}  // namespace detail

// A namespace of its own: this is another function than the one that other compilers instantiate from the same template.
inline namespace compiled_by_nvcc {
#endif

/// All calls that enqueue work of the program take their arguments in the same order: the destination, the work, its operands. Operands are
/// the results of `in`, `out` and `inout`, written in the call: they refer to their arrays.
///
/// Enqueues `body(i, spans...)` for each index i of `over`, with the spans of in, out and inout; `body(i)` if it takes no spans. Returns
/// once enqueued. The body must not wait for streams or events; an exception fails the operation. It is moved into the stream while Weir
/// holds locks: its move constructor must not call Weir. Throws state_error, argument_error (memory that the stream's device cannot reach),
/// std::bad_alloc; then nothing was enqueued.
///
/// On the CPU ranges of 32768 indices and more are shared among the threads of the CPU (WEIR_CPU_THREADS) that are idle, in parts
/// of consecutive indices, so that the compiler can use vector instructions: the body is called for different indices at the same
/// time, and what it changes besides its own elements must be safe for that. Smaller ranges, and those on the devices "cpu:inline" and
/// "sim", run on one thread, one index after the other.
///
/// On a CUDA device the body runs as a kernel, with one thread for each index, if nvcc compiles the program and the body is a lambda marked
/// `__host__ __device__` (nvcc --extended-lambda --expt-relaxed-constexpr); any other body is an argument_error there. Its kernel is loaded
/// at the first call for each device.
template <class F, class... T, class... Data>
    requires body_of_indices<F, Data...> completion parallel_for(const on& where, range over, F body,
                                                                 access_argument<T, Data>&&... arguments) {
#ifdef __CUDACC__
        constexpr bool is_for_device_alone = __nv_is_extended_device_lambda_closure_type(F);
        if constexpr (is_for_device_alone || __nv_is_extended_host_device_lambda_closure_type(F)) {
            if (where.stream().device().kind() == device_kind::cuda) {
                return detail::parallel_for_on_cuda(where, over, std::move(body), arguments...);
            }
        }
        if constexpr (is_for_device_alone) {
            detail::refuse_device_lambda(where);
        } else
#endif
        {
            // The inline device works on the calling thread alone; simulated devices have a time of their own.
            const bool is_shared = over.begin < over.end && over.end - over.begin >= detail::shared_loop_from &&
                                   where.stream().device().kind() == device_kind::cpu;
            return detail::submit_work(
                where, runtime::work_kind::device,
                detail::index_loop(over, std::move(body), is_shared, detail::given_data(arguments.data()...)),
                arguments...);
        }
    }

#ifdef __CUDACC__
}  // namespace compiled_by_nvcc
#endif

/// Declares the accesses of work that another library does. `fn(native_stream, spans...)` gets the stream's native handle and the operands,
/// and either does the work (CPU) or puts it into that stream. Returns once enqueued. Throws as parallel_for does.
template <class F, class... T, class... Data>
    requires body_of_native_stream<F, Data...> completion access(const on& where, F fn,
                                                                 access_argument<T, Data>&&... arguments) {
        return detail::submit_work(
            where, runtime::work_kind::device,
            detail::foreign_task([fn = std::move(fn), spans = detail::given_data(arguments.data()...)]() mutable {
                const native_stream queue{detail::native_queue_handle()};
                std::apply([&](auto&... span) { fn(queue, span...); }, spans);
            }),
            arguments...);
    }

/// Enqueues `fn(spans...)` as a host task: it may block (on input and output, on locks of the program) and may enqueue work; it must not
/// wait for its own stream. Runs on a worker of its own, so that only its stream waits for it. It is code of the host: spans of memory that
/// the host cannot reach fault when they are touched. Returns once enqueued; an exception of `fn` fails the operation (rule K4). Throws
/// state_error, std::bad_alloc; then nothing was enqueued.
template <class F, class... T, class... Data>
    requires body_of_operands<F, Data...> completion host_task(const on& where, F fn,
                                                               access_argument<T, Data>&&... arguments) {
        return detail::submit_work(
            where, runtime::work_kind::host_task,
            [fn = std::move(fn), spans = detail::given_data(arguments.host_data()...)]() mutable {
                std::apply([&](auto&... span) { fn(span...); }, spans);
            },
            arguments...);
    }

/// @{
/// Copies `src` to `dst`, both with any strides, as NumPy's copyto does. `src` is broadcast to the shape of `dst` and converted to its
/// element type, within the same kind of numbers or to a higher one (float64 to float32, int32 to float32; for other conversions call
/// `astype`). If the two overlap, the result is as if `src` had been copied first. Also between devices, on a stream of either. All steps
/// come after what was enqueued into the stream before, and later work of the stream comes after all of them, in every ordering mode (rule
/// O5); no other stream of the program is used. Reads src, writes dst; returns once enqueued. Throws argument_error (shapes, devices),
/// argument_type_error.
WEIR_EXPORT completion copy(const on& where, array& dst, const array& src);
inline completion copy(const on& where, array&& dst, const array& src) { return copy(where, dst, src); }
/// @}
/// @{
/// Copies host memory, packed in C order, into `dst`, on a stream of its device or of the CPU. The source is read during the call, and may
/// be changed after it. Writes dst; returns once enqueued. Throws argument_error (another number of bytes, a stream of another device),
/// std::bad_alloc.
WEIR_EXPORT completion copy_from_host(const on& where, array& dst, std::span<const std::byte> src);
inline completion copy_from_host(const on& where, array&& dst, std::span<const std::byte> src) {
    return copy_from_host(where, dst, src);
}
/// @}
/// @{
/// Sets every element of `dst` to `value`. Writes dst; returns once enqueued. Throws argument_error as scalar::expect_fits does.
WEIR_EXPORT completion fill(const on& where, array& dst, const scalar& value);
inline completion fill(const on& where, array&& dst, const scalar& value) { return fill(where, dst, value); }
/// @}

/// A new array in C order with the elements of `x`. Reads x; returns once enqueued. Throws argument_error for a stream of another device,
/// and as `empty` does.
[[nodiscard]] WEIR_EXPORT array copy(const on& where, const array& x);
/// The same with elements of another type, as NumPy's astype does: integers wrap, fractions and imaginary parts are dropped. Reads x;
/// returns once enqueued.
[[nodiscard]] WEIR_EXPORT array astype(const on& where, const array& x, dtype type);
/// A new array in C order on the device `to` with the elements of `x`, made on a stream of either device. Reads x. Throws
/// as `copy` does.
[[nodiscard]] WEIR_EXPORT array to(const on& where, const array& x, device to);
/// The same with elements of another type, as `astype` converts them.
[[nodiscard]] WEIR_EXPORT array to(const on& where, const array& x, device to, dtype type);
/// `x` itself if its elements lie in C order, else a copy in C order, as `copy` makes it.
[[nodiscard]] WEIR_EXPORT array contiguous(const on& where, const array& x);
/// The elements of `x` in C order with another shape: the same memory if strides can describe it, else a copy. Throws argument_error.
[[nodiscard]] WEIR_EXPORT array reshape(const on& where, const array& x, const shape& to);

namespace detail {

/// Objects of any type that a keeper keeps alive.
class WEIR_EXPORT kept {
public:
    kept() = default;
    kept(const kept&) = delete;
    kept& operator=(const kept&) = delete;
    virtual ~kept();
};

template <class... T>
class kept_objects final : public kept {
public:
    template <class... U>
    explicit kept_objects(U&&... objects) : objects_(std::forward<U>(objects)...) {}

private:
    std::tuple<T...> objects_;
};

/// Waits for an operation's end, then releases objects. Made before the objects are taken, so that taking them cannot fail.
class keeper;
struct WEIR_EXPORT keeper_deleter {
    void operator()(keeper* one) const noexcept;
};
[[nodiscard]] WEIR_EXPORT std::unique_ptr<keeper, keeper_deleter> make_keeper();
WEIR_EXPORT void keep(std::unique_ptr<keeper, keeper_deleter> by, std::unique_ptr<kept> objects,
                      const completion& until) noexcept;

}  // namespace detail

/// Keeps `objects` alive until `after` is complete, then releases them exactly once: on a thread of Weir's or, if it is already complete,
/// at once (rule L2). Does not block. Takes objects as std::make_tuple does: copies of named objects, unless they are moved. If it throws
/// (std::bad_alloc), nothing was taken. Destructors of the objects must not wait for streams.
template <class... T>
void keep_alive(const event& after, T&&... objects) {
    const completion until = after.recorded();
    auto keeper = detail::make_keeper();
    auto kept = std::make_unique<detail::kept_objects<std::decay_t<T>...>>(std::forward<T>(objects)...);
    detail::keep(std::move(keeper), std::move(kept), until);
}

}  // namespace weir

#ifdef __CUDACC__
#include "weir/access.hpp"
#include "weir/detail/cuda_launch.hpp"
#endif
