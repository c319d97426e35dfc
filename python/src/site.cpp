#include "site.hpp"

#include <Python.h>
#include <frameobject.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weir/detail/mutex.hpp"

namespace weir::python {

namespace {

/// A line that was looked up, by the code and the instruction: finding a line walks through the code's table of lines.
struct known_line {
    PyObject* code = nullptr;  ///< owned, so that no other code gets its address
    int instruction = -1;
    source_location where;
    bool is_ours = false;  ///< a line of the package itself: a call is then attributed to its caller
};

constexpr std::size_t known_lines = 512;

#if PY_VERSION_HEX >= 0x030B0000
int instruction_of(PyFrameObject* frame) { return PyFrame_GetLasti(frame); }
#else
int instruction_of(PyFrameObject* frame) { return frame->f_lasti; }
#endif

/// Folders whose lines are not the program's, besides the package's own, and how often they changed.
struct folders {
    detail::mutex mutex;  ///< guards all; a leaf in the lock order
    std::vector<std::string> all;
    std::atomic<unsigned> changes{0};
};
folders& left_out() {
    static auto* const one = new folders;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

/// Whether the file belongs to the package `weir`, or to what is left out likewise.
bool is_ours(std::string_view file) {
    {
        const std::lock_guard lock(left_out().mutex);
        if (std::any_of(left_out().all.begin(), left_out().all.end(),
                        [&](const std::string& each) { return file.starts_with(each); })) {
            return true;
        }
    }
    // The folder of the package, once it is known.
    static const std::string folder = [] {
        std::string found;
        if (PyObject* const module = PyImport_AddModule("weir"); module != nullptr) {
            if (PyObject* const file_object = PyObject_GetAttrString(module, "__file__"); file_object != nullptr) {
                if (const char* const text = PyUnicode_AsUTF8(file_object); text != nullptr) {
                    found = text;
                    found.erase(found.rfind('/') + 1);
                }
                Py_DECREF(file_object);
            }
        }
        PyErr_Clear();
        return found;
    }();
    return !folder.empty() && file.substr(0, folder.size()) == folder;
}

source_location location_of(PyCodeObject* code, PyFrameObject* frame) {
    const char* const file = PyUnicode_AsUTF8(code->co_filename);
#if PY_VERSION_HEX >= 0x030B0000
    const char* const function = PyUnicode_AsUTF8(code->co_qualname);
#else
    const char* const function = PyUnicode_AsUTF8(code->co_name);
#endif
    if (file == nullptr || function == nullptr) {
        PyErr_Clear();
        return {};
    }
    const int line = PyFrame_GetLineNumber(frame);
    return {interned(file), interned(function), line > 0 ? static_cast<std::uint32_t>(line) : 0U};
}

const known_line& look_up(PyFrameObject* frame) {
    thread_local std::array<known_line, known_lines> table;
    thread_local unsigned changes = 0;
    if (const unsigned now = left_out().changes.load(std::memory_order_relaxed); now != changes) {
        changes = now;
        for (known_line& each : table) {
            Py_CLEAR(each.code);
        }
    }
    PyCodeObject* const code = PyFrame_GetCode(frame);
    const int instruction = instruction_of(frame);
    const std::size_t place =
        (reinterpret_cast<std::uintptr_t>(code) / 64 * 31 + static_cast<std::size_t>(instruction)) % known_lines;
    known_line& entry = table[place];
    PyObject* const code_object = reinterpret_cast<PyObject*>(code);
    if (entry.code == code_object && entry.instruction == instruction) {
        Py_DECREF(code_object);
        return entry;
    }
    Py_XDECREF(entry.code);
    entry = {code_object, instruction, location_of(code, frame), false};
    entry.is_ours = is_ours(entry.where.file);
    return entry;
}

/// How many calls of a stack are kept, the innermost ones, and how many stacks.
constexpr std::size_t most_calls = 100;
constexpr std::size_t most_stacks = 100'000;

/// How many objects ask for stacks to be kept.
std::atomic<int> keepers{0};

/// A stack, and the file of its first call at an address of its own: a source_location with this address identifies the stack.
struct stack {
    std::vector<source_location> calls;
    std::string file;
};

/// Whether a stack has these calls.
bool same(const stack& a, std::span<const source_location> calls) {
    return std::equal(a.calls.begin(), a.calls.end(), calls.begin(), calls.end(),
                      [](const source_location& x, const source_location& y) {
                          return x.line == y.line && x.file == y.file && x.function == y.function;
                      });
}

/// Stacks by their calls, and by the addresses of their files.
struct stacks {
    struct same_calls {
        std::size_t operator()(const stack* of) const noexcept {
            std::size_t hash = 0;
            for (const source_location& call : of->calls) {
                hash = hash * 31 + reinterpret_cast<std::uintptr_t>(call.file) + call.line;
            }
            return hash;
        }
        bool operator()(const stack* a, const stack* b) const noexcept { return same(*a, b->calls); }
    };
    detail::mutex mutex;  ///< guards what follows; a leaf in the lock order
    std::unordered_set<const stack*, same_calls, same_calls> by_calls;
    std::unordered_map<const void*, const stack*> by_file;
};
stacks& kept() {
    static auto* const all = new stacks;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *all;
}

/// The place of a stack, by which it is found again.
source_location keep(std::span<const source_location> calls, std::size_t hash) {
    // What the thread has found before: most programs come to the same lines again.
    constexpr std::size_t most_recent = 256;
    thread_local std::array<const stack*, most_recent> recent{};
    const stack*& found = recent[hash % most_recent];
    const source_location first = calls.front();
    if (found != nullptr && same(*found, calls)) {
        return {found->file.c_str(), first.function, first.line};
    }
    auto made = std::make_unique<stack>();
    made->calls.assign(calls.begin(), calls.end());
    const std::lock_guard lock(kept().mutex);
    const auto known = kept().by_calls.find(made.get());
    if (known != kept().by_calls.end()) {
        found = *known;
    } else if (kept().by_calls.size() < most_stacks) {
        made->file = first.file;
        kept().by_calls.insert(made.get());
        kept().by_file.emplace(made->file.c_str(), made.get());
        found = made.release();  // lives for ever, as locations do
    } else {
        return first;
    }
    return {found->file.c_str(), first.function, first.line};
}

source_location find_with_stack() {
    PyFrameObject* frame = PyEval_GetFrame();
    Py_XINCREF(reinterpret_cast<PyObject*>(frame));
    std::array<source_location, most_calls> calls;
    std::size_t count = 0;
    std::size_t hash = 0;
    while (frame != nullptr) {
        const known_line& line = look_up(frame);
        // Lines of the package itself on top of the stack are left out: the call is attributed to the program's line.
        if ((!line.is_ours || count != 0) && count < most_calls) {
            calls[count++] = line.where;
            hash = hash * 31 + reinterpret_cast<std::uintptr_t>(line.where.file) + line.where.line;
        }
        PyFrameObject* const caller = PyFrame_GetBack(frame);
        Py_DECREF(reinterpret_cast<PyObject*>(frame));
        frame = caller;
    }
    return count == 0 ? source_location{} : keep(std::span(calls).first(count), hash);
}

source_location find() {
    if (keepers.load(std::memory_order_relaxed) != 0) {
        return find_with_stack();
    }
    PyFrameObject* frame = PyEval_GetFrame();
    Py_XINCREF(reinterpret_cast<PyObject*>(frame));
    source_location where;
    while (frame != nullptr) {
        const known_line& line = look_up(frame);
        where = line.where;
        const bool is_the_users = !line.is_ours;
        PyFrameObject* const caller = is_the_users ? nullptr : PyFrame_GetBack(frame);
        Py_DECREF(reinterpret_cast<PyObject*>(frame));
        frame = caller;
    }
    return where;
}

}  // namespace

source_location here() noexcept {
    try {
        return find();
    } catch (...) {
        return {};
    }
}

void leave_out(std::string_view folder) {
    std::string with_slash(folder);
    with_slash += with_slash.ends_with('/') ? "" : "/";
    const std::lock_guard lock(left_out().mutex);
    if (std::find(left_out().all.begin(), left_out().all.end(), with_slash) == left_out().all.end()) {
        left_out().all.push_back(std::move(with_slash));
        left_out().changes.fetch_add(1, std::memory_order_relaxed);
    }
}

stack_keeping::stack_keeping() noexcept { keepers.fetch_add(1, std::memory_order_relaxed); }
stack_keeping::~stack_keeping() { keepers.fetch_sub(1, std::memory_order_relaxed); }

std::span<const source_location> kept_stack(const source_location& where) {
    const std::lock_guard lock(kept().mutex);
    const auto found = kept().by_file.find(where.file);
    return found == kept().by_file.end() ? std::span<const source_location>() : found->second->calls;
}

const char* interned(std::string_view text) {
    struct texts {
        detail::mutex mutex;  ///< guards all; a leaf in the lock order
        std::unordered_set<std::string> all;
    };
    static auto* const known = new texts;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    const std::lock_guard lock(known->mutex);
    return known->all.emplace(text).first->c_str();
}

}  // namespace weir::python
