// Streams. Layer: runtime.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weir/completion.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/device.hpp"
#include "weir/export.hpp"
#include "weir/ordering.hpp"
#include "weir/source_location.hpp"

namespace weir {

class event;
class stream;
struct event_options;
class native_queue;

namespace runtime {
class stream_state;
}

/// A driver's handle as a stream: the result of stream_ref::handle, for stream::adopt. A type of its own, because 0 is also a handle: the
/// legacy default stream.
struct native_stream {
    void* handle = nullptr;  ///< the driver's handle (CUstream); null if there is none
};

/// Options of a new stream.
struct stream_options {
    int priority = 0;       ///< smaller is more urgent, as in CUDA; the CPU stores it without effect
    std::string name = {};  ///< for messages and timelines; "stream 3" if empty
    /// Whether a CUDA stream is ordered with the legacy default stream, as CUDA's blocking streams are (rule S6): work of each of the two
    /// streams starts after what is already in the other. Other devices store this without effect.
    bool blocking = false;
};

/// A reference to a stream that another object owns; must not outlive that stream. The parameter type of functions that only use a stream.
/// Any thread may call, several at once (rule O8).
class WEIR_EXPORT stream_ref {
public:
    /// Blocks the calling thread until everything enqueued before the call is complete (rule S3). Throws operation_error for the first
    /// failed operation that was not reported yet.
    void synchronize(source_location where = source_location::current()) const;

    /// Whether everything enqueued is complete. Never blocks. An answer of true orders what the program does next (rule V1).
    [[nodiscard]] bool done(source_location where = source_location::current()) const;

    /// Device-side: what is enqueued from now on starts after `what` (rules S2, S3). Does not block the caller. An event that was never
    /// recorded, and a wait that is already implied, cost nothing (rule O2). Throws state_error if closed.
    void wait(const event& what, source_location where = source_location::current()) const;
    /// The same for everything enqueued on `other` up to now.
    void wait(const stream_ref& other, source_location where = source_location::current()) const;
    /// The same for one operation.
    void wait(const completion& what, source_location where = source_location::current()) const;

    /// An event that holds the stream's tail at this moment (rule S2). Does not block, except on devices without queues. Throws state_error
    /// if closed, std::bad_alloc.
    [[nodiscard]] event record(source_location where = source_location::current()) const;
    /// The same for an event with these options: `record({.timing = true})`.
    [[nodiscard]] event record(event_options options, source_location where = source_location::current()) const;

    /// Whether Weir or the program orders the operations of this stream; std::nullopt leaves that to the scope and the process (rule O5).
    /// Never blocks; applies to operations that are enqueued later.
    void set_ordering(std::optional<ordering_mode> mode) const noexcept;
    /// The mode that set_ordering has set.
    [[nodiscard]] std::optional<ordering_mode> ordering() const noexcept;

    /// The driver's handle of the stream, a CUstream (which is a cudaStream_t), for libraries and for launches of the program's own; null
    /// on other devices. From now on, other code may put work there that Weir does not see. So when a call of Weir returns, its own work
    /// is in the queue, and each call takes the queue's end anew (rules O2, O9). Blocks until what was enqueued before is in the queue,
    /// so that what the program puts there next comes behind it (rule O9). Code of a stream, such as a host task, is not blocked, because
    /// the stream may wait for that code. Throws state_error if the stream is closed.
    [[nodiscard]] void* handle() const;

    /// Whether other code may put work into its queue: it was adopted, or `handle` has given its handle out. Once true, it stays true. Each
    /// operation of Weir then costs two more calls of the driver: one asks whether the queue is being captured, one records an event behind
    /// the operation. Never blocks.
    [[nodiscard]] bool shared() const noexcept;

    /// The device of the stream.
    [[nodiscard]] weir::device device() const noexcept;
    /// The priority that its device uses: smaller is more urgent.
    [[nodiscard]] int priority() const noexcept;
    /// The option that it was made with. For an adopted stream of a CUDA device, the driver's answer (CU_STREAM_NON_BLOCKING is not set).
    [[nodiscard]] bool blocking() const noexcept;
    /// Its name for messages and timelines. Valid as long as the stream.
    [[nodiscard]] std::string_view name() const noexcept;
    /// Unlike a handle, never reused for another stream (rule S5).
    [[nodiscard]] std::uint64_t unique_id() const noexcept;
    /// `<weir.stream cpu #3 "load" priority=0 owned>`. Never blocks.
    [[nodiscard]] std::string to_string() const;

    /// Whether both are the same stream.
    friend bool operator==(const stream_ref&, const stream_ref&) = default;

