#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "array/elements/signature.hpp"
#include "weir/dtype.hpp"

namespace weir::elements {

/// The properties that a program is compiled for, besides the kernel's signature and body.
struct element_types {
    std::vector<dtype> inputs;
    std::vector<dtype> outputs;
    std::vector<bool>
        is_whole;  ///< for each input: the body sees all of it, a number or a raw array, and not one element

    /// The same text for the same types; a key for maps.
    [[nodiscard]] std::string fingerprint() const;
};

/// A raw input as the programs get it, in the place of a number: an array in C order.
struct raw_input {
    const void* first;
    std::int64_t count;
};

/// The text of a kernel, and which index variables its body uses.
struct element_text {
    element_text(element_signature its, std::string_view text);

    element_signature signature;
    std::string body;
    bool uses_index = false;  ///< `i`: the number of the element, in C order
    bool uses_count = false;  ///< `n`: how many elements there are
};

/// The type in which the body sees elements of `stored`: short floating-point numbers as float32, others unchanged.
[[nodiscard]] dtype seen_as(dtype stored) noexcept;

/// The name of the function in the host's program:
///
///     void weir_elements(char* const* first, const int64* row_strides, const int64* column_strides,
///                        int64 rows, int64 columns, int64 index, int64 n)
///
/// It computes rows times columns elements. Operands are the outputs, then the inputs; for a number `first` is the address of the
/// value that the body sees, for a raw input that of a raw_input. Strides are in bytes. `index` is the number of the first element.
inline constexpr const char* host_function = "weir_elements";
using host_loop = void (*)(std::byte* const* first, const std::int64_t* row_strides, const std::int64_t* column_strides,
                           std::int64_t rows, std::int64_t columns, std::int64_t index, std::int64_t n);
[[nodiscard]] std::string host_source(const element_text& what, const element_types& types);

/// A kernel for a CUDA device. Its one argument is a struct of 64-bit words:
///
///     elements, operand[operands][2] (an address, or the value that the body sees of a number), extent[rank], stride[rank][operands]
///
/// without the last two if the elements of each array lie one after the other.
struct cuda_form {
    std::uint8_t rank = 1;
    bool packed = false;
    bool wide = false;  ///< elements are counted with 64 bits

    [[nodiscard]] std::string fingerprint() const;
};
[[nodiscard]] std::string cuda_source(const element_text& what, const element_types& types, const cuda_form& form);

/// The name under which compilers report lines of the body, and the end of the type names of outputs that the body may not read.
inline constexpr const char* body_file = "body";
inline constexpr const char* write_only_ending = "_is_write_only";

}  // namespace weir::elements
