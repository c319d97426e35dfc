// What a sparse system on a CUDA device costs through Weir, beside the same library called by hand: cuDSS, or cuSOLVER where that is
// missing or WEIR_CUDSS_LIBRARY is "none".
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "calls/sparse/cudss_library.hpp"
#include "calls/sparse/cusolver_library.hpp"
#include "contest.hpp"
#include "cuda_device.hpp"
#include "sparse_grid.hpp"
#include "weir/weir.hpp"

namespace weir::bench {

namespace {

const calls::cudss_functions* cudss_if_there() {
    try {
        return &calls::cudss();
    } catch (const missing_library&) {
        return nullptr;
    }
}

/// The system in device memory.
struct sparse_operands {
    device on = cuda_device();
    const driver::context* in = &context_of(on);
    stream s{on};
    raw_stream raw{*in};
    csr_matrix a;
    array b;
    array x;

    explicit sparse_operands(const sparse_problem& what)
        : a(grid(what.side).on(s)), b(ones({a.shape[0]}, dtype::float64, s)), x(zeros(b.shape(), dtype::float64, s)) {
        make_current(*in);
        s.synchronize();
    }
};

contestant through_solver(const sparse_problem& what) {
    struct rig : sparse_operands {
        direct_solver by;
        explicit rig(const sparse_problem& of) : sparse_operands(of), by(a, b, {.kind = of.kind}) {
            try {
                by.plan(s);
            } catch (const missing_library& why) {
                throw std::runtime_error(why.what());
            }
            by.factorize(s);
            s.synchronize();
        }
    };
    const auto data = std::make_shared<rig>(what);
    return {"Weir, direct_solver", what.times, [data, what] {
                for (std::size_t i = 0; i < what.times; ++i) {
                    if (what.factorizes) {
                        data->by.factorize(data->s);
                    }
                    data->by.solve(data->s, data->x);
                }
                data->s.synchronize();
            }};
}

/// cuDSS with the settings that Weir uses.
struct cudss_by_hand : sparse_operands {
    const calls::cudss_functions* f = cudss_if_there();
    void* handle = nullptr;
    void* config = nullptr;
    void* data = nullptr;
    void* matrix = nullptr;
    void* right = nullptr;
    void* left = nullptr;

    explicit cudss_by_hand(const sparse_problem& what) : sparse_operands(what) {
        if (f == nullptr) {
            throw std::runtime_error("cuDSS is not installed, or WEIR_CUDSS_LIBRARY is none");
        }
        if (f->is_before_0_8()) {
            throw std::runtime_error("this cuDSS is older than 0.8");
        }
        calls::expect_cudss(f->create(&handle), "cudssCreate");
        calls::expect_cudss(f->set_stream(handle, raw.handle()), "cudssSetStream");
        calls::expect_cudss(f->config_create(&config), "cudssConfigCreate");
        const bool is_general = what.kind == matrix_kind::general;
        if (is_general) {
            const int how = calls::cudss_matching_auto;
            calls::expect_cudss(f->config_set(config, calls::cudss_config_matching, &how, sizeof how),
                                "cudssConfigSet");
        }
        calls::expect_cudss(f->data_create(handle, &data), "cudssDataCreate");
        const auto type =
            is_general ? calls::cudss_matrix_type::general : calls::cudss_matrix_type::positive_definite_real;
        const auto indices = static_cast<int>(calls::cudss_number::r32i);
        const auto numbers = static_cast<int>(calls::cudss_number::r64f);
        const std::int64_t n = a.shape[0];
        calls::expect_cudss(f->matrix_create_csr(&matrix, n, n, a.values.size(), a.row_offsets.device_data(), nullptr,
                                                 a.column_indices.device_data(), a.values.device_data(), indices,
                                                 indices, numbers, static_cast<int>(type),
                                                 static_cast<int>(calls::cudss_view::full), calls::cudss_base_zero),
                            "cudssMatrixCreateCsr");
        calls::expect_cudss(
            f->matrix_create_dense(&right, n, 1, n, b.device_data(), numbers, calls::cudss_column_major),
            "cudssMatrixCreateDn");
        calls::expect_cudss(f->matrix_create_dense(&left, n, 1, n, x.device_data(), numbers, calls::cudss_column_major),
                            "cudssMatrixCreateDn");
        execute(calls::cudss_phase::analysis);
        execute(calls::cudss_phase::factorization);
        raw.synchronize();
    }
    ~cudss_by_hand() {
        f->matrix_destroy(left);
        f->matrix_destroy(right);
        f->matrix_destroy(matrix);
        f->data_destroy(handle, data);
        f->config_destroy(config);
        f->destroy(handle);
    }
    cudss_by_hand(const cudss_by_hand&) = delete;
    cudss_by_hand& operator=(const cudss_by_hand&) = delete;

