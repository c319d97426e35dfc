#include "calls/matmul/blas_library.hpp"

#include "calls/shared_library.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/error.hpp"

namespace weir::calls {

namespace {

shared_library open_blas_file() {
    constexpr detail::setting variable = "WEIR_BLAS_LIBRARY";
    constexpr const char* package = "libopenblas0";
    try {
        return shared_library({"libopenblas.so.0", variable, package});
    } catch (const missing_library&) {
        if (variable.value() != nullptr) {
            throw;
        }
        try {
            return shared_library({"libblas.so.3", variable, package});
        } catch (const missing_library&) {
            // The message about the library that is wanted first is the one that helps.
        }
        throw;
    }
}

blas_functions open_blas() {
    const shared_library library = open_blas_file();
    blas_functions f;
    library.find("cblas_sgemm", f.sgemm);
    library.find("cblas_dgemm", f.dgemm);
    library.find("cblas_cgemm", f.cgemm);
    library.find("cblas_zgemm", f.zgemm);
    library.find("cblas_sgemv", f.sgemv);
    library.find("cblas_dgemv", f.dgemv);
    library.find("cblas_cgemv", f.cgemv);
    library.find("cblas_zgemv", f.zgemv);
    f.file = library.file();
    using get_config = const char*();
    if (void* const found = library.try_find("openblas_get_config")) {
        f.version = reinterpret_cast<get_config*>(found)();
    }
    return f;
}

}  // namespace

const blas_functions& blas() {
    const detail::fork_section whole;  // else a child could wait for a thread that opens it, and that it does not have
    // If opening throws, the next call tries again. Never destroyed: products may be pending until the very end.
    static const auto* const functions = new blas_functions(open_blas());
    return *functions;
}

}  // namespace weir::calls
