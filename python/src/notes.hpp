// Notes: what code without the GIL has to report to Python.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace weir::python {

enum class note_kind : std::uint8_t {
    warning,  ///< a weir.RaceWarning, from the line that calls
    log,      ///< a line for the logger "weir"
};

/// Texts, kept until a thread has the GIL. A call into Weir delivers the notes that are left during it before it returns. Notes of other
/// threads, such as those of streams, are delivered by the next call on any thread. In the order in which they were left.
class notes {
public:
    /// Any thread, with the GIL or without. Throws std::bad_alloc.
    static void leave(note_kind kind, std::string text);
    /// Whether any code may leave notes: all that a call checks while there is no such code.
    [[nodiscard]] static bool wanted() noexcept { return wanted_.load(std::memory_order_relaxed) != 0; }
    /// Counts the sources that may leave notes.
    static void want(int more) noexcept { wanted_.fetch_add(more, std::memory_order_relaxed); }

    /// In the child of a fork: the parent delivers the notes that other threads left.
    static void begin_child() noexcept;

private:
    friend class note_taking;
    static inline std::atomic<int> wanted_{0};
};

/// A call into Weir that releases the GIL. Made and destroyed with the GIL.
class note_taking {
public:
    note_taking() noexcept;
    /// Delivers what is left; here an exception of a handler can only be printed.
    ~note_taking();
    note_taking(const note_taking&) = delete;
    note_taking& operator=(const note_taking&) = delete;

    /// Delivers what was left. Throws nb::python_error where a warning is an error to the program.
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
