#include "borrow_nesting.hpp"

#include "bind.hpp"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "reference.hpp"
#include "weir/error.hpp"

namespace weir::python {

namespace {

/// Never freed: threads may end after the interpreter. Its value does not matter: a token of it is valid in one context only, and says so
/// whether that is the calling one. Contexts have no other identity, since a copy has the values of the original.
PyObject* variable = nullptr;

nb::object set_variable() {
    PyObject* const token = PyContextVar_Set(variable, Py_None);
    if (token == nullptr) {
        throw nb::python_error();
    }
    return nb::steal(token);
}

nb::object token_of_context() {
    PyObject* known = nullptr;
    if (PyContextVar_Get(variable, nullptr, &known) != 0) {
        throw nb::python_error();
    }
    if (known == nullptr) {
        set_variable();  // stays, so that tokens neither add the variable to the context nor remove it, which costs more
    }
    const nb::object former = nb::steal(known);
    return set_variable();
}

/// Uses the token up if it is of the calling context, and returns whether it is.
bool is_of_context(PyObject* token) noexcept {
    if (PyContextVar_Reset(variable, token) != 0) {
        PyErr_Clear();
        return false;
    }
    return true;
}

}  // namespace

struct borrow_nesting::place {
    place() = default;
    place(const place&) = delete;
    place& operator=(const place&) = delete;
    /// The thread may end without the GIL.
    ~place() {
        if (token != nullptr) {
            const reference owned(nb::steal(token));
        }
    }
    PyObject* token = nullptr;  ///< owned; of the context that entered the borrow. Used by the thread that entered it
    std::atomic<bool> is_gone = false;  ///< stored by any thread: the borrow was dropped before it ended
};

/// The places of the calling thread, innermost last.
class borrow_nesting::of_thread {
public:
    static of_thread& calling() {
        thread_local of_thread one;
        return one;
    }

    [[nodiscard]] place* innermost() noexcept {
        while (!all_.empty() && all_.back()->is_gone.load(std::memory_order_relaxed)) {
            all_.pop_back();
        }
        return all_.empty() ? nullptr : all_.back().get();
    }
    [[nodiscard]] bool contains(const std::shared_ptr<place>& one) const noexcept {
        return std::find(all_.begin(), all_.end(), one) != all_.end();
    }
    std::shared_ptr<place> add(nb::object of_context) {
        std::shared_ptr<place> one = spare_ ? std::exchange(spare_, nullptr) : std::make_shared<place>();
        all_.push_back(one);
        one->token = of_context.release().ptr();
        return one;
    }
    void remove_innermost(std::shared_ptr<place> ended) noexcept {
        all_.pop_back();
        spare_ = std::move(ended);
    }

private:
    std::shared_ptr<place> spare_;  ///< of a borrow that ended, for the next one
    std::vector<std::shared_ptr<place>> all_;
};

borrow_nesting::borrow_nesting() noexcept = default;

borrow_nesting::~borrow_nesting() {
    if (place_) {
        place_->is_gone.store(true, std::memory_order_relaxed);
    }
}

void borrow_nesting::initialize() {
    variable = PyContextVar_New("weir.borrows", nullptr);
    if (variable == nullptr) {
        throw nb::python_error();
    }
}

void borrow_nesting::expect_may_begin() {
    place* const around = of_thread::calling().innermost();
    if (around == nullptr) {
        return;
    }
    nb::object again = token_of_context();
    if (!is_of_context(around->token)) {
        static_cast<void>(is_of_context(again.ptr()));
        throw state_error(
            "another asyncio task (or another context) of this thread is inside a borrow(), at an await: torch and "
            "CuPy have "
            "one current stream for the whole thread, so that each task would work on the other's stream. Have that "
            "task "
            "leave its borrow before it awaits, and await the stream's event (stream.record()) afterwards; or borrow "
            "in "
            "another thread, as by asyncio.to_thread");
    }
    // The old token is used up. Both are of the same context.
    const nb::object old = nb::steal(std::exchange(around->token, again.release().ptr()));
}

void borrow_nesting::begin() { place_ = of_thread::calling().add(token_of_context()); }

void borrow_nesting::end() {
    if (!is_inside()) {
        return;
    }
    of_thread& mine = of_thread::calling();
    if (mine.innermost() != place_.get()) {
        throw state_error(
            mine.contains(place_)
                ? "a borrow() ends before another one that was entered inside of it: leave first the borrow "
                  "that was entered last"
                : "a borrow() ends on another thread than the one that entered it, whose streams it would "
                  "not restore: leave it on the thread that entered it");
    }
    if (!is_of_context(place_->token)) {
        throw state_error(
            "a borrow() ends in another context than the one that entered it: leave it in the asyncio task that "
            "entered "
            "it, or in the code that entered it");
    }
    const nb::object used = nb::steal(std::exchange(place_->token, nullptr));
    mine.remove_innermost(std::move(place_));
}

}  // namespace weir::python
