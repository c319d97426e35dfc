// Memory that objects of Python lend by the buffer protocol (PEP 3118): bytearray, memoryview, array.array, mapped files, NumPy's arrays.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "bind.hpp"

#include "weir/array.hpp"
#include "weir/package.hpp"

namespace weir::python {

/// What an object lends. Held until this goes: a bytearray does not change its length meanwhile. Needs the GIL.
class lent_buffer {
public:
    /// Throws what Python raises for an object that lends nothing.
    explicit lent_buffer(nanobind::handle object);
    /// Empty for an object that lends nothing.
    [[nodiscard]] static std::optional<lent_buffer> of(nanobind::handle object);

    [[nodiscard]] const Py_buffer& memory() const noexcept { return *PyMemoryView_GET_BUFFER(view_.ptr()); }
    /// What holds the memory: a memoryview.
    [[nodiscard]] const nanobind::object& object() const noexcept { return view_; }
    [[nodiscard]] shape extents() const;
    /// The memory of elements that lie in C order.
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
    /// A copy of the elements, in C order.
    [[nodiscard]] nanobind::bytes packed() const;
    [[nodiscard]] const char* format() const noexcept;
    /// Type of the elements; empty where there is none for their format, such as structures and other byte orders.
    [[nodiscard]] std::optional<dtype> type() const noexcept;
    /// The same memory, tied to `from`; with none, wrapped. Empty where it has to be copied: for its type, or since elements are not
    /// aligned or not whole steps apart. Throws as exchange::from_dlpack.
    [[nodiscard]] std::optional<array> shared(std::shared_ptr<package> from, const source_location& where) const;

private:
    nanobind::object view_;
};

/// The memory that `lent` describes, with elements of `type`, tied to `from`; with none, wrapped. `owner` keeps it. Empty where it has more
/// dimensions than arrays have, or strides that are not whole elements. Needs the GIL. Throws as exchange::from_dlpack.
[[nodiscard]] std::optional<array> shared_memory(const Py_buffer& lent, dtype type, nanobind::object owner,
                                                 std::shared_ptr<package> from, const source_location& where);

}  // namespace weir::python
