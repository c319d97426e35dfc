// What a program does with another library, reported to check and trace by hooks in that library. Layer: watch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/access.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/export.hpp"
#include "weir/source_location.hpp"

namespace weir::detail {

/// A stream of the library: the number of its device, and the driver's handle. A handle of 0 is the legacy default stream.
struct watched_stream {
    int device = 0;
    std::uint64_t handle = 0;

    friend bool operator==(const watched_stream&, const watched_stream&) = default;
    friend bool operator<(const watched_stream& a, const watched_stream& b) noexcept {
        return a.device != b.device ? a.device < b.device : a.handle < b.handle;
    }
};

/// Memory that the library allocated.
struct watched_block {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};

/// One access of an operation of the library, or of the host.
struct watched_access {
    std::uint64_t memory = 0;              ///< the address where the memory begins, as the library allocated it
    std::uint64_t bytes = 0;               ///< its size
    order::footprint where;                ///< the bytes, counted from there
    access_mode mode = access_mode::read;  ///< whether it changes them
    bool is_certain = true;                ///< whether it touches all of them
};

/// Numbers what another library has (streams, events, memory) and reports to the process's observers, such as a check_scope, what the
/// library does with them (rule V1). The program orders all of it: nothing is inserted. Memory is known by its address until it is freed,
/// events by their handles; what was there before is new when it is first used. Enqueues nothing and never blocks on devices.
///
/// Any thread, but one call at a time: so observers hear of one stream in its order if the threads that use it take turns. The caller's lock
/// comes before Weir's in the lock order. Throws std::bad_alloc; then the report is lost.
class WEIR_EXPORT watched_program {
public:
    /// `package`: the library's name, "torch". `device_kind`: its devices are called that, ":" and their numbers.
    watched_program(std::string package, std::string device_kind);
    ~watched_program();
    watched_program(const watched_program&) = delete;
    watched_program& operator=(const watched_program&) = delete;

    /// An operation was put into a stream. The label is kept by its address.
    void operation(watched_stream on, const char* label, std::span<const watched_access> accesses,
                   const source_location& where);
    /// The calling thread reads or changes memory itself. Nothing is said of memory that no operation has used.
    void host_access(const watched_access& what, const source_location& where);

    /// The memory in use that begins at the address, or else has it inside, as far as its size is known by an access.
    [[nodiscard]] std::optional<watched_block> block_at(std::uint64_t address) const;

    /// The library's allocator gave out the memory at `address`, whose size is that of the first access, for use on a stream.
    void allocated(std::uint64_t address, watched_stream on, const source_location& where);
    /// The memory's last owner let go, and the allocator may give it out again on the same stream at once.
    void freed(std::uint64_t address);
    /// The allocator keeps the memory, once it is freed, until what the stream has got by then is complete.
    void kept_until(std::uint64_t memory, watched_stream on);

    /// The event holds what the stream has got up to now.
    void event_recorded(std::uint64_t event, watched_stream on, const source_location& where);
    /// The event is destroyed.
    void event_gone(std::uint64_t event);
    /// What the stream gets from now on comes after what the event holds. An event that was not recorded holds nothing.
    void stream_waits(watched_stream on, std::uint64_t event, const source_location& where);
    /// @{
    /// The calling thread has waited, or has asked and got the answer "done".
    void host_waited_for_event(std::uint64_t event, const source_location& where);
    void host_waited_for_stream(watched_stream one, const source_location& where);
    void host_waited_for_device(int device, const source_location& where);
    /// @}

    /// Something that the hooks do not see, in words; reported once.
    void unseen(std::string_view what);

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace weir::detail
