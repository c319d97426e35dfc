// What a program does with another library, kept in order by hooks in that library. Layer: watch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weir/detail/watched_program.hpp"
#include "weir/export.hpp"

namespace weir::detail {

/// The library's events, as an ordered_program uses them: device-side waits. Called by one thread at a time.
class library_events {
public:
    library_events() = default;
    library_events(const library_events&) = delete;
    library_events& operator=(const library_events&) = delete;
    virtual ~library_events() = default;

    /// Records an event behind what the stream has got, and returns it. `former` is one to be used again, which nothing waits for any more;
    /// null: a new one is made.
    virtual void* record(watched_stream on, void* former) = 0;
    /// What the stream gets from now on comes after the event. The host does not block.
    virtual void wait(watched_stream on, void* event) = 0;
    /// Blocks the calling thread until the event is complete.
    virtual void synchronize(void* event) = 0;
    [[nodiscard]] virtual bool is_complete(void* event) = 0;
    virtual void destroy(void* event) noexcept = 0;
};

/// Orders what a program does with another library: before an operation, its stream waits on the device for what conflicts with it on other
/// streams, and is not known to come before it (rules O1, O2, the minimum); memory that is given out again is used only behind what its
/// former owners still do with it (rule L1); the host waits for what it would meet. What the program orders itself counts, and is not
/// waited for twice. Memory is known by its address until it is freed, events by their handles.
///
/// Waits are for events that are recorded where a stream is left, or else when they are needed: then they also cover what the stream has
/// got since. Any thread; the operations of one stream are in order if the threads that use it take turns. Functions throw what the library's
/// events throw, and std::bad_alloc: then nothing is ordered, and the caller has to wait for the device.
class WEIR_EXPORT ordered_program {
public:
    /// `events` must outlive the program.
    explicit ordered_program(library_events& events);
    /// Destroys the events. Nothing is waited for.
    ~ordered_program();
    ordered_program(const ordered_program&) = delete;
    ordered_program& operator=(const ordered_program&) = delete;

    /// An operation is about to be put into a stream, which waits for what it must come after. Returns its number.
    [[nodiscard]] std::uint64_t operation_begins(watched_stream on, std::span<const watched_access> accesses);
    /// The operation has been put there, or has failed. `results`: what it did to memory that it allocated. `may_end`: the stream may be
    /// destroyed before this program; it is not touched again but by operations.
    void operation_ends(watched_stream on, std::uint64_t number, std::span<const watched_access> results,
                        bool may_end = false);
    /// The calling thread goes on with another stream: later waits for what it has put into this one need not cover what comes next.
    void leaves(watched_stream on);
    /// The calling thread is about to read or change memory itself: blocks until what conflicts with that is complete.
    void host_access(const watched_access& what);

    /// Whether what conflicts with that is complete. Never blocks.
    [[nodiscard]] bool is_over(const watched_access& what);

    /// The library's allocator gave out the memory at `address` for use on a stream, which waits for what former owners on other streams do
    /// with it still. Its size is that of the first access; up to then it may reach to the next memory that is in use.
    void allocated(std::uint64_t address, watched_stream on);
    /// The memory's last owner let go.
    void freed(std::uint64_t address);

    /// @{
    /// What the program orders itself: as those of watched_program.
    void event_recorded(std::uint64_t event, watched_stream on);
    void event_gone(std::uint64_t event);
    void stream_waits(watched_stream on, std::uint64_t event);
    void host_waited_for_event(std::uint64_t event);
    void host_waited_for_stream(watched_stream one);
    void host_waited_for_device(int device);
    /// @}

    /// What any stream gets from now on, but for those that may end, comes after all that was put into streams up to now.
    void join_all();

    /// The devices of the streams that were seen.
    [[nodiscard]] std::vector<int> devices() const;

    /// How many waits were put into streams.
    [[nodiscard]] std::uint64_t waits() const noexcept;

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace weir::detail
