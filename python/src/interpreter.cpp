#include "interpreter.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "errors.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

namespace weir::python {

namespace {

using namespace std::chrono_literals;
using namespace nb::literals;

/// How long the interpreter's exit waits while no task makes progress.
constexpr auto patience = 10s;

std::atomic<bool> ending{false};
/// Where it ends; written before `ending`.
std::atomic<std::thread::id> ending_on{};

[[nodiscard]] bool is_ending_elsewhere() noexcept {
    return ending.load(std::memory_order_seq_cst) &&
           ending_on.load(std::memory_order_relaxed) != std::this_thread::get_id();
}

[[noreturn]] void stay() noexcept {
    while (true) {
        ::pause();
    }
}

/// The threads that run Python, and the tasks that are to run it. Lives for ever, since threads of streams outlive the interpreter.
struct visitors {
    detail::mutex mutex;  ///< guards what follows; a leaf in the lock order
    detail::condition_variable changed;
    std::uint64_t inside = 0;              ///< threads that run Python now
    std::uint64_t expected = 0;            ///< tasks that are in a stream, and not over
    std::vector<const task_visit*> tasks;  ///< those that run now, in the order in which they began
};
visitors& all() {
    static auto* const one = new visitors;  // NOLINT(cppcoreguidelines-owning-memory)
    return *one;
}

// At the start of the program, so that a fork never copies it half constructed.
[[maybe_unused]] const visitors& made_at_start = all();

/// A thread or task that was counted before a fork is not counted in the child.
void count_down(std::uint64_t& count) noexcept { count -= count == 0 ? 0 : 1; }

/// In the child of a fork (rule L3): the threads that ran Python, and the tasks that were to run it, stay with the parent.
void begin_child() noexcept {
    ::new (&all()) visitors;  // made anew, not destroyed: threads that are gone may hold its lock
    notes::begin_child();
}

/// Waits until `over`, as long as any task makes progress; false if none does any more.
template <class Over>
bool wait_for_visitors(Over&& over) {
    visitors& known = all();
    std::unique_lock lock(known.mutex);
    std::uint64_t left = known.expected;
    auto since = std::chrono::steady_clock::now();
    while (!known.changed.wait_for(lock, 50ms, [&] { return over(known); })) {
        lock.unlock();
        check_signals();
        lock.lock();
        const auto now = std::chrono::steady_clock::now();
        if (known.expected != left || known.inside != 0) {
            left = known.expected;
            since = now;
        } else if (now - since >= patience) {
            return false;
        }
    }
    return true;
}

/// What a process that Ctrl-C ended exits with, as shells have it.
constexpr int interrupted_status = 130;

/// What the process exits with when a signal's handler has raised this at the end. Has the GIL.
int status_of(nb::python_error& raised) {
    if (raised.matches(PyExc_KeyboardInterrupt)) {
        return interrupted_status;
    }
    const nb::object code =
        raised.matches(PyExc_SystemExit) ? nb::getattr(exception_in(raised), "code", nb::none()) : nb::object();
    if (code.is_valid() && (code.is_none() || PyLong_Check(code.ptr()) != 0)) {
        return code.is_none() ? 0 : nb::cast<int>(code);
    }
    raised.restore();
    PyErr_WriteUnraisable(nullptr);
    return 1;
}

std::string what_is_left() {
    visitors& known = all();
    const std::lock_guard lock(known.mutex);
    std::string text;
    for (const task_visit* const each : known.tasks) {
        text += "  " + each->in_words() + ", which has not returned\n";
    }
    if (const std::uint64_t others = known.expected - std::min<std::uint64_t>(known.expected, known.tasks.size());
        others != 0) {
        text += "  " + std::to_string(others) + " more that had not begun\n";
    }
    return text;
}

void flush(const char* name) {
    try {
        if (const nb::handle stream = PySys_GetObject(name); stream.is_valid() && !stream.is_none()) {
            stream.attr("flush")();
        }
    } catch (nb::python_error&) {  // NOLINT(bugprone-empty-catch): a closed one has nothing to say
    }
}

/// A task that runs Python cannot be ended from outside, and Python cannot end around it: so the process ends here. This thread keeps
/// the GIL, so that no Python runs meanwhile; a further Ctrl-C ends it at once.
[[noreturn]] void leave(nb::python_error& raised) {
    const nb::gil_scoped_acquire gil;
    std::signal(SIGINT, SIG_DFL);
    const int status = status_of(raised);
    const std::string left = what_is_left();
    std::fprintf(stderr, "weir: %s ended the program, which was at its end and waited for %s%s",
                 status == interrupted_status ? "Ctrl-C" : "a signal's handler",
                 left.empty() ? "other threads\n" : "host tasks:\n", left.c_str());
    flush("stdout");
    flush("stderr");
    std::exit(status);
}

/// The exit of the interpreter: tasks that were enqueued and run Python finish first, as threads do. After that no other thread asks
/// for the GIL any more.
void shut_down() {
    const auto end = [] {
        ending_on.store(std::this_thread::get_id(), std::memory_order_relaxed);
        ending.store(true, std::memory_order_seq_cst);
        wait_for_visitors([](const visitors& one) { return one.inside == 0; });
    };
    const nb::gil_scoped_release no_gil;
    try {
        if (!wait_for_visitors([](const visitors& one) { return one.expected == 0; })) {
            std::fputs(
                "weir: host tasks that were enqueued have not begun to run when the program ended, and never will: "
                "synchronize their streams before the end\n",
                stderr);
        }
        end();
    } catch (nb::python_error& raised) {
        leave(raised);
    }
}

/// Objects that work in streams still refers to when the interpreter ends stay for ever, on purpose (rule L3). WEIR_LOG=debug reports
/// them, and also what nanobind finds.
void say_what_leaks() noexcept {
    const char* const level = std::getenv("WEIR_LOG");
    const bool is_asked = level != nullptr && std::string_view(level) == "debug";
    const std::size_t left = reference::alive();
    nb::set_leak_warnings(is_asked && left == 0);
    if (is_asked && left != 0) {
        std::fprintf(stderr,
                     "weir: Python ends while work in streams refers to %zu of its objects, which are never freed\n",
                     left);
    }
}

}  // namespace

void interpreter::take_gil_back(PyThreadState* state) noexcept {
    if (is_ending_elsewhere()) {
        stay();
    }
    PyEval_RestoreThread(state);
}

void interpreter::take_gil_back_after_wait(PyThreadState* state) noexcept {
    visitors& known = all();
    {
        std::unique_lock lock(known.mutex);
        if (is_ending_elsewhere()) {
            lock.unlock();
            stay();
        }
        ++known.inside;
    }
    PyEval_RestoreThread(state);
    const std::lock_guard lock(known.mutex);
    count_down(known.inside);
    known.changed.notify_all();
}

bool interpreter::is_ending() noexcept { return ending.load(std::memory_order_seq_cst); }

void interpreter::watch_exit(nb::module_& m, void (*last)() noexcept) {
    m.def("_shut_down", [last] {
        shut_down();
        last();
        drain();
        say_what_leaks();
    });
    nb::module_::import_("atexit").attr("register")(m.attr("_shut_down"));
    m.def("_begin_child", begin_child);
    nb::module_ os = nb::module_::import_("os");
    if (nb::hasattr(os, "register_at_fork")) {
        os.attr("register_at_fork")("after_in_child"_a = m.attr("_begin_child"));
    }
}

visit::visit() {
    visitors& known = all();
    const std::lock_guard lock(known.mutex);
    if (ending.load(std::memory_order_seq_cst)) {
        throw state_error("Python is ending, and runs no more host tasks: synchronize their streams before the end");
    }
    ++known.inside;
}

visit::~visit() {
    visitors& known = all();
    const std::lock_guard lock(known.mutex);
    count_down(known.inside);
    known.changed.notify_all();
}

namespace {
thread_local const task_visit* task_of_thread = nullptr;  ///< the innermost one that this thread runs
}

task_visit::task_visit(const char* label, const source_location& where, const runtime::stream_state* in)
    : in_(in), around_(task_of_thread), label_(label), where_(where) {
    visitors& known = all();
    const std::lock_guard lock(known.mutex);
    known.tasks.push_back(this);
    task_of_thread = this;
}

void task_visit::expect_not_in(const runtime::stream_state& one) {
    for (const task_visit* each = task_of_thread; each != nullptr; each = each->around_) {
        if (each->in_ == &one) {
            throw state_error(
                "the host task " + each->in_words() +
                " waits for the stream that it runs in, which is not over before the task is: let the task "
                "return, and wait for the stream elsewhere");
        }
    }
}

task_visit::~task_visit() {
    task_of_thread = around_;
    visitors& known = all();
    const std::lock_guard lock(known.mutex);
    std::erase(known.tasks, this);
}

std::string task_visit::in_words() const {
    return std::string("\"") + label_ + "\" (" + where_.file + ":" + std::to_string(where_.line) + ")";
}

expected_visit::expected_visit() noexcept {
    visitors& known = all();
    const std::lock_guard lock(known.mutex);
    ++known.expected;
}

expected_visit::~expected_visit() {
    if (counts_) {
        visitors& known = all();
        const std::lock_guard lock(known.mutex);
        count_down(known.expected);
        known.changed.notify_all();
    }
}

void check_signals() {
    std::optional<visit> inside;  // the interpreter does not begin to end meanwhile
    if (!interpreter::is_ending()) {
        try {
            inside.emplace();
        } catch (const state_error&) {
            return;
        }
    } else if (is_ending_elsewhere()) {
        return;
    }
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) {
        throw nb::python_error();
    }
}

}  // namespace weir::python