    void execute(calls::cudss_phase phase) const {
        calls::expect_cudss(f->execute(handle, static_cast<int>(phase), config, data, matrix, left, right),
                            "cudssExecute");
    }
    /// Whether the library succeeded. Waits for it.
    void expect_success() const {
        int info = 0;
        std::size_t written = 0;
        calls::expect_cudss(f->data_get(handle, data, calls::cudss_data_info, &info, sizeof info, &written),
                            "cudssDataGet");
        if (info != 0) {
            throw std::runtime_error("cuDSS could not factorize the matrix");
        }
    }
};

/// Puts phase after phase into the stream, and waits at the end. `is_checked`: looks at the result of each phase, as a program has to that
/// must not go on with wrong factors.
contestant through_cudss(const sparse_problem& what, bool is_checked) {
    const auto data = std::make_shared<cudss_by_hand>(what);
    return {is_checked ? "cuDSS, each phase checked" : "cuDSS", what.times, [data, what, is_checked] {
                for (std::size_t i = 0; i < what.times; ++i) {
                    if (what.factorizes) {
                        data->execute(calls::cudss_phase::factorization);
                        if (is_checked) {
                            data->expect_success();
                        }
                    }
                    data->execute(calls::cudss_phase::solve);
                    if (is_checked) {
                        data->raw.synchronize();
                    }
                }
                data->raw.synchronize();
            }};
}

/// cuSOLVER keeps no factors for device memory: each solution costs one call, whether there is something to factorize or not.
contestant through_cusolver(const sparse_problem& what) {
    struct rig : sparse_operands {
        const calls::cusolver_functions* f = nullptr;
        void* handle = nullptr;
        void* description = nullptr;

        explicit rig(const sparse_problem& of) : sparse_operands(of) {
            if (cudss_if_there() != nullptr) {
                throw std::runtime_error("Weir computes with cuDSS: WEIR_CUDSS_LIBRARY=none chooses cuSOLVER");
            }
            int version = 0;
            in->api().driver_version(&version);
            try {
                f = &calls::cusolver(version);
            } catch (const missing_library& why) {
                throw std::runtime_error(why.what());
            }
            calls::expect_cusolver(f->create(&handle), "cusolverSpCreate");
            calls::expect_cusolver(f->create_description(&description), "cusparseCreateMatDescr");
            calls::expect_cusolver(f->set_stream(handle, raw.handle()), "cusolverSpSetStream");
        }
        ~rig() {
            if (f != nullptr) {
                f->destroy_description(description);
                f->destroy(handle);
            }
        }
        rig(const rig&) = delete;
        rig& operator=(const rig&) = delete;

        void solve(matrix_kind kind) const {
            int singular = -1;
            const auto by = kind == matrix_kind::positive_definite ? f->cholesky.d : f->qr.d;
            calls::expect_cusolver(
                by(handle, static_cast<int>(a.shape[0]), static_cast<int>(a.values.size()), description,
                   a.values.device_data(), reinterpret_cast<const int*>(a.row_offsets.device_data()),
                   reinterpret_cast<const int*>(a.column_indices.device_data()), b.device_data(), 1e-12,
                   calls::cusolver_reorder, x.device_data(), &singular),
                "cusolverSpDcsrlsv");
        }
    };
    const auto data = std::make_shared<rig>(what);
    return {"cuSOLVER", what.times, [data, what] {
                for (std::size_t i = 0; i < what.times; ++i) {
                    data->solve(what.kind);
                }
                data->raw.synchronize();
            }};
}

contest beside_libraries(const char* name, const char* text, const sparse_problem& what) {
    return {name,
            text,
            comparison::with_peers,
            {[what] { return through_solver(what); }, [what] { return through_cudss(what, false); },
             [what] { return through_cudss(what, true); }, [what] { return through_cusolver(what); }}};
}

const contest small_cuda_solution =
    beside_libraries("cuda/sparse_small", "a solution of 64 unknowns, general", {8, matrix_kind::general, false, 100});
const contest cuda_solution = beside_libraries("cuda/sparse_solve", "a solution of 40,000 unknowns, general",
                                               {200, matrix_kind::general, false, 10});
const contest cuda_refactorized =
    beside_libraries("cuda/sparse_factorize", "factorization and solution of 40,000 unknowns, general",
                     {200, matrix_kind::general, true, 2});
const contest cuda_definite =
    beside_libraries("cuda/sparse_definite", "factorization and solution of 40,000 unknowns, positive definite",
                     {200, matrix_kind::positive_definite, true, 2});

}  // namespace

}  // namespace weir::bench
