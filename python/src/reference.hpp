// Python objects that are kept alive by work in streams.
#pragma once

#include "bind.hpp"

#include <cstddef>
#include <memory>
#include <utility>

namespace weir::python {

/// Owns a Python object on behalf of something that any thread may end, at any time, with or without the GIL (rules L3, L4).
/// The object is then put into a list. It is released on a thread that has the GIL: at the next entry into Weir, or when the interpreter
/// makes the call that was requested (up to 3.11 the interpreter may lose such a request while its threads switch).
/// Once the interpreter ends it stays for ever.
class reference {
public:
    /// Ends what is owned. Called with the GIL, once, under no lock.
    using ending = void (*)(void* owned) noexcept;

    /// Needs the GIL. Throws std::bad_alloc.
    explicit reference(nanobind::object object);
    /// Owns something else that needs the GIL at its end: `end` is called then. If this throws, nothing is owned. Throws std::bad_alloc.
    reference(void* owned, ending end);

    /// The object, if one is owned. Needs the GIL.
    [[nodiscard]] nanobind::handle get() const noexcept;

    /// Refers to another object from now on. Needs the GIL; the former one may go at once.
    void replace(nanobind::object other) noexcept;

    /// Releases what is owned: at once if the calling thread has the GIL, else as the destructor does. Call it under no lock, as
    /// destructors of Python may run.
    void release() noexcept;

    /// How many there are, including those that wait for the GIL.
    [[nodiscard]] static std::size_t alive() noexcept;

private:
    struct node;
    friend void drain() noexcept;
    struct let_go {
        void operator()(node* one) const noexcept;
    };
    static void free(node* one) noexcept;
    static void free_all(node* first) noexcept;
    std::unique_ptr<node, let_go> node_;
};

/// Releases what other threads have put into the list. Needs the GIL; called at each entry into Weir. Costs one load if the list is
/// empty. Runs destructors of Python: call it under no lock.
void drain() noexcept;

}  // namespace weir::python
