// Python objects that work in streams keeps alive.
#pragma once

#include "bind.hpp"

#include <cstddef>
#include <memory>
#include <utility>

namespace weir::python {

/// Owns a Python object on behalf of something that any thread may end, at any time, with or without the GIL (rules L3, L4):
/// the object is put into a list then, and goes at the next entry into Weir, or as soon as the interpreter takes a call from
/// elsewhere (up to 3.11 it may forget one while its threads change), on a thread that has the GIL.
/// Once the interpreter ends it stays for ever.
class reference {
public:
    /// Needs the GIL. Throws std::bad_alloc.
    explicit reference(nanobind::object object);

    /// The object. Needs the GIL.
    [[nodiscard]] nanobind::handle get() const noexcept;

    /// Refers to another object from now on. Needs the GIL; the former one may go at once.
    void replace(nanobind::object other) noexcept;

    /// How many there are, also of those that wait for the GIL.
    [[nodiscard]] static std::size_t alive() noexcept;

private:
    struct node;
    friend void drain() noexcept;
    struct let_go {
        void operator()(node* one) const noexcept;
    };
    static void free_all(node* first) noexcept;
    std::unique_ptr<node, let_go> node_;
};

/// Lets go of what others have put into the list. Needs the GIL; called at each entry into Weir. Costs a load where there is
/// nothing. Runs destructors of Python: call it under no lock.
void drain() noexcept;

}  // namespace weir::python
