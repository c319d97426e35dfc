// Arguments of kernels whose bodies are functions of Python or C: how they are checked, and the words that a compiled body gets.
#pragma once

#include "bind.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "accesses.hpp"
#include "weir/array.hpp"
#include "weir/detail/submission.hpp"
#include "weir/device.hpp"
#include "weir/dtype.hpp"
#include "weir/scalar.hpp"

namespace weir::python {

/// Words before those of the arguments: the extents, and those of a group.
inline constexpr std::size_t header_words = 6;

/// Index spaces have up to so many dimensions.
inline constexpr std::size_t most_dimensions = 3;

/// An index space; extents of dimensions that it has not are 1.
struct index_space {
    std::size_t dimensions = 0;
    std::array<std::int64_t, most_dimensions> extents{1, 1, 1};
    std::array<std::int64_t, most_dimensions> local{1, 1, 1};
    bool has_groups = false;

    index_space(nb::handle global, nb::handle of_group) : dimensions(nb::len(global)) {
        for (std::size_t d = 0; d < dimensions; ++d) {
            extents[d] = nb::cast<std::int64_t>(global[d]);
        }
        if (!of_group.is_none()) {
            has_groups = true;
            for (std::size_t d = 0; d < dimensions; ++d) {
                local[d] = nb::cast<std::int64_t>(of_group[d]);
            }
        }
    }
    /// Along one dimension.
    [[nodiscard]] std::int64_t groups(std::size_t d) const noexcept { return extents[d] / local[d]; }
    /// What the loop of the host counts: indices, or groups.
    [[nodiscard]] std::int64_t count() const noexcept { return groups(0) * groups(1) * groups(2); }
};

/// What the program says of a body's parameters.
struct body_signature {
    const char* label;                           ///< of the kernel
    std::vector<std::string> names;              ///< of its parameters behind the index
    std::vector<std::optional<dtype>> declared;  ///< of a C function: the types of its numbers; nothing for an array
};

/// The arguments of one launch. Needs the GIL.
class body_arguments {
public:
    /// `given`: a tuple, which must outlive this, and so must the signature. Throws argument_error, argument_type_error.
    body_arguments(const body_signature& of, nb::handle given);

    /// Where the first array is.
    [[nodiscard]] std::optional<device> place() const;

    /// Appends what compiled code depends on.
    void add_to_key(std::string& text) const;
    /// The same in words: for each argument its element type, its dimensions and their layout ("C", "F", "A"); a number has none.
    [[nodiscard]] nb::object description() const;

    /// What the body gets: for an array its address, extents and strides, for a number one or two words.
    void add_words(std::vector<std::uint64_t>& words) const;
    /// Which of the words each argument begins with.
    [[nodiscard]] std::vector<std::size_t> places() const;

    /// What the launch reads and writes: as the program declares it, else as the compiler found it: `uses`, of each argument (weir/_numba_uses.py).
    /// Throws argument_error for a declaration that the body contradicts.
    [[nodiscard]] std::vector<runtime::access_request> accesses(std::span<const unsigned> uses,
                                                                const index_space& space) const;

private:
    struct argument {
        array* of_array = nullptr;
        std::optional<operand_use> declared;
        char layout = 'C';
        dtype type = dtype::float64;
        std::array<std::uint64_t, 2> value{};
    };

    [[nodiscard]] std::string start(std::size_t position) const;
    void add(nb::handle given);
    [[noreturn]] void refuse_token(nb::handle given) const;
    void add_number(dtype type, const scalar& number);
    /// The type of the C function's parameter, which the number is converted to.
    [[nodiscard]] dtype declared_type(const scalar& number) const;
    void store_declared(const scalar& number, dtype type, std::byte* to) const;
    void add_array(array& x, std::optional<operand_use> declared);
    void expect_known(dtype type) const;
    [[nodiscard]] operand_use use_of(std::size_t k, unsigned found, const index_space& space) const;

    const body_signature& of_;
    std::size_t count_;
    std::vector<argument> all_;
    std::vector<nb::object> imported_;  ///< arrays of other packages
};

}  // namespace weir::python
