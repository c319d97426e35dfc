// Work: operations that declare what they read and write. Layer: array.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/detail/rare.hpp"
#include "weir/detail/submission.hpp"
#include "weir/event.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace detail {

/// A few completions, as a rule none: then it is a null pointer.
class completion_list {
public:
    completion_list() = default;
    completion_list(const completion_list& other) : all_(other.all_ == nullptr ? nullptr : copy_of(*other.all_)) {}
    completion_list(completion_list&& other) noexcept : all_(std::exchange(other.all_, nullptr)) {}
    completion_list& operator=(const completion_list& other) {
        completion_list copied(other);
        std::swap(all_, copied.all_);
        return *this;
    }
    completion_list& operator=(completion_list&& other) noexcept {
        completion_list taken(std::move(other));
        std::swap(all_, taken.all_);
        return *this;
    }
    ~completion_list() {
        if (all_ != nullptr) [[unlikely]] {
            end(all_);
        }
    }

    /// Throws std::bad_alloc: then nothing was added.
    void add(completion one) {
        if (all_ == nullptr) {
            all_ = new std::vector<completion>();
        }
        all_->push_back(std::move(one));
    }
    [[nodiscard]] std::span<const completion> all() const noexcept {
        if (all_ != nullptr) [[unlikely]] {
            rare();
            return *all_;
        }
        return {};
    }

private:
    using list = std::vector<completion>;
    [[gnu::cold, gnu::noinline]] static list* copy_of(const list& all) { return new list(all); }
    [[gnu::cold, gnu::noinline]] static void end(list* all) noexcept { delete all; }

    list* all_ = nullptr;
};

}  // namespace detail

/// Where an operation goes: a stream, and optionally a label and events that it must come after. Made from a stream
/// without a word; remembers the line of the program that made it.
///
/// \code
/// weir::parallel_for(s, n, body, weir::in(x));
/// weir::parallel_for(weir::on(s).label("window").after(e), n, body, weir::in(x));
/// \endcode
class on {
public:
    /// To this stream, which must outlive the call that takes it, from this line of the program.
    on(const stream_ref& stream,  // NOLINT(google-explicit-constructor): a stream alone is the common case
       source_location where = source_location::current()) noexcept
        : stream_(stream), site_{nullptr, where} {}

    /// A name for errors, reports and timelines.
    template <std::size_t N>
    on& label(const char (&literal)[N]) noexcept {
        site_.label = literal;
        return *this;
    }
    /// The operation also starts after `event` (rule O5), whatever the ordering mode.
    on& after(const event& event) {
        after_.add(event.recorded());
        return *this;
    }

    /// The same on another stream.
    [[nodiscard]] on moved_to(const stream_ref& stream) const {
        on moved = *this;
        moved.stream_ = stream;
        return moved;
    }

    /// The stream.
    [[nodiscard]] const stream_ref& stream() const noexcept { return stream_; }
    /// Its label and the line of the program.
    [[nodiscard]] const runtime::site& site() const noexcept { return site_; }
    /// What `after` was told.
    [[nodiscard]] std::span<const completion> dependencies() const noexcept { return after_.all(); }

private:
    stream_ref stream_;
    runtime::site site_;
    detail::completion_list after_;
};

/// What one operand of an operation is and how it is used. `T` is const where it is only read; `Data` is what the body
/// gets.
template <class T, class Data = std::span<T>>
struct access_argument {
    runtime::access_request request;  ///< for Weir's own use: what is touched, and how
    Data data;                        ///< as the device sees it
    std::ptrdiff_t to_host = 0;       ///< bytes from there to where the host looks

    /// The same elements for code that runs on the host. Memory that the host cannot reach faults when it is touched.
    [[nodiscard]] Data host_data() const noexcept;
};

namespace detail {

/// Throws argument_error if elements of `x` share memory.
WEIR_EXPORT void expect_own_elements(const array& x);

template <class T>
[[nodiscard]] T* moved(T* pointer, std::ptrdiff_t bytes) noexcept {
    using byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    return reinterpret_cast<T*>(reinterpret_cast<byte*>(pointer) + bytes);
}
template <class T>
[[nodiscard]] std::span<T> moved(const std::span<T>& span, std::ptrdiff_t bytes) noexcept {
    return {moved(span.data(), bytes), span.size()};
}
template <class T, std::size_t Rank>
[[nodiscard]] strided_span<T, Rank> moved(const strided_span<T, Rank>& span, std::ptrdiff_t bytes) noexcept {
    return {moved(span.data(), bytes), span.extents(), span.strides()};
}

/// `overwrites`: see access_request.
template <class T, class Data>
[[nodiscard]] access_argument<T, Data> argument_of(const array& x, const Data& data, order::access_mode mode,
                                                   bool overwrites = false) noexcept {
    return {{x.tracked().resource, x.footprint(), mode, overwrites}, data, x.tracked().to_host};
}
/// The same for the elements in C order: throws as array::view does.
template <class T>
[[nodiscard]] access_argument<T> argument_of(const array& x, order::access_mode mode, bool overwrites = false) {
    const buffer::tracked_memory& memory = x.tracked<std::remove_const_t<T>>();
    // Elements that lie one after the other are what the footprint says. The buffer's memory holds objects of this type by its
    // dtype.
    const order::footprint& where = x.footprint();
    return {{memory.resource, where, mode, overwrites},
            {reinterpret_cast<T*>(memory.device_data), static_cast<std::size_t>(where.end - where.begin) / sizeof(T)},
            memory.to_host};
}

}  // namespace detail

