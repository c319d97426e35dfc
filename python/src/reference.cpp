#include "reference.hpp"

#include <atomic>
#include <utility>

#include "interpreter.hpp"
#include "weir/detail/acting.hpp"

namespace weir::python {

struct reference::node {
    void* owned;
    ending end;
    node* next;
    weir::detail::acting_operation ended_by = {};  ///< the operation that let go of it, if it waits for the GIL
};

namespace {

/// Objects that wait for the GIL: a lock-free list, so that any thread may add to it.
std::atomic<void*> dropped{nullptr};
/// Whether the interpreter has been asked to call `drain`, and has not begun to. An object that is added after it begins asks anew.
std::atomic<bool> asked{false};
/// How many references own something.
std::atomic<std::size_t> references{0};

void end_object(void* object) noexcept { Py_DECREF(static_cast<PyObject*>(object)); }

/// Whether the calling thread has the GIL. Not PyGILState_Check, which always says so once there is a second interpreter. No thread has
/// it where there is none: the extension's objects have locks there instead, under which no destructor of Python may run.
bool has_gil() noexcept {
#ifdef Py_GIL_DISABLED
    return false;
#else
#if PY_VERSION_HEX >= 0x030d0000
    const PyThreadState* const running = PyThreadState_GetUnchecked();
#else
    const PyThreadState* const running = _PyThreadState_UncheckedGet();
#endif
    return running != nullptr && running == PyGILState_GetThisThreadState();
#endif
}

int drain_when_asked(void* /*unused*/) {
    asked.store(false, std::memory_order_seq_cst);  // also if other threads have released everything meanwhile
    drain();
    return 0;
}

}  // namespace

reference::reference(nb::object object) : reference(object.ptr(), end_object) { object.release(); }

reference::reference(void* owned, ending end) : node_(new node{owned, end, nullptr}) {
    references.fetch_add(1, std::memory_order_relaxed);
}

std::size_t reference::alive() noexcept { return references.load(std::memory_order_relaxed); }

nb::handle reference::get() const noexcept { return static_cast<PyObject*>(node_->owned); }

void reference::replace(nb::object other) noexcept {
    const nb::object former =
        nb::steal(static_cast<PyObject*>(std::exchange(node_->owned, static_cast<void*>(other.release().ptr()))));
}

void reference::release() noexcept {
    if (!node_ || interpreter::is_ending() || !has_gil()) {
        node_.reset();
        return;
    }
    if (PyErr_Occurred() == nullptr) [[likely]] {
        free(node_.release());
        return;
    }
    // An array may go while an exception is on its way, which other libraries' code need not expect.
    PyObject* type = nullptr;
    PyObject* value = nullptr;
    PyObject* trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    free(node_.release());
    PyErr_Restore(type, value, trace);
}

void reference::let_go::operator()(node* one) const noexcept {
    one->ended_by = weir::detail::acts_for();
    void* first = dropped.load(std::memory_order_relaxed);
    do {
        one->next = static_cast<node*>(first);
    } while (!dropped.compare_exchange_weak(first, one, std::memory_order_seq_cst, std::memory_order_relaxed));
    // The interpreter accepts a call from any thread. If it has too many pending calls, the next entry into Weir drains.
    if (!asked.exchange(true, std::memory_order_seq_cst) &&
        (interpreter::is_ending() || Py_AddPendingCall(drain_when_asked, nullptr) != 0)) {
        asked.store(false, std::memory_order_seq_cst);
    }
}

void reference::free(node* one) noexcept {
    one->end(one->owned);
    delete one;  // NOLINT(cppcoreguidelines-owning-memory): its owner or the list gave it up
    references.fetch_sub(1, std::memory_order_relaxed);
}

void reference::free_all(node* first) noexcept {
    while (first != nullptr) {
        node* const next = first->next;
        const weir::detail::acting_scope self(first->ended_by);
        free(first);
        first = next;
    }
}

void drain() noexcept {
    if (dropped.load(std::memory_order_relaxed) == nullptr) {
        return;
    }
    reference::free_all(static_cast<reference::node*>(dropped.exchange(nullptr, std::memory_order_seq_cst)));
}

}  // namespace weir::python
