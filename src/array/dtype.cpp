// The folder array/ gives memory types and shapes, and has the operations on whole arrays that the library itself needs.
// It includes memory/, runtime/ and what is below.
#include "weir/dtype.hpp"

namespace weir {

std::string_view name_of(dtype type) noexcept {
    switch (type) {
        case dtype::float32:
            return "float32";
        case dtype::float64:
            return "float64";
        case dtype::complex64:
            return "complex64";
        case dtype::complex128:
            return "complex128";
    }
    return "unknown";
}

}  // namespace weir
