// Objects that keep other libraries' structures alive.
#pragma once

#include "bind.hpp"

#include <memory>

#include "reference.hpp"
#include "weir/buffer.hpp"
#include "weir/dlpack.hpp"

namespace weir::python {

/// A capsule that calls the deleter of what a producer's capsule held. It calls the deleter with the GIL, since the deleter may run
/// Python code. If this throws, it has been called.
template <class Managed>
nb::object deleting(Managed* what) {
    PyObject* const made = PyCapsule_New(what, "weir.imported", [](PyObject* self) {
        auto* const ends = static_cast<Managed*>(PyCapsule_GetPointer(self, "weir.imported"));
        if (ends != nullptr && ends->deleter != nullptr) {
            ends->deleter(ends);
        }
    });
    if (made == nullptr) {
        const nb::python_error no_memory;
        if (what->deleter != nullptr) {
            what->deleter(what);
        }
        throw no_memory;
    }
    return nb::steal(made);
}

/// The owner of memory that Weir was lent by Python code.
[[nodiscard]] std::unique_ptr<weir::detail::lender> lender_of(reference keeps);
/// The same for the memory of a tensor of version 1: its deleter is called with the GIL, since it may run Python code. If this throws, it
/// has been called. Needs the GIL.
[[nodiscard]] std::unique_ptr<weir::detail::lender> lender_of(exchange::dlpack_tensor tensor);

/// A tensor whose owner is a Python object.
struct imported {
    exchange::dlpack::managed_tensor_versioned managed;
    reference keeps;

    imported(const exchange::dlpack::managed_tensor_versioned& of, nb::object owner);
};

}  // namespace weir::python
