#include "scopes.hpp"

#include <deque>
#include <utility>
#include <vector>

#include "reference.hpp"

namespace weir::python::scopes {

namespace {

/// Never freed: threads may end after the interpreter.
PyObject* variable = nullptr;

/// A scope that holds for the thread. Owns `node` and `token`.
struct held_scope {
    explicit held_scope(scope_node one) : node(one.get().ptr()) {
        switch (one.kind()) {
            case scope_kind::stream:
                hold_stream(one.what(), what);
                break;
            case scope_kind::ordering:
                hold_ordering(one.what(), what);
                break;
            case scope_kind::memory:
                hold_memory(one.what(), what);
                break;
            case scope_kind::label:
                hold_label(one.what(), what);
                break;
        }
        Py_INCREF(node);
    }
    PyObject* node;
    PyObject* token =
        nullptr;  ///< resets the context variable to what it was before the scope; null if another thread entered it
    held what;
};

/// What holds for a thread, innermost last. A deque, since scopes stay where they are made.
class thread_scopes {
public:
    thread_scopes() = default;
    thread_scopes(const thread_scopes&) = delete;
    thread_scopes& operator=(const thread_scopes&) = delete;
    /// The thread ends, and may not have the GIL.
    ~thread_scopes() {
        while (!all_.empty()) {
            if (PyObject* const token = std::exchange(all_.back().token, nullptr)) {
                const reference owned(nb::steal(token));
            }
            const reference last(end_last());
        }
    }

    [[nodiscard]] bool contains(nb::handle node) const noexcept {
        for (const held_scope& one : all_) {
            if (one.node == node.ptr()) {
                return true;
            }
        }
        return false;
    }
    [[nodiscard]] nb::handle innermost() const noexcept { return all_.empty() ? Py_None : all_.back().node; }
    void begin(scope_node one) { all_.emplace_back(one); }
    void keep_token(nb::object token) noexcept { all_.back().token = token.release().ptr(); }
    /// The token of the innermost scope, if that is a `with` of this object.
    [[nodiscard]] PyObject* token_of_innermost(nb::handle what) const noexcept {
        return !all_.empty() && scope_node(all_.back().node).what().is(what) ? all_.back().token : nullptr;
    }
    /// Needs the GIL.
    nb::object end_last() noexcept {
        const nb::object token = nb::steal(all_.back().token);
        nb::object node = nb::steal(all_.back().node);
        all_.pop_back();
        return node;
    }

private:
    std::deque<held_scope> all_;
};

thread_scopes& of_thread() {
    thread_local thread_scopes one;
    return one;
}

nb::object value() {
    PyObject* found = nullptr;
    if (PyContextVar_Get(variable, nullptr, &found) != 0) {
        throw nb::python_error();
    }
    return nb::steal(found);
}

/// Returns the token that undoes it.
nb::object set(nb::handle node) {
    PyObject* const token = PyContextVar_Set(variable, node.ptr());
    if (token == nullptr) {
        throw nb::python_error();
    }
    return nb::steal(token);
}

nb::object node_of(nb::handle what, scope_kind kind, nb::handle outer) {
    const nb::object number = nb::steal(PyLong_FromLong(static_cast<long>(kind)));
    PyObject* const made = PyTuple_Pack(3, what.ptr(), number.ptr(), outer.ptr());
    if (made == nullptr) {
        throw nb::python_error();
    }
    return nb::steal(made);
}

/// Makes the thread leave and enter the scopes that lie between those that hold for it and `wanted`.
void move_to(thread_scopes& mine, scope_node wanted) {
    // Owns the scopes that end, since each owns those around it, until this function returns: a destructor of Python may
    // call Weir, which follows the context, too.
    nb::object innermost;
    scope_node common = wanted;
    std::vector<scope_node> missing;
    while (common && !mine.contains(common.get())) {
        missing.push_back(common);
        common = common.outer();
    }
    while (!mine.innermost().is(common.get())) {
        nb::object ended = mine.end_last();
        if (!innermost.is_valid()) {
            innermost = std::move(ended);
        }
    }
    for (auto one = missing.rbegin(); one != missing.rend(); ++one) {
        mine.begin(*one);
    }
}

}  // namespace

void initialize() {
    variable = PyContextVar_New("weir.scopes", Py_None);
    if (variable == nullptr) {
        throw nb::python_error();
    }
}

void enter(nb::handle what, scope_kind kind) {
    were_entered.store(true, std::memory_order_relaxed);
    thread_scopes& mine = of_thread();
    const nb::object outer = value();
    const nb::object node = node_of(what, kind, outer);
    if (!mine.innermost().is(outer)) {
        move_to(mine, scope_node(outer));
    }
    mine.begin(scope_node(node));
    mine.keep_token(set(node));  // if `set` throws, the next call follows the context back to where it was
}

namespace {

/// Fast path of `leave`: the scope is the innermost one, and this thread began it in this context. Otherwise changes nothing.
bool leave_innermost(nb::handle what) {
    thread_scopes& mine = of_thread();
    PyObject* const token = mine.token_of_innermost(what);
    if (token == nullptr || !value().is(mine.innermost())) {
        return false;
    }
    if (PyContextVar_Reset(variable, token) != 0) {
        PyErr_Clear();  // the token belongs to the context that this one is a copy of
        return false;
    }
    const nb::object ended = mine.end_last();
    return true;
}

}  // namespace

bool leave(nb::handle what, scope_kind kind) {
    if (leave_innermost(what)) {
        return true;
    }
    const nb::object before = value();
    scope_node one(before);
    std::vector<scope_node> later;
    while (one && one.kind() != kind) {
        later.push_back(one);
        one = one.outer();
    }
    if (!one) {
        return false;
    }
    // Streams are equal if they are the same stream, whichever object is asked; the others are equal to themselves alone.
    const int is_same = PyObject_RichCompareBool(one.what().ptr(), what.ptr(), Py_EQ);
    if (is_same < 0) {
        throw nb::python_error();
    }
    if (is_same == 0) {
        return false;
    }
    nb::object after = nb::borrow(one.outer().get());
    for (auto each = later.rbegin(); each != later.rend(); ++each) {
        after = node_of(each->what(), each->kind(), after);
    }
    set(after);
    follow_variable();
    return true;
}

scope_node follow_variable() {
    const nb::object wanted = value();
    thread_scopes& mine = of_thread();
    if (!mine.innermost().is(wanted)) {
        move_to(mine, scope_node(wanted));
    }
    return scope_node(wanted);  // it holds for the thread now, which owns it
}

void forget() noexcept {
    try {
        set(nb::none());
        follow_variable();
    } catch (const nb::python_error&) {  // NOLINT(bugprone-empty-catch): then they stay until the context goes
    }
}

}  // namespace weir::python::scopes
