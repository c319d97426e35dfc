// The folder array/ gives memory types and shapes, and has the operations on whole arrays: copies, arithmetic, reductions.
// It includes memory/, runtime/ and what is below.
#include "weir/dtype.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "weir/error.hpp"

namespace weir {

namespace {

constexpr std::array<std::string_view, 15> names = {"bool",     "int8",    "int16",   "int32",     "int64",
                                                    "uint8",    "uint16",  "uint32",  "uint64",    "float16",
                                                    "bfloat16", "float32", "float64", "complex64", "complex128"};

}  // namespace

std::string_view name_of(dtype type) noexcept { return names[static_cast<std::size_t>(type)]; }

dtype dtype_from_name(std::string_view name) {
    const auto* const found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) {
        return static_cast<dtype>(found - names.begin());
    }
    std::string message = "no element type is called \"" + std::string(name) + "\": take one of";
    for (const std::string_view one : names) {
        message += (one == names.front() ? " " : ", ") + std::string(one);
    }
    throw argument_type_error(message);
}

std::span<const dtype> all_dtypes() noexcept {
    static constexpr auto all = [] {
        std::array<dtype, names.size()> made{};
        for (std::size_t i = 0; i < made.size(); ++i) {
            made[i] = static_cast<dtype>(i);
        }
        return made;
    }();
    return all;
}

}  // namespace weir
