// Objects that keep another library's structures alive, and that library's exchange table (rules L4, X1).
#include <cstdint>
#include <memory>
#include <utility>

#include "attributes.hpp"
#include "exchange.hpp"
#include "interpreter.hpp"
#include "ownership.hpp"
#include "reference.hpp"
#include "weir/dlpack.hpp"
#include "weir/exchange_table.hpp"

namespace weir::python {

namespace dlpack = exchange::dlpack;

namespace {

/// Lets go of memory at once where that can be.
struct python_owner {
    reference keeps;
    void operator()() noexcept { keeps.release(); }
};

}  // namespace

std::unique_ptr<weir::detail::lender> lender_of(reference keeps) {
    return std::make_unique<weir::detail::lender_of<python_owner>>(python_owner{std::move(keeps)});
}

std::unique_ptr<weir::detail::lender> lender_of(exchange::dlpack_tensor tensor) {
    reference keeps(tensor.get(), [](void* owned) noexcept {
        const exchange::dlpack_tensor last(static_cast<dlpack::managed_tensor_versioned*>(owned));
    });
    static_cast<void>(tensor.release());
    return lender_of(std::move(keeps));
}

imported::imported(const dlpack::managed_tensor_versioned& of, nb::object owner)
    : managed(of), keeps(std::move(owner)) {
    managed.context = this;
    managed.deleter = [](dlpack::managed_tensor_versioned* self) { delete static_cast<imported*>(self->context); };
}

exchange::dlpack_tensor owned_by_python(dlpack::managed_tensor_versioned* of) {
    dlpack::managed_tensor_versioned as;
    as.version = of->version;
    if (of->version.major == 1) {  // of other versions nothing else may be read
        as = *of;
    }
    nb::object owner = deleting(of);
    return exchange::dlpack_tensor(&(new imported(as, std::move(owner)))->managed);
}

const dlpack::exchange_table_header* table_header_of(nb::handle object) {
    static const attribute_name name(table_attribute);
    const nb::object found = attribute_of_class(object, name);
    if (!found.is_valid()) {
        return nullptr;
    }
    if (PyCapsule_IsValid(found.ptr(), table_name) == 0) {
        return nullptr;  // any other version follows no published layout
    }
    return static_cast<const dlpack::exchange_table_header*>(PyCapsule_GetPointer(found.ptr(), table_name));
}

const dlpack::exchange_table* table_of(nb::handle object) {
    const dlpack::exchange_table_header* const found = table_header_of(object);
    return found == nullptr ? nullptr : exchange::readable_table(found);
}

}  // namespace weir::python
