#include "site.hpp"

#include <Python.h>
#include <frameobject.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_set>

namespace weir::python {

namespace {

/// A line that was looked up, by the code and the instruction: finding a line walks through the code's table of lines.
struct known_line {
    PyObject* code = nullptr;  ///< owned, so that no other code gets its address
    int instruction = -1;
    source_location where;
    bool is_ours = false;  ///< in the package itself: whoever called that is meant
};

constexpr std::size_t known_lines = 512;

#if PY_VERSION_HEX >= 0x030B0000
int instruction_of(PyFrameObject* frame) { return PyFrame_GetLasti(frame); }
#else
int instruction_of(PyFrameObject* frame) { return frame->f_lasti; }
#endif

/// Whether the file belongs to the package `weir`.
bool is_ours(std::string_view file) {
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

source_location find() {
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

const char* interned(std::string_view text) {
    struct texts {
        std::mutex mutex;  ///< guards all; a leaf in the lock order
        std::unordered_set<std::string> all;
    };
    static auto* const known = new texts;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    const std::lock_guard lock(known->mutex);
    return known->all.emplace(text).first->c_str();
}

}  // namespace weir::python
