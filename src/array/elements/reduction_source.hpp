#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "array/elements/signature.hpp"
#include "array/elements/source.hpp"
#include "frontier/small_vector.hpp"
#include "weir/dtype.hpp"

namespace weir::elements {

/// The texts of a reduction.
struct reduction_text {
    element_signature signature;
    std::string map;                       ///< an expression: what of one element of each input is reduced
    std::string reduce;                    ///< an expression of a and b, two such values
    std::string post;                      ///< statements that assign the outputs from the reduced value a
    std::string identity;                  ///< an expression: the value of no elements; empty: there is none
    std::vector<element_parameter> value;  ///< the fields of the reduced values; one without a name: they are numbers

    [[nodiscard]] bool has_fields() const noexcept { return !value.front().name.empty(); }
};

/// The types of a reduced value in one call: of the number, or of each field, as the texts see them.
using value_types = detail::small_vector<dtype, 4>;
/// The bytes of such a value.
[[nodiscard]] std::size_t bytes_of_value(const value_types& value) noexcept;

/// The names under which compilers report lines of the texts.
inline constexpr const char* map_file = "map";
inline constexpr const char* reduce_file = "reduce";
inline constexpr const char* post_file = "post";
inline constexpr const char* identity_file = "identity";

/// The host's program: its one function is called host_function, and is a host_reduction.
[[nodiscard]] std::string host_source(const reduction_text& what, const element_types& types, const value_types& value);

/// A kernel for a CUDA device. Its one argument is a struct of 64-bit words:
///
///     results, elements, total, lanes, across, blocks, parts_from, parts_to, in[inputs][2], out[outputs],
///     result_extent[rank], result_stride[rank][outputs + inputs], extent[reduced_rank], stride[reduced_rank][inputs]
///
/// It reduces elements, of which each result has `total`, or parts that a launch before left at parts_from; writes outputs, or parts
/// to parts_to. Parts are values [part][result].
struct reduction_form {
    std::uint8_t rank = 1;
    std::uint8_t reduced_rank = 1;
    bool wide = false;  ///< elements are counted with 64 bits
    bool first = true;  ///< reads elements
    bool last = true;   ///< writes outputs
    bool none = false;  ///< reads nothing: the one element of each result is the identity

    [[nodiscard]] std::string fingerprint() const;
};
[[nodiscard]] std::string cuda_source(const reduction_text& what, const element_types& types, const value_types& value,
                                      const reduction_form& form);

}  // namespace weir::elements