    /// @{
    /// A reference to the same stream.
    stream_ref(const stream_ref&) = default;
    stream_ref& operator=(const stream_ref&) = default;
    ~stream_ref() = default;
    /// @}
    /// @{
    /// A temporary stream may end with the statement, so that no reference to it can be kept. It can be passed to functions.
    stream_ref(const stream&&) = delete;
    stream_ref& operator=(const stream&&) = delete;
    /// @}

    /// @{
    /// For other parts of Weir: a reference to the stream of this state, which must outlive it; and the state.
    stream_ref(detail::passkey /*key*/, runtime::stream_state& state) noexcept : state_(&state) {}
    [[nodiscard]] runtime::stream_state& state(detail::passkey /*key*/) const noexcept { return *state_; }
    /// @}

private:
    runtime::stream_state* state_;
};

/// An in-order queue of operations that runs in parallel to the other streams of its device (rule S1). Shared ownership: copies are the
/// same stream, pending work keeps it alive, and dropping the last copy neither blocks nor cancels work (rule S4).
class WEIR_EXPORT stream : public stream_ref {
public:
    /// A new stream. Does not block. Throws std::bad_alloc.
    explicit stream(weir::device on = cpu(), stream_options options = {});

    /// The stream of a queue that Weir does not own and that other code uses as well (rule S5). Other code may put work into it that Weir
    /// never sees, so `record`, `synchronize`, and waits for it take its end anew each time (rule O2). The same queue gives the same
    /// stream as long as one is alive; closing or dropping the stream never ends the queue (scenario C8). `owner` is kept as long as the
    /// stream has users or pending work; without one, the queue must outlive both.
    ///
    /// `owner` is released on a thread of Weir's. Does not block. Throws std::bad_alloc.
    [[nodiscard]] static stream adopt(native_queue& native, std::shared_ptr<void> owner = {});

    /// The stream that the device's driver knows by this handle (a CUstream, cudaStream_t; 0 and 1 are the legacy default stream, 2 the
    /// calling thread's), otherwise as above. It is looked up anew at each call, because a handle may have been given to another stream.
    /// The driver's stream must exist as long as this one is used; `owner` can ensure that. The default stream of a thread can be used on
    /// that thread alone (elsewhere: argument_error), and cannot be asked there whether it is done. Between the legacy default stream and
    /// blocking streams, the driver's implicit order holds (rule S6). Throws argument_error (no such stream, one of another context, a
    /// device whose streams have no handles), device_error.
    [[nodiscard]] static stream adopt(native_stream handle, weir::device on, std::shared_ptr<void> owner = {});

    /// @{
    /// The same stream. Any thread may copy, assign and destroy copies of its own; never blocks.
    stream(const stream& other) noexcept;
    stream& operator=(const stream& other) noexcept;
    ~stream();
    /// @}

    /// Closes the stream, through any copy: a call that would put work into it, make it current or ask for its handle throws state_error
    /// from then on. Pending work still runs: synchronize() waits for it, done() asks. Idempotent, never blocks.
    void close() noexcept;
    /// Whether it takes work, that is, is not closed.
    explicit operator bool() const noexcept;

    /// For other parts of Weir: the stream of this state, which must not be null.
    stream(detail::passkey key, detail::owner<runtime::stream_state> state) noexcept;

private:
    detail::owner<runtime::stream_state> keep_;
};

/// The calling thread's current stream on a device: the innermost `use`, else the device's default stream, which all
/// threads share (rule S7). Never blocks. Throws std::bad_alloc.
[[nodiscard]] WEIR_EXPORT stream current_stream(device on = cpu());

namespace detail {

/// The same without ownership: valid on the calling thread, until its current stream is another one.
[[nodiscard]] WEIR_EXPORT stream_ref current_stream_ref(device on);

}  // namespace detail

/// Makes a stream current for the calling thread and its device while the object lives; then restores exactly the former current stream
/// (rule S7). Nests. Must be destroyed on the thread that made it, innermost first.
class WEIR_EXPORT use {
public:
    /// Does not block. Throws state_error if the stream is closed, std::bad_alloc.
    [[nodiscard]] explicit use(const stream& current);
    /// Restores the former current stream. Never blocks.
    ~use();
    use(const use&) = delete;
    use& operator=(const use&) = delete;

private:
    detail::owner<runtime::stream_state> previous_;
    runtime::device_state* device_;
};

}  // namespace weir

/// Hashes the unique id, as equality compares it (rule S5).
template <>
struct std::hash<weir::stream_ref> {
    /// The hash of `one`. Never blocks.
    [[nodiscard]] std::size_t operator()(const weir::stream_ref& one) const noexcept {
        return std::hash<std::uint64_t>()(one.unique_id());
    }
};
/// The same for owners.
template <>
struct std::hash<weir::stream> : std::hash<weir::stream_ref> {};
