// The interpreter that Weir lives in: its lock, its signals, its end.
#pragma once

#include "bind.hpp"

#include <string>
#include <type_traits>
#include <utility>

#include "notes.hpp"
#include "reference.hpp"
#include "scopes.hpp"
#include "weir/detail/interruption.hpp"
#include "weir/source_location.hpp"

namespace weir::runtime {
class stream_state;
}

namespace weir::python {

/// What the end of the interpreter changes (rule L3).
class interpreter {
public:
    /// Whether the interpreter is ending: threads that do not have the GIL may not ask for it any more.
    [[nodiscard]] static bool is_ending() noexcept;

    /// Takes the GIL back on a thread that released it: `state`. A thread that comes too late, since the interpreter is ending
    /// on another one, stays here for ever: Python would end it within a destructor, and with it the process.
    static void take_gil_back(PyThreadState* state) noexcept;
    /// The same for a thread that may have waited for long: the interpreter does not begin to end meanwhile.
    static void take_gil_back_after_wait(PyThreadState* state) noexcept;

    /// Watches the exit of the interpreter, after the handlers that the program registered later than this. Calls `last` at the end of
    /// the exit.
    static void watch_exit(nb::module_& m, void (*last)() noexcept);
};

/// Code of a stream that runs Python: while it lives, the interpreter does not end. Made without the GIL.
class visit {
public:
    /// Throws state_error once the interpreter is ending.
    visit();
    ~visit();
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
};

/// A host task while it runs: the interpreter's end can say which one it waits for.
class task_visit {
public:
    /// Throws state_error once the interpreter is ending, std::bad_alloc. `label` and the file's name live for ever. `in`: the stream that
    /// the task is an operation of.
    task_visit(const char* label, const source_location& where, const runtime::stream_state* in);
    ~task_visit();
    task_visit(const task_visit&) = delete;
    task_visit& operator=(const task_visit&) = delete;

    [[nodiscard]] std::string in_words() const;

    /// Throws state_error in a task of this stream, which would wait for itself.
    static void expect_not_in(const runtime::stream_state& one);

private:
    visit inside_;
    const runtime::stream_state* in_;
    const task_visit* around_;  ///< the task that enqueued this one on a device without queues, where it runs at once
    const char* label_;
    source_location where_;
};

/// Counts a task that is to run Python, from its enqueueing to its end: the interpreter waits for it at its exit.
class expected_visit {
public:
    expected_visit() noexcept;
    expected_visit(expected_visit&& other) noexcept : counts_(std::exchange(other.counts_, false)) {}
    expected_visit& operator=(expected_visit&&) = delete;
    ~expected_visit();

private:
    bool counts_ = true;
};

/// Without the GIL while it lives.
template <void (*TakeBack)(PyThreadState*) noexcept>
class gil_given_away {
public:
    gil_given_away() noexcept : state_(PyEval_SaveThread()) {}
    ~gil_given_away() { TakeBack(state_); }
    gil_given_away(const gil_given_away&) = delete;
    gil_given_away& operator=(const gil_given_away&) = delete;

private:
    PyThreadState* state_;
};

/// Throws what Python's signal handlers raise, such as KeyboardInterrupt. Called without the GIL.
void check_signals();

/// Calls `fn` without the GIL, then delivers the notes that were left meanwhile.
template <void (*TakeBack)(PyThreadState*) noexcept = interpreter::take_gil_back, class F>
decltype(auto) without_gil(F&& fn) {
    const note_taking notes;
    const auto call = [&]() -> decltype(auto) {
        const gil_given_away<TakeBack> no_gil;
        return std::forward<F>(fn)();
    };
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
        call();
        notes.say();
    } else {
        decltype(auto) result = call();
        notes.say();
        return result;
    }
}

/// Calls `fn` without the GIL, on a thread that follows its Python context. While it waits, signals are handled: Ctrl-C ends the wait,
/// and the call.
template <void (*TakeBack)(PyThreadState*) noexcept, class F>
decltype(auto) answering(F&& fn) {
    drain();
    scopes::follow();
    return without_gil<TakeBack>([&]() -> decltype(auto) {
        const weir::detail::interruptible answers(check_signals);
        if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
            std::forward<F>(fn)();
            answers.expect_not_ended();
        } else {
            decltype(auto) result = std::forward<F>(fn)();
            answers.expect_not_ended();
            return result;
        }
    });
}

/// For calls that may put work into a stream (rule S1). Such a call waits where it must: for room at the memory limit, in the streams of
/// a device without queues, for views that the host has of what changes.
template <class F>
decltype(auto) released(F&& fn) {
    return answering<interpreter::take_gil_back>(std::forward<F>(fn));
}

/// For calls whose purpose is to wait.
template <class F>
decltype(auto) waiting(F&& fn) {
    return answering<interpreter::take_gil_back_after_wait>(std::forward<F>(fn));
}

}  // namespace weir::python
