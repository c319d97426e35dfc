#include "reference.hpp"

#include <atomic>
#include <utility>

#include "interpreter.hpp"

namespace weir::python {

struct reference::node {
    PyObject* object;
    node* next;
};

namespace {

/// What waits for the GIL: lock-free, so that any thread may add to it.
std::atomic<void*> dropped{nullptr};
/// Whether the interpreter has been asked to call `drain`, and has not begun to. What is added after it begins asks anew.
std::atomic<bool> asked{false};
/// Objects that are owned by a reference.
std::atomic<std::size_t> owned{0};

int drain_when_asked(void* /*unused*/) {
    asked.store(false, std::memory_order_seq_cst);  // also if others have let go of everything meanwhile
    drain();
    return 0;
}

}  // namespace

reference::reference(nb::object object) : node_(new node{object.ptr(), nullptr}) {
    object.release();
    owned.fetch_add(1, std::memory_order_relaxed);
}

std::size_t reference::alive() noexcept { return owned.load(std::memory_order_relaxed); }

nb::handle reference::get() const noexcept { return node_->object; }

void reference::replace(nb::object other) noexcept {
    const nb::object former = nb::steal(std::exchange(node_->object, other.release().ptr()));
}

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
        owned.fetch_sub(1, std::memory_order_relaxed);
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