template <class T, class Data>
Data access_argument<T, Data>::host_data() const noexcept {
    return detail::moved(data, to_host);
}

/// @{
/// The operation reads the elements; its body gets a std::span<const T>. `in<float>(x)` of an array says its element type
/// here, and copies nothing. Throws as array::view does.
template <class T>
[[nodiscard]] access_argument<const T> in(const array& x) {
    return detail::argument_of<const T>(x, order::access_mode::read);
}
template <class T>
[[nodiscard]] access_argument<const T> in(const array_view<T>& x) noexcept {
    return detail::argument_of<const T>(x.base(), std::span<const T>(x.device_span()), order::access_mode::read);
}
/// @}
/// @{
/// The operation writes every element and reads none before; its body gets a std::span<T>.
template <class T>
[[nodiscard]] access_argument<T> out(const array& x) {
    return detail::argument_of<T>(x, order::access_mode::write, true);
}
template <class T>
[[nodiscard]] access_argument<T> out(const array_view<T>& x) noexcept {
    return detail::argument_of<T>(x.base(), x.device_span(), order::access_mode::write, true);
}
/// @}
/// @{
/// The operation reads and writes the elements; its body gets a std::span<T>.
template <class T>
[[nodiscard]] access_argument<T> inout(const array& x) {
    return detail::argument_of<T>(x, order::access_mode::write);
}
template <class T>
[[nodiscard]] access_argument<T> inout(const array_view<T>& x) noexcept {
    return detail::argument_of<T>(x.base(), x.device_span(), order::access_mode::write);
}
/// @}
/// @{
/// The same for elements with any strides: the body gets a strided_span, and the operation touches these elements alone,
/// not what lies between them. To be written, each must have memory of its own: argument_error.
template <class T, std::size_t Rank>
[[nodiscard]] access_argument<const T, strided_span<const T, Rank>> in(const strided_view<T, Rank>& x) noexcept {
    return detail::argument_of<const T>(x.base(), strided_span<const T, Rank>(x.device_span()),
                                        order::access_mode::read);
}
template <class T, std::size_t Rank>
[[nodiscard]] access_argument<T, strided_span<T, Rank>> out(const strided_view<T, Rank>& x) {
    detail::expect_own_elements(x.base());
    return detail::argument_of<T>(x.base(), x.device_span(), order::access_mode::write, true);
}
template <class T, std::size_t Rank>
[[nodiscard]] access_argument<T, strided_span<T, Rank>> inout(const strided_view<T, Rank>& x) {
    detail::expect_own_elements(x.base());
    return detail::argument_of<T>(x.base(), x.device_span(), order::access_mode::write);
}
/// @}
/// @{
/// The same for an array without a type: the body gets the bytes. Throws argument_error if they do not lie in C order.
[[nodiscard]] WEIR_EXPORT access_argument<const std::byte> in(const array& x);
[[nodiscard]] WEIR_EXPORT access_argument<std::byte> out(const array& x);
[[nodiscard]] WEIR_EXPORT access_argument<std::byte> inout(const array& x);
/// @}

/// The half-open range of indices [begin, end). An empty one if the count is not positive.
struct range {
    std::size_t begin = 0;  ///< the first index
    std::size_t end = 0;    ///< behind the last one
    /// The indices 0 to count - 1.
    template <std::integral Integer>
    range(Integer count) noexcept  // NOLINT(google-explicit-constructor): a number alone is the common case
        : end(count > 0 ? static_cast<std::size_t>(count) : 0) {}
    /// The indices first to last - 1.
    range(std::size_t first, std::size_t last) noexcept : begin(first), end(last) {}
};

