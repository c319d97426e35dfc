// Functions of Weir's own Python modules, looked up once.
#pragma once

#include "bind.hpp"

#include <atomic>

namespace weir::python {

/// A function of a Python module, which is imported at the first use; the function then lives as long as the process. For `static constinit`
/// variables: an import may give the GIL to another thread, so that a `static` variable initialised by one would deadlock, its guard held by
/// the one thread and the GIL by the other.
class module_function {
public:
    constexpr module_function(const char* module, const char* name) noexcept : module_(module), name_(name) {}

    /// Needs the GIL, and may give it away. Throws what the import raises.
    [[nodiscard]] nb::handle get() {
        if (PyObject* const known = found_.load(std::memory_order_acquire)) {
            return known;
        }
        nb::object made = nb::module_::import_(module_).attr(name_);
        PyObject* known = nullptr;
        // Of two threads that look it up at the same time, the second one drops what it found.
        if (found_.compare_exchange_strong(known, made.ptr(), std::memory_order_acq_rel)) {
            return made.release();
        }
        return known;
    }

private:
    const char* module_;
    const char* name_;
    std::atomic<PyObject*> found_{nullptr};  ///< owned; the exchange pairs with the load
};

}  // namespace weir::python
