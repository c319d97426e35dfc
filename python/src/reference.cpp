#include "reference.hpp"

#include <atomic>

#include "interpreter.hpp"

namespace weir::python {

struct reference::node {
    PyObject* object;
    node* next;
};

namespace {

/// What waits for the GIL: lock-free, so that any thread may add to it.
std::atomic<void*> dropped{nullptr};
/// Whether the interpreter has been asked to call `drain`. Pairs with the exchange in it: an object that is added after the
/// list was taken asks anew.
std::atomic<bool> asked{false};

int drain_when_asked(void* /*unused*/) {
    drain();
    return 0;
}

}  // namespace

reference::reference(nb::object object) : node_(new node{object.ptr(), nullptr}) { object.release(); }

nb::handle reference::get() const noexcept { return node_->object; }

void reference::let_go::operator()(node* one) const noexcept {
    void* first = dropped.load(std::memory_order_relaxed);
    do {
        one->next = static_cast<node*>(first);
    } while (!dropped.compare_exchange_weak(first, one, std::memory_order_seq_cst, std::memory_order_relaxed));
    // The interpreter takes a call from any thread. If it has too many already, the next entry into Weir drains.
    if (!asked.exchange(true, std::memory_order_seq_cst) &&
        (interpreter::is_ending() || Py_AddPendingCall(drain_when_asked, nullptr) != 0)) {
        asked.store(false, std::memory_order_seq_cst);
    }
}

void reference::free_all(node* first) noexcept {
    while (first != nullptr) {
        node* const next = first->next;
        Py_DECREF(first->object);
        delete first;  // NOLINT(cppcoreguidelines-owning-memory): the list owned it
        first = next;
    }
}

void drain() noexcept {
    if (dropped.load(std::memory_order_relaxed) == nullptr) {
        return;
    }
    asked.store(false, std::memory_order_seq_cst);
    reference::free_all(static_cast<reference::node*>(dropped.exchange(nullptr, std::memory_order_seq_cst)));
}

}  // namespace weir::python
