// Scopes of a Python context: `with stream:`, `with weir.ordering(...):`, `with weir.memory.use(...):`, `with weir.label(...):` (rule S7).
#pragma once

#include "bind.hpp"

#include <atomic>
#include <cstdint>
#include <variant>

#include "weir/detail/current_stream.hpp"
#include "weir/detail/label_scope.hpp"
#include "weir/memory_resource.hpp"
#include "weir/ordering.hpp"

namespace weir::python {

/// A context is what `contextvars` calls so: each asyncio task has one, and each thread outside of tasks. The library knows
/// threads only. So a context variable holds the scopes of the context, and each call into Weir first makes the calling thread
/// follow it: scopes of the task that ran there before end, those of the context begin.
enum class scope_kind : std::uint8_t { stream, ordering, memory, label };

/// A scope, and through it those around it. Immutable, since a context that is copied shares them with the original.
class scope_node {
public:
    /// A tuple of three, or None outside of all scopes.
    explicit scope_node(nb::handle node) noexcept : node_(node) {}

    [[nodiscard]] explicit operator bool() const noexcept { return !node_.is_none(); }
    [[nodiscard]] nb::handle get() const noexcept { return node_; }
    /// The object of the `with`.
    [[nodiscard]] nb::handle what() const noexcept { return PyTuple_GET_ITEM(node_.ptr(), 0); }
    [[nodiscard]] scope_kind kind() const noexcept {
        return static_cast<scope_kind>(PyLong_AsLong(PyTuple_GET_ITEM(node_.ptr(), 1)));
    }
    [[nodiscard]] scope_node outer() const noexcept { return scope_node(PyTuple_GET_ITEM(node_.ptr(), 2)); }
    /// This one, or the innermost around it that is of the kind; false if there is none.
    [[nodiscard]] scope_node innermost(scope_kind kind) const noexcept {
        scope_node one = *this;
        while (one && one.kind() != kind) {
            one = one.outer();
        }
        return one;
    }

private:
    nb::handle node_;
};

namespace scopes {

/// The part of a scope that holds for a thread.
using held =
    std::variant<std::monostate, weir::detail::resumed_use, ordering_scope, memory::use, weir::detail::label_scope>;

/// @{
/// Makes the scope of this object hold for the calling thread: one for each kind.
void hold_stream(nb::handle what, held& into);
void hold_ordering(nb::handle what, held& into);
void hold_memory(nb::handle what, held& into);
void hold_label(nb::handle what, held& into);
/// @}

/// Makes the context variable: once, when the module is imported.
void initialize();

/// Begins a scope in the calling context. Needs the GIL, as all of these. Throws std::bad_alloc, nb::python_error.
void enter(nb::handle what, scope_kind kind);

/// Ends the innermost scope of the kind, if it is that of `what`; otherwise changes nothing and returns false. Scopes of other
/// kinds stay, also those that began later.
[[nodiscard]] bool leave(nb::handle what, scope_kind kind);

/// Makes the calling thread follow its context, and returns the context's innermost scope: valid until the next call.
scope_node follow_variable();

/// Whether any scope was entered since the import.
inline std::atomic<bool> were_entered{false};

/// The same; costs one load in a program without scopes. Each call into Weir begins with it.
inline scope_node follow() {
    return were_entered.load(std::memory_order_relaxed) ? follow_variable() : scope_node(nb::none());
}

/// Ends all scopes of the calling context: at the interpreter's exit.
void forget() noexcept;

}  // namespace scopes

}  // namespace weir::python
