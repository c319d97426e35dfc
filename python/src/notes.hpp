// What Weir has to say to Python from code that runs without the GIL.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace weir::python {

enum class note_kind : std::uint8_t {
    warning,  ///< a weir.RaceWarning, from the line that calls
    log,      ///< a line for the logger "weir"
};

/// Texts, kept until somebody has the GIL: the call into Weir that they are left in says them before it returns; what others
/// leave, such as threads of streams, the next call on any thread. In the order in which they were left.
class notes {
public:
    /// Any thread, with the GIL or without. Throws std::bad_alloc.
    static void leave(note_kind kind, std::string text);
    /// Whether anybody may leave something: all that a call asks while nobody does.
    [[nodiscard]] static bool wanted() noexcept { return wanted_.load(std::memory_order_relaxed) != 0; }
    /// Counts who may leave something.
    static void want(int more) noexcept { wanted_.fetch_add(more, std::memory_order_relaxed); }

    /// In the child of a fork: what was left for others is the parent's to say.
    static void begin_child() noexcept;

private:
    friend class note_taking;
    static inline std::atomic<int> wanted_{0};
};

/// A call into Weir that gives up the GIL. Made and destroyed with the GIL.
class note_taking {
public:
    note_taking() noexcept;
    /// Says what is left; here an exception of a handler can only be printed.
    ~note_taking();
    note_taking(const note_taking&) = delete;
    note_taking& operator=(const note_taking&) = delete;

    /// Says what was left. Throws nb::python_error where a warning is an error to the program.
    void say() const {
        if (takes_) {
            say_now();
        }
    }

private:
    static void say_now();
    bool takes_;
};

}  // namespace weir::python