namespace detail {

template <class F, class... T, class... Data>
completion submit_work(const on& where, runtime::work_kind kind, F&& body,
                       const access_argument<T, Data>&... arguments) {
    const std::array<runtime::access_request, sizeof...(T)> requests{arguments.request...};
    return with_task(std::forward<F>(body), [&](task_ref task) {
        return runtime::submit(where.stream().state(), {requests, where.dependencies(), task, where.site(), kind});
    });
}

template <class F>
[[nodiscard]] native_task<F, task_nature::foreign> foreign_task(F fn) {
    return {std::move(fn)};
}

template <class T>
inline constexpr bool is_access_argument = false;
template <class T, class Data>
inline constexpr bool is_access_argument<access_argument<T, Data>> = true;

template <class... Arguments>
consteval bool are_accesses_then_a_function() {
    if constexpr (sizeof...(Arguments) == 0) {
        return false;
    } else {
        using all = std::tuple<std::remove_cvref_t<Arguments>...>;
        return []<std::size_t... I>(std::index_sequence<I...>) {
            if constexpr ((is_access_argument<std::tuple_element_t<I, all>> && ...)) {
                return std::is_invocable_v<std::tuple_element_t<sizeof...(I), all>&, const native_stream&,
                                           decltype(std::tuple_element_t<I, all>::data)&...>;
            } else {
                return false;
            }
        }
        (std::make_index_sequence<sizeof...(Arguments) - 1>());
    }
}

/// What weir::access takes: any number of in, out and inout, then a function, which takes the native stream and what each of them
/// gives.
template <class... Arguments>
concept accesses_then_a_function_of_the_native_stream = are_accesses_then_a_function<Arguments...>();

}  // namespace detail

#ifdef __CUDACC__
namespace detail {

template <class F, class... T, class... Data>
completion parallel_for_on_cuda(const on& where, range over, F body, const access_argument<T, Data>&... arguments);
[[noreturn]] WEIR_EXPORT void refuse_device_lambda(const on& where);

}  // namespace detail

// Another function than the one that a plain compiler makes of the same template.
inline namespace compiled_by_nvcc {
#endif

/// Enqueues `body(i, spans...)` for each index i of `over`, spans as in, out and inout give them; `body(i)` if it takes
/// no spans. Returns once enqueued. The body must not wait for streams or events; an exception fails the operation.
/// It is moved into the stream while Weir holds locks: its move constructor must not call Weir. Throws state_error,
/// argument_error (memory that the stream's device cannot reach), std::bad_alloc: then nothing was enqueued.
///
/// On the CPU the indices come one after the other, on one thread, so that the compiler can use vector instructions; what runs
/// beside the operation is in other streams (weir::parallel makes some).
///
/// On a CUDA device the body runs as a kernel, a thread for each index, if nvcc compiles the program and the body is a
/// lambda marked `__host__ __device__` (nvcc --extended-lambda --expt-relaxed-constexpr); any other body is an
/// argument_error there. Its kernel is loaded at the first call for each device.
template <class F, class... T, class... Data>
completion parallel_for(const on& where, range over, F body, const access_argument<T, Data>&... arguments) {
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
        return detail::submit_work(
            where, runtime::work_kind::device,
            [over, body = std::move(body), spans = std::tuple(arguments.data...)]() mutable {
                std::apply(
                    [&](auto&... span) {
                        for (std::size_t i = over.begin; i < over.end; ++i) {
                            if constexpr (std::is_invocable_v<F&, std::size_t, Data&...>) {
                                body(i, span...);
                            } else {
                                body(i);
                            }
                        }
                    },
                    spans);
            },
            arguments...);
    }
}

#ifdef __CUDACC__
}  // namespace compiled_by_nvcc
#endif

/// Declares accesses around work of somebody else: `fn(native_stream, spans...)` gets the stream's native handle and the
/// operands, and either does the work (CPU) or puts it into that stream. Arguments: accesses, then the function. Returns
/// once enqueued. Throws as parallel_for does.
template <class... Arguments>
    requires detail::accesses_then_a_function_of_the_native_stream<Arguments...> completion
    access(const on& where, Arguments&&... arguments) {
        constexpr std::size_t accesses = sizeof...(Arguments) - 1;
        auto all = std::forward_as_tuple(std::forward<Arguments>(arguments)...);
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return detail::submit_work(
                where, runtime::work_kind::device,
                detail::foreign_task(
                    [fn = std::forward<std::tuple_element_t<accesses, decltype(all)>>(std::get<accesses>(all)),
                     spans = std::tuple(std::get<I>(all).data...)]() mutable {
                        const native_stream queue{detail::native_queue_handle()};
                        std::apply([&](auto&... span) { fn(queue, span...); }, spans);
                    }),
                std::get<I>(all)...);
        }
        (std::make_index_sequence<accesses>());
    }

