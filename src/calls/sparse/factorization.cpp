#include "calls/sparse/factorization.hpp"

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "calls/sparse/cudss_factorization.hpp"
#include "calls/sparse/cudss_library.hpp"
#include "calls/sparse/cusolver_factorization.hpp"
#include "calls/sparse/pardiso_factorization.hpp"
#include "weir/error.hpp"
#include "weir/sparse.hpp"

namespace weir::calls {

namespace {

/// By cuDSS if it is installed, else by cuSOLVER.
std::shared_ptr<factorization> make_cuda_factorization(const sparse_system& system, const device& on) {
    const char* const named = cudss_file.value();
    const bool is_left_out = named != nullptr && std::string_view(named) == "none";
    std::exception_ptr no_cudss;
    if (!is_left_out) {
        try {
            return make_cudss_factorization(system, on);
        } catch (const missing_library&) {
            if (named != nullptr) {
                throw;  // the program says which file it wants
            }
            no_cudss = std::current_exception();
        }
    }
    try {
        return make_cusolver_factorization(system, on);
    } catch (const missing_library&) {
        if (no_cudss) {
            std::rethrow_exception(
                no_cudss);  // the message about the library that is wanted first is the one that helps
        }
        throw;
    }
}

}  // namespace

void refuse_matrix(matrix_kind kind, const std::string& library, const std::string& found) {
    switch (kind) {
        case matrix_kind::positive_definite:
            throw argument_error(
                "the matrix is not positive definite (" + library + ": " + found +
                "): name it symmetric, hermitian or general, which take any matrix that is not singular");
        case matrix_kind::general:
            throw argument_error("the matrix is singular (" + library + ": " + found +
                                 "): no solution is unique; see whether a row or a column is 0, or depends on others");
        case matrix_kind::symmetric:
        case matrix_kind::hermitian:
            break;
    }
    throw argument_error("the matrix is singular, or " + library + " cannot factorize it as symmetric or hermitian (" +
                         found + "): name it general and give all elements, and see whether a row depends on others");
}

void expect_room(const sparse_system& system, std::size_t bytes, const char* library) {
    if (bytes > system.most_bytes) {
        throw out_of_memory("the factors of the matrix need " + std::to_string(bytes) + " bytes (" + library +
                            "), and the memory limit is " + std::to_string(system.most_bytes) +
                            " bytes: give a higher memory_limit");
    }
}

std::string small_pivots(std::int64_t count) {
    return std::to_string(count) + (count == 1 ? " pivot was" : " pivots were") + " nearly 0";
}

std::shared_ptr<factorization> make_factorization(const sparse_system& system, const device& on) {
    if (serves_cudss(on)) {
        return make_cuda_factorization(system, on);
    }
    if (pardiso_file.value() != nullptr) {
        return make_pardiso_factorization(system);
    }
    return is_complex(system.values) ? make_eigen_complex(system) : make_eigen_real(system);
}

}  // namespace weir::calls
