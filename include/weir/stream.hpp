// Streams. Layer: runtime.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weir/completion.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/device.hpp"
#include "weir/export.hpp"
#include "weir/ordering.hpp"
#include "weir/source_location.hpp"

namespace weir {

class event;
struct event_options;
class native_queue;

namespace runtime {
class stream_state;
}

/// A stream as its device's own interfaces know it.
struct native_stream {
    void* handle = nullptr;  ///< the driver's handle (CUstream); null where there is none
};

/// How to make a stream.
struct stream_options {
    int priority = 0;       ///< smaller is more urgent, as in CUDA; the CPU keeps it and takes no notice
    std::string name = {};  ///< for messages and timelines; "stream 3" if empty
    /// A CUDA stream is ordered with the legacy default stream, as CUDA orders its blocking streams (rule S6): the one
    /// stream's work starts after what is in the other already. Other devices keep this and take no notice.
    bool blocking = false;
};

/// A stream that somebody else owns: must not outlive it. What functions take that only use a stream. Any thread may call,
/// several at once (rule O8).
class WEIR_EXPORT stream_ref {
public:
    /// Blocks the calling thread until everything enqueued before the call is over (rule S3). Throws operation_error if
    /// an operation failed that nobody was told of yet.
    void synchronize(source_location where = source_location::current()) const;

    /// Whether everything enqueued is over. Never blocks. true orders what the program does next (rule V1).
    [[nodiscard]] bool done(source_location where = source_location::current()) const;

    /// Device-side: what is enqueued from now on starts after `what` (rules S2, S3). Does not block the caller. An event
    /// never recorded, and a wait that is implied already, cost nothing (rule O2). Throws state_error if closed.
    void wait(const event& what, source_location where = source_location::current()) const;
    /// The same for everything enqueued on `other` up to now.
    void wait(const stream_ref& other, source_location where = source_location::current()) const;
    /// The same for one operation.
    void wait(const completion& what, source_location where = source_location::current()) const;

    /// An event that holds the stream's tail at this moment (rule S2). Does not block, but on devices without queues. Throws
    /// state_error if closed, std::bad_alloc.
    [[nodiscard]] event record(source_location where = source_location::current()) const;
    /// The same, of an event with these options: `record({.timing = true})`.
    [[nodiscard]] event record(event_options options, source_location where = source_location::current()) const;

    /// Who orders the operations of this stream; std::nullopt leaves it to the scope and the process (rule O5). Never
    /// blocks; holds for operations that are enqueued later.
    void set_ordering(std::optional<ordering_mode> mode) const noexcept;
    /// What set_ordering has set.
    [[nodiscard]] std::optional<ordering_mode> ordering() const noexcept;

    /// The stream as its device's own interfaces know it: a CUstream (which is a cudaStream_t), so that libraries and launches of
    /// the program's own can use it. From now on Weir takes into account that others put work there: its own calls have put
    /// theirs into the queue when they return, and take the queue's end anew each time (rules O2, O9). Blocks until
    /// what was enqueued before is in the queue, so that what the program puts there next comes behind it (rule O9); code of a stream,
    /// such as a host task, is not blocked, since the stream may wait for that code. On other devices the handle is null. Throws
    /// state_error if the stream is closed.
    [[nodiscard]] native_stream native() const;

    /// The device whose queue it is.
    [[nodiscard]] weir::device device() const noexcept;
    /// As its device has it: smaller is more urgent.
    [[nodiscard]] int priority() const noexcept;
    /// As it was made. Of an adopted stream of a CUDA device: as its driver says (CU_STREAM_NON_BLOCKING is not set).
    [[nodiscard]] bool blocking() const noexcept;
    /// Its name for messages and timelines. Valid as long as the stream.
    [[nodiscard]] std::string_view name() const noexcept;
    /// Unlike a handle, never used again for another stream (rule S5).
    [[nodiscard]] std::uint64_t unique_id() const noexcept;
    /// `<weir.stream cpu #3 "load" priority=0 owned>`. Never blocks.
    [[nodiscard]] std::string to_string() const;

    /// Whether both are the same stream.
    friend bool operator==(const stream_ref&, const stream_ref&) = default;

    /// For Weir's own use.
    explicit stream_ref(runtime::stream_state& state) noexcept : state_(&state) {}
    /// For Weir's own use.
    [[nodiscard]] runtime::stream_state& state() const noexcept { return *state_; }

private:
    runtime::stream_state* state_;
};

/// An in-order queue of operations that runs beside the others of its device (rule S1). Shared ownership: copies are the
/// same stream, pending work keeps it alive, dropping the last copy neither blocks nor cancels (rule S4).
class WEIR_EXPORT stream : public stream_ref {
public:
    /// A new stream. Does not block. Throws std::bad_alloc.
    explicit stream(weir::device on = cpu(), stream_options options = {});

    /// The stream of a queue that others own and use as well (rule S5): they may put work into it that Weir never sees, so
    /// `record`, `synchronize`, and waits for it take its end anew each time (rule O2). The same queue gives the same stream
    /// as long as one is alive; closing or dropping it never ends the queue (scenario C8). `owner` is kept as long as the
    /// stream has users or pending work; without one, the queue must outlive both.
    ///
    /// It is let go of on a thread of Weir's. Does not block. Throws std::bad_alloc.
    [[nodiscard]] static stream adopt(native_queue& native, std::shared_ptr<void> owner = {});

    /// The stream of the device that its driver knows by this handle (a CUstream, cudaStream_t; 0 and 1 are the legacy
    /// default stream, 2 the calling thread's), otherwise as above. It is looked up anew at each call, since a handle may
    /// have been given to another stream; that stream must exist as long as this one is used, which is what `owner` is for.
    /// The default stream of a thread can be used on that thread alone (elsewhere: argument_error), and not be asked there
    /// whether it is done. Between the legacy default stream and blocking ones the driver's implicit order holds (rule S6).
    /// Throws argument_error (no such stream, one of another context, a device whose streams have no handles), device_error.
    [[nodiscard]] static stream adopt(native_stream handle, weir::device on, std::shared_ptr<void> owner = {});

    /// @{
    /// The same stream. Any thread may copy, assign and destroy copies of its own; never blocks.
    stream(const stream& other) noexcept;
    stream& operator=(const stream& other) noexcept;
    ~stream();
    /// @}

    /// No more work is taken: what would put any into it, make it current or ask for its handle is a state_error from then
    /// on, through any copy. What is pending still runs: synchronize() waits for it, done() asks. Idempotent, never blocks.
    void close() noexcept;
    /// Whether it takes work, that is, is not closed.
    explicit operator bool() const noexcept;

    /// For Weir's own use.
    explicit stream(detail::owner<runtime::stream_state> state) noexcept;

private:
    detail::owner<runtime::stream_state> keep_;
};

/// The calling thread's current stream on a device: the innermost `use`, else the device's default stream, which all
/// threads share (rule S7). Never blocks. Throws std::bad_alloc.
[[nodiscard]] WEIR_EXPORT stream current_stream(device on = cpu());

namespace detail {

/// The same without a share in it: valid on the calling thread, until its current stream is another one.
[[nodiscard]] WEIR_EXPORT stream_ref current_stream_ref(device on);

}  // namespace detail

/// Makes a stream current for the calling thread and its device while the object lives; then exactly what was there
/// before (rule S7). Nests. Destroy on the thread that made it, innermost first.
class WEIR_EXPORT use {
public:
    /// Does not block. Throws state_error if the stream is closed, std::bad_alloc.
    explicit use(const stream& current);
    /// Restores what was current before. Never blocks.
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