/// Enqueues `fn(spans...)` as a host task: it may block (on input and output, on locks of the program) and may enqueue
/// work; it must not wait for its own stream. Runs on a worker of its own, so that only its stream waits for it. It is
/// code of the host: spans of memory that the host cannot reach fault when they are touched. Returns once enqueued; an
/// exception of `fn` fails the operation (rule K4). Throws state_error, std::bad_alloc: then nothing was enqueued.
template <class F, class... T, class... Data>
completion host_task(const on& where, F fn, const access_argument<T, Data>&... arguments) {
    return detail::submit_work(
        where, runtime::work_kind::host_task,
        [fn = std::move(fn), spans = std::tuple(arguments.host_data()...)]() mutable {
            std::apply([&](auto&... span) { fn(span...); }, spans);
        },
        arguments...);
}

/// Copies `src` to `dst`, of any strides each, as NumPy's copyto does: `src` is broadcast to the shape of `dst` and
/// converted to its element type within the same kind of numbers or to a higher one (float64 to float32, int32 to float32;
/// else `astype` says that it is meant). Where the two overlap, as if `src` had been copied first. Between devices too, on
/// a stream of either. All steps come after what the stream was given before, and the stream is behind all of them, in every
/// ordering mode (rule O5); no other stream of the program is used. Reads src, writes dst; returns once enqueued. Throws
/// argument_error (shapes, devices), argument_type_error.
WEIR_EXPORT completion copy(const on& where, const array& dst, const array& src);
/// Copies host memory, packed in C order, into `dst`, on a stream of its device or of the CPU. The source is taken as it
/// is at the call, and may then be changed at once. Writes dst; returns once enqueued. Throws argument_error (another number
/// of bytes, a stream of another device), std::bad_alloc.
WEIR_EXPORT completion copy_from_host(const on& where, const array& dst, std::span<const std::byte> src);
/// Sets every element of `dst` to `value`. Writes dst; returns once enqueued. Throws argument_error as scalar::expect_fits
/// does.
WEIR_EXPORT completion fill(const on& where, const array& dst, const scalar& value);

/// A new array in C order with the elements of `x`. Reads x; returns once enqueued. Throws argument_error
/// for a stream of another device, and as `empty` does.
[[nodiscard]] WEIR_EXPORT array copy(const on& where, const array& x);
/// The same with elements of another type, as NumPy's astype does: integers wrap, fractions and imaginary parts go. Reads
/// x; returns once enqueued.
[[nodiscard]] WEIR_EXPORT array astype(const on& where, const array& x, dtype type);
/// A new array in C order on the device `to` with the elements of `x`, made on a stream of either device. Reads x. Throws
/// as `copy` does.
[[nodiscard]] WEIR_EXPORT array to(const on& where, const array& x, device to);
/// The same with elements of another type, as `astype` converts them.
[[nodiscard]] WEIR_EXPORT array to(const on& where, const array& x, device to, dtype type);
/// `x` itself if its elements lie in C order, else a copy in which they do, as `copy` makes it.
[[nodiscard]] WEIR_EXPORT array contiguous(const on& where, const array& x);
/// The elements of `x` in C order under another shape: the same memory if strides can say it, else a copy. Throws
/// argument_error.
[[nodiscard]] WEIR_EXPORT array reshape(const on& where, const array& x, const shape& to);

namespace detail {

/// Objects that somebody keeps, whatever they are.
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

/// Waits for an operation's end in order to let go of objects. Made before they are taken, so that taking cannot fail.
class keeper;
struct WEIR_EXPORT keeper_deleter {
    void operator()(keeper* one) const noexcept;
};
[[nodiscard]] WEIR_EXPORT std::unique_ptr<keeper, keeper_deleter> make_keeper();
WEIR_EXPORT void keep(std::unique_ptr<keeper, keeper_deleter> by, std::unique_ptr<kept> objects,
                      const completion& until) noexcept;

}  // namespace detail

/// Keeps `objects` alive until `after` is over, then lets go of them exactly once, on a thread of Weir's or, if it is
/// over already, at once (rule L2). Does not block. Takes objects as std::make_tuple does: copies of what is named, unless
/// it is moved. If it throws (std::bad_alloc), nothing was taken. Destructors of the objects must not wait for streams.
template <class... T>
void keep_alive(const event& after, T&&... objects) {
    const completion until = after.recorded();
    auto keeper = detail::make_keeper();
    auto kept = std::make_unique<detail::kept_objects<std::decay_t<T>...>>(std::forward<T>(objects)...);
    detail::keep(std::move(keeper), std::move(kept), until);
}

}  // namespace weir

#ifdef __CUDACC__
#include "weir/detail/cuda_launch.hpp"
#endif
