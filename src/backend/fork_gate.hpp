#pragma once

#include <cstdint>

namespace weir::backend {

/// Keeps threads out of sections (detail::fork_section) while one forks.
///
///     thread:  says that it is inside; reads the gate          (no fence: the other side pays for both)
///     fork:    closes the gate; membarrier(2); reads who is inside
///
/// Either the thread sees the closed gate and goes back, or the fork sees it inside. Where the system has no membarrier,
/// threads make a fence of their own.
class fork_gate {
public:
    /// Whether the calling thread is in a section.
    [[nodiscard]] static bool is_inside() noexcept;
    /// From now on no thread but the caller enters a section that it is not in. One thread at a time.
    static void close() noexcept;
    static void open() noexcept;
    /// Whether other threads are in sections. While it is closed.
    [[nodiscard]] static bool others_inside() noexcept;

    /// In the child: there are no other threads.
    static void begin_child() noexcept;
    /// How many forks lie between the first process and this one: tells what was made before the last of them.
    [[nodiscard]] static std::uint64_t generation() noexcept;
};

}  // namespace weir::backend
