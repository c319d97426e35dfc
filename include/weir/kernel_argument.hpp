// Arguments of kernels whose types are known at run time only. Layer: array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "weir/array.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/dtype.hpp"
#include "weir/scalar.hpp"

namespace weir {

/// One argument of `kernel::launch`, for programs that know only at run time which arguments a kernel takes: interpreters, bindings of
/// other languages. It is an array and how the kernel uses it, no array, a number, or a structure; the kernel's signature says what it must
/// be.
///
/// It refers to its array or structure, which must outlive the call of `launch`: a temporary does not compile.
class kernel_argument {
public:
    /// How the kernel uses an array.
    enum class use : std::uint8_t {
        declared,  ///< as the signature says
        in,        ///< it is only read
        out,       ///< every element is written and none is read before
        inout,     ///< it is read and written
    };

    /// A number, which the launch converts to the type that the signature declares: bool and integers to any type, real numbers to real and
    /// complex ones, complex numbers to complex ones. Numbers out of the type's range are refused.
    kernel_argument(const scalar& number) noexcept : number_(number) {}  // NOLINT(google-explicit-constructor)
    /// The same for a number of C++.
    template <element Number>
    kernel_argument(Number number) noexcept : number_(number) {}  // NOLINT(google-explicit-constructor)
    /// A number of this type: the signature must declare the same type.
    kernel_argument(const scalar& number, dtype type) noexcept : type_(type), number_(number) {}

    /// No array: the kernel gets a null pointer for an array that it can do without.
    kernel_argument(std::nullptr_t) noexcept : is_null_(true), number_(false) {}  // NOLINT(google-explicit-constructor)

    /// A structure, which the kernel gets byte for byte: the signature declares "struct point p".
    template <class Structure>
        requires(std::is_trivially_copyable_v<Structure>&& std::is_class_v<Structure>)
    [[nodiscard]] static kernel_argument structure(const Structure& value) noexcept {
        return kernel_argument(std::as_bytes(std::span(&value, 1)));
    }
    template <class Structure>
    static kernel_argument structure(const Structure&& value) = delete;
    /// The same by its bytes.
    [[nodiscard]] static kernel_argument bytes(std::span<const std::byte> bytes) noexcept {
        return kernel_argument(bytes);
    }

    /// An array that is only read.
    [[nodiscard]] static kernel_argument in(const array& x) noexcept { return {x, use::in}; }
    static kernel_argument in(const array&&) = delete;
    /// An array of which every element is written and none is read before.
    [[nodiscard]] static kernel_argument out(array& x) noexcept { return {x, use::out}; }
    /// An array that is read and written.
    [[nodiscard]] static kernel_argument inout(array& x) noexcept { return {x, use::inout}; }
    /// An array that is used as the signature says, so it may be written.
    [[nodiscard]] static kernel_argument as_declared(array& x) noexcept { return {x, use::declared}; }

    /// @{
    /// For other parts of Weir: the array, null for a number and for no array; its use; whether it is no array; the bytes of a structure,
    /// null for anything else; the number; the type that was given with it.
    [[nodiscard]] const array* of_array(detail::passkey /*key*/) const noexcept { return array_; }
    [[nodiscard]] use used(detail::passkey /*key*/) const noexcept { return use_; }
    [[nodiscard]] bool is_null(detail::passkey /*key*/) const noexcept { return is_null_; }
    [[nodiscard]] std::span<const std::byte> structure_bytes(detail::passkey /*key*/) const noexcept { return bytes_; }
    [[nodiscard]] const scalar& number(detail::passkey /*key*/) const noexcept { return number_; }
    [[nodiscard]] const std::optional<dtype>& type(detail::passkey /*key*/) const noexcept { return type_; }
    /// @}

private:
    explicit kernel_argument(std::span<const std::byte> bytes) noexcept : bytes_(bytes), number_(false) {}
    kernel_argument(const array& x, use how) noexcept : array_(&x), use_(how), number_(false) {}

    const array* array_ = nullptr;
    use use_ = use::declared;
    bool is_null_ = false;
    std::optional<dtype> type_;
    std::span<const std::byte> bytes_;
    scalar number_;
};

}  // namespace weir
