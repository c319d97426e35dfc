// The folder random_programs/ makes programs from seeds, runs them on Weir and compares their results with the results of the
// same steps, computed one after the other, in the order in which they were enqueued:
//
//   seed --generate--> raw program --complete--> program --interpret--> results ==? expected results <--oracle-- program
//
// program.hpp defines programs: plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/ordering.hpp"

namespace random_programs {

/// What a host thread can do.
enum class step_kind : std::uint8_t {
    make_stream,
    drop_stream,  ///< however busy it is
    allocate,     ///< a new array on one stream, which is filled at once by an operation on another
    alias,        ///< a slice that is kept: it owns the memory as well
    drop_array,   ///< however busy it is
    operate,      ///< reads up to two ranges, writes one or two
    copy,
    fill,
    copy_from_host,
    read_host,
    write_host,
    open_view,  ///< the host's view of a range, which stays open
    touch_view,
    close_view,
    record,
    wait_event,
    wait_stream,
    wait_operation,
    synchronize_stream,
    synchronize_event,
    synchronize_operation,
    synchronize_device,
    query,
    keep_alive,
    order_array,
    order_stream,
    order_scope,
    order_process,
    hold,  ///< a gate holds a stream
    open,  ///< opens the gate
    push_current,
    pop_current,
};
inline constexpr std::size_t step_kinds = static_cast<std::size_t>(step_kind::pop_current) + 1;

[[nodiscard]] std::string_view name_of(step_kind kind) noexcept;

/// By which call an operation is enqueued.
enum class form : std::uint8_t { parallel_for, access, host_task };

inline constexpr int none = -1;

/// Elements [first, last) of the array in a slot.
struct range {
    int slot = none;
    int first = 0;
    int last = 0;
};

/// The same as a range of the memory behind the slot, which has a number of its own; filled in by `complete`.
struct touch {
    int memory = none;
    int begin = 0;
    int end = 0;
    bool write = false;
    bool manual = false;  ///< the program orders it itself
    int device = 0;       ///< where the memory is

    [[nodiscard]] bool conflicts_with(const touch& other) const noexcept {
        return memory == other.memory && (write || other.write) && begin < other.end && other.begin < end;
    }
};

/// One step. Which fields mean something depends on the kind; objects are named by the numbers of their slots.
struct step {
    step_kind kind = step_kind::operate;
    int number = 0;  ///< unique in the program: mixed into all values that the step writes, and its "source line"
    int stream = none;
    int other = none;  ///< the second stream, the event, the gate, the view, the operation
    int array = none;  ///< the slot that is filled or emptied
    int size = 0;      ///< elements
    std::vector<range> reads{};
    std::vector<range> writes{};
    std::vector<int> after{};  ///< operations, by their numbers
    form how = form::parallel_for;
    int spin = 0;        ///< how long the operation spins
    bool adds = false;   ///< adds a number to what it writes, so that the order does not matter
    bool fails = false;  ///< throws when half of its work is done
    int device = 0;      ///< of the stream that is made, or the one that is synchronized
    std::optional<weir::ordering_mode> mode{};

    // Filled in by `complete`.
    std::vector<touch> touches{};
    int stream_number = none;  ///< unlike the slot it is never used again
    int other_number = none;   ///< the same for the second stream
    bool current = false;      ///< the stream is the thread's current one, and the call does not name it
    int memory = none;         ///< of the slot that is filled; what dies with the slot that is emptied
};

/// Whether the step puts an operation into a stream.
[[nodiscard]] constexpr bool is_operation(step_kind kind) noexcept {
    return kind == step_kind::allocate || kind == step_kind::operate || kind == step_kind::copy ||
           kind == step_kind::fill || kind == step_kind::copy_from_host;
}
/// Whether an operation gives this range new values whatever it holds, so that it does not depend on the last writer.
[[nodiscard]] constexpr bool overwrites(step_kind kind, bool write) noexcept {
    return write && is_operation(kind) && kind != step_kind::operate;
}
/// Whether the host itself touches memory.
[[nodiscard]] constexpr bool is_host_access(step_kind kind) noexcept {
    return kind == step_kind::read_host || kind == step_kind::write_host || kind == step_kind::open_view;
}

/// Whether the host waits for work of streams.
[[nodiscard]] constexpr bool blocks_host(step_kind kind) noexcept {
    return is_host_access(kind) || kind == step_kind::synchronize_stream || kind == step_kind::synchronize_event ||
           kind == step_kind::synchronize_operation || kind == step_kind::synchronize_device;
}

// Slots. The threads of a program share the first ones, which only the first phase fills; the others are private.
inline constexpr int most_threads = 4;
inline constexpr int shared_slots = 8;
inline constexpr int private_slots = 4;
inline constexpr int slots = shared_slots + most_threads * private_slots;
inline constexpr int gates = 8;  ///< two for each thread
inline constexpr int most_devices = 3;

/// Steps that are numbered in one program, at most.
inline constexpr int most_steps = 1024;

struct program {
    std::uint64_t seed = 0;
    /// How many arrays of `tight_elements` elements the pool of a device may hold; none if there is no limit. With a limit,
    /// memory is soon handed on while other streams still use it.
    std::optional<int> tight;
    /// The devices it works on. Device 0 is the host's own unless `has_host` is false; the others are accelerators, whose
    /// memory the host does not reach. The slots and numbers of their default streams are those of the devices.
    int devices = 1;
    bool has_host = true;
    /// What each thread does in each phase. All threads end a phase before any begins the next.
    std::vector<std::vector<std::vector<step>>> phases;

    [[nodiscard]] std::size_t threads() const noexcept;
    [[nodiscard]] std::size_t steps() const noexcept;
};
inline constexpr int tight_elements = 32;

/// The program as text, one step a line.
[[nodiscard]] std::string to_string(const program& of);

}  // namespace random_programs
