#pragma once

#include <array>
#include <optional>
#include <vector>

#include "random_programs/program.hpp"

namespace random_programs {

/// The objects that exist while a program is enqueued: which slots hold what, and which modes are set. Knows nothing of values and
/// order.
class world {
public:
    /// With the devices of the program.
    explicit world(const program& of);

    struct stream_slot {
        int number = none;  ///< none: empty
    };
    struct array_slot {
        int memory = none;  ///< none: empty
        int offset = 0;
        int size = 0;
    };
    struct view {
        int memory = none;  ///< none: not open
        int begin = 0;
        int end = 0;
        bool write = false;
    };

    [[nodiscard]] bool has_stream(int slot) const noexcept { return streams_[index(slot)].number != none; }
    [[nodiscard]] const array_slot& array(int slot) const noexcept { return arrays_[index(slot)]; }
    [[nodiscard]] const std::array<view, slots>& views() const noexcept { return views_; }
    [[nodiscard]] bool is_closed(int gate) const noexcept { return !holds_[index(gate)].empty(); }
    /// The steps by which a closed gate holds streams.
    [[nodiscard]] const std::vector<int>& holds(int gate) const noexcept { return holds_[index(gate)]; }
    /// The slot of a stream; none if it is in no slot any more.
    [[nodiscard]] int slot_of(int stream_number) const noexcept;
    [[nodiscard]] int device_of_stream(int slot) const noexcept {
        return streams_of_all_times_[index(streams_[index(slot)].number)].device;
    }
    [[nodiscard]] int device_of_array(int slot) const noexcept { return memories_[index(array(slot).memory)].device; }
    /// How many allocations of a device have owners.
    [[nodiscard]] int live_memories(int device) const noexcept;
    [[nodiscard]] bool has_scope(std::size_t thread) const noexcept { return !threads_[thread].scopes.empty(); }
    [[nodiscard]] bool has_current(std::size_t thread) const noexcept { return !threads_[thread].current.empty(); }

    /// Fills in what a step means now. Returns false if it means nothing: a slot is empty, or full, or a range does not fit.
    [[nodiscard]] bool resolve(step& one, std::size_t thread) const;
    /// Makes the changes of a resolved step.
    void apply(const step& one, std::size_t thread);

private:
    static std::size_t index(int slot) noexcept { return static_cast<std::size_t>(slot); }
    /// The ordering mode of what the step does, apart from modes of arrays (rule O5: array, stream, scope, process).
    [[nodiscard]] weir::ordering_mode mode_of(const step& one, std::size_t thread) const;
    [[nodiscard]] bool resolve_ranges(step& one, std::size_t thread) const;
    [[nodiscard]] bool resolve_stream(step& one, std::size_t thread) const;
    [[nodiscard]] bool is_default(int slot) const noexcept { return slot < devices_; }
    /// Whether the code of an operation reaches the memory that it touches.
    [[nodiscard]] bool reaches_all(const step& one) const;
    [[nodiscard]] bool host_reaches_all(const step& one) const;
    [[nodiscard]] bool is_last_owner(int memory) const noexcept { return memories_[index(memory)].owners == 1; }

    struct memory_state {
        int owners = 0;
        int device = 0;
        std::optional<weir::ordering_mode> mode;
    };
    struct stream_state {
        int device = 0;
        std::optional<weir::ordering_mode> mode;
    };
    struct thread_state {
        std::vector<int> current;  ///< stream numbers
        std::vector<weir::ordering_mode> scopes;
    };
    int devices_;
    bool has_host_;
    std::array<stream_slot, slots> streams_{};
    std::vector<stream_state> streams_of_all_times_;  ///< by stream number
    std::array<array_slot, slots> arrays_{};
    std::vector<memory_state> memories_;
    std::array<view, slots> views_{};
    std::array<std::vector<int>, gates> holds_;
    std::array<thread_state, most_threads> threads_;
    weir::ordering_mode process_ = weir::ordering_mode::automatic;
};

}  // namespace random_programs
