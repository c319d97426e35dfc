#include "calls/sparse/cudss_factorization.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/capability/libraries.hpp"
#include "calls/sparse/cudss_library.hpp"
#include "calls/sparse/device_indices.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/memory.hpp"
#include "weir/sparse.hpp"
#include "weir/stream.hpp"

namespace weir::calls {

namespace {

int number_of(dtype type) noexcept {
    if (type == dtype::int32) {
        return static_cast<int>(cudss_number::r32i);
    }
    if (type == dtype::int64) {
        return static_cast<int>(cudss_number::r64i);
    }
    if (is_complex(type)) {
        return static_cast<int>(type == dtype::complex64 ? cudss_number::c32f : cudss_number::c64f);
    }
    return static_cast<int>(type == dtype::float32 ? cudss_number::r32f : cudss_number::r64f);
}

int type_of(const sparse_system& system) noexcept {
    switch (system.kind) {
        case matrix_kind::general:
            return static_cast<int>(cudss_matrix_type::general);
        case matrix_kind::symmetric:
            return static_cast<int>(cudss_matrix_type::symmetric);
        case matrix_kind::hermitian:
            return static_cast<int>(cudss_matrix_type::hermitian);
        case matrix_kind::positive_definite:
            break;
    }
    return static_cast<int>(is_complex(system.values) ? cudss_matrix_type::positive_definite_complex
                                                      : cudss_matrix_type::positive_definite_real);
}

int view_of(matrix_triangle given) noexcept {
    switch (given) {
        case matrix_triangle::full:
            return static_cast<int>(cudss_view::full);
        case matrix_triangle::lower:
            return static_cast<int>(cudss_view::lower);
        case matrix_triangle::upper:
            break;
    }
    return static_cast<int>(cudss_view::upper);
}

/// The library's description of a matrix or of columns, without device memory.
class cudss_matrix {
public:
    explicit cudss_matrix(const cudss_functions& by) noexcept : by_(&by) {}
    ~cudss_matrix() {
        if (made_ != nullptr) {
            by_->matrix_destroy(made_);
        }
    }
    cudss_matrix(const cudss_matrix&) = delete;
    cudss_matrix& operator=(const cudss_matrix&) = delete;

    [[nodiscard]] void* get() const noexcept { return made_; }
    [[nodiscard]] void** put() noexcept { return &made_; }

private:
    const cudss_functions* by_;
    void* made_ = nullptr;
};

/// The columns of one solution: the library refers to them until the solution is computed.
struct cudss_columns {
    cudss_matrix right;
    cudss_matrix left;

    explicit cudss_columns(const cudss_functions& by) noexcept : right(by), left(by) {}
};

class cudss_factorization final : public factorization {
public:
    cudss_factorization(const sparse_system& system, const device& on)
        : system_(system),
          library_(&cudss()),
          on_(on),
          in_(on.state(detail::key).driver().can().libraries),
          own_(on, {.name = "cuDSS"}) {
        try {
            in_->run_in_context([this] {
                expect_cudss(library_->create(&handle_), "cudssCreate");
                // Before the library has any data, and never another one: see solve.
                expect_cudss(library_->set_stream(handle_, own_.handle()), "cudssSetStream");
                expect_cudss(library_->config_create(&config_), "cudssConfigCreate");
                match_rows();
                expect_cudss(library_->data_create(handle_, &data_), "cudssDataCreate");
            });
        } catch (...) {
            destroy();
            throw;
        }
    }
    ~cudss_factorization() override { destroy(); }

    [[nodiscard]] std::string library() const override { return "cuDSS (" + library_->file + ")"; }
    [[nodiscard]] const manner& how() const noexcept override {
        // The library's data has one workspace, so solutions are computed one after the other.
        static constexpr manner on_cuda{phase_form::host_task, true, true, true, false};
        return on_cuda;
    }

    void analyze(const std::byte* offsets, const std::byte* columns, const std::byte* values) override {
        is_analyzed_ = false;
        expect_sound(offsets, columns);
        in_->run_in_context([&] { make_matrix(offsets, columns, values); });
        is_postponed_ = system_.kind == matrix_kind::general && are_zero(values);
        if (!is_postponed_) {
            execute_and_wait(cudss_phase::analysis);
        }
        is_analyzed_ = true;
    }

    void expect_places(const std::byte* offsets, const std::byte* columns) override {
        const indices_on_host on_host(on_, system_, offsets, columns);
        indices_.expect(system_, on_host.offsets(), on_host.columns());
    }

    void factorize(const std::byte* values) override {
        is_factorized_ = false;
        if (!is_analyzed_) {
            // The analysis has failed: then this may run, and is reported as failed for the same reason (rule K4).
            return;
        }
        in_->run_in_context([&] {
            expect_cudss(library_->matrix_set_values(matrix_.get(), const_cast<std::byte*>(values)),
                         "cudssMatrixSetValues");
        });
        if (is_postponed_) {
            if (are_zero(values)) {
                throw argument_error("the matrix is singular: all its elements are 0");
            }
            execute_and_wait(cudss_phase::analysis);
            is_postponed_ = false;
        }
        expect_room(system_, estimated_bytes(), "cuDSS");
        execute_and_wait(cudss_phase::factorization);
        std::string mistake = mistake_in_factors();
        if (system_.kind == matrix_kind::general && !mistake.empty()) {
            // The rows were matched for the values of the analysis, which may have been others.
            execute_and_wait(cudss_phase::analysis);
            execute_and_wait(cudss_phase::factorization);
            mistake = mistake_in_factors();
        }
        if (!mistake.empty()) {
            refuse_matrix(system_.kind, "cuDSS", mistake);
        }
        is_factorized_ = true;
    }

    /// In the stream of the other phases, and not in that of the operation: put there, versions 0.7.1 and 1.0 read b before what came
    /// before in that stream was done, and after what came behind.
    void solve(const dense_columns& b, const dense_columns& x) override {
        if (!is_factorized_) {
            return;  // the factorization has failed: see factorize
        }
        cudss_columns columns(*library_);
        in_->run_in_context([&] {
            describe_columns(columns.right, b);
            describe_columns(columns.left, x);
        });
        execute_and_wait(cudss_phase::solve, columns);
        static_cast<void>(fetched<int>(cudss_data_info));  // waits for the stream that the library itself has used
    }

private:
    /// Has the analysis put the rows of a general matrix in an order in which its diagonal has no zeros. The library does not look for
    /// pivots far away, and replaces those that are too small: without this, it gives wrong solutions of systems that are not singular.
    void match_rows() {
        if (system_.kind == matrix_kind::general) {
            const int how = library_->is_before_0_8() ? cudss_matching_is_on_before_0_8 : cudss_matching_auto;
            expect_cudss(library_->config_set(config_, cudss_config_matching, &how, sizeof how), "cudssConfigSet");
        }
    }

    /// Whether all elements are 0. The library finds no order of rows for such a matrix, and then factorizes others with that order:
    /// version 1.0 says nothing, and its solutions are NaN.
    [[nodiscard]] bool are_zero(const std::byte* values) const {
        std::vector<std::byte> on_host(static_cast<std::size_t>(system_.nonzeros) * size_of(system_.values));
        on_.state(detail::key).driver().fetch(on_host.data(), values, on_host.size());
        const bool is_single = system_.values == dtype::float32 || system_.values == dtype::complex64;
        return is_single ? are_zero<float>(on_host) : are_zero<double>(on_host);
    }
    template <class Real>
    [[nodiscard]] static bool are_zero(const std::vector<std::byte>& numbers) noexcept {
        for (std::size_t at = 0; at < numbers.size(); at += sizeof(Real)) {
            Real one = 0;
            std::memcpy(&one, numbers.data() + at, sizeof one);
            if (one != 0) {
                return false;
            }
        }
        return true;
    }

    /// What the library says of the factors; empty if they are those of the matrix. It goes on with another value where a pivot is too
    /// small to divide by, and calls that a success: the solutions are those of another matrix.
    [[nodiscard]] std::string mistake_in_factors() const {
        const auto info = fetched<int>(cudss_data_info);
        const std::int64_t replaced = system_.indices == dtype::int32
                                          ? fetched<std::int32_t>(cudss_data_replaced_pivots)
                                          : fetched<std::int64_t>(cudss_data_replaced_pivots);
        if (info == 0 && replaced == 0) {
            return {};
        }
        return info != 0 ? "info " + std::to_string(info) : small_pivots(replaced);
    }

    /// What the library knows of the factorization.
    template <class T>
    [[nodiscard]] T fetched(int what) const {
        T value = 0;
        in_->run_in_context([&] {
            std::size_t written = 0;
            expect_cudss(library_->data_get(handle_, data_, what, &value, sizeof value, &written), "cudssDataGet");
        });
        return value;
    }

    /// The most memory of the device that the phases of this system take at a time, as the analysis estimates it.
    [[nodiscard]] std::size_t estimated_bytes() const {
        std::array<std::int64_t, 16> estimates{};
        const int what =
            library_->is_before_0_8() ? cudss_data_memory_estimates_before_0_8 : cudss_data_memory_estimates;
        in_->run_in_context([&] {
            std::size_t written = 0;
            expect_cudss(library_->data_get(handle_, data_, what, estimates.data(), sizeof estimates, &written),
                         "cudssDataGet");
        });
        return static_cast<std::size_t>(std::max<std::int64_t>(estimates[cudss_peak_of_device], 0));
    }

    /// Invalid indices would make the library read outside of its memory, and break the context.
    void expect_sound(const std::byte* offsets, const std::byte* columns) {
        const indices_on_host on_host(on_, system_, offsets, columns);
        indices_.take(system_, on_host.offsets(), on_host.columns());
        if (system_.nonzeros < system_.n) {
            throw argument_error("the matrix is singular: " + std::to_string(system_.n) + " rows have " +
                                 std::to_string(system_.nonzeros) + " elements");
        }
    }

    void make_matrix(const std::byte* offsets, const std::byte* columns, const std::byte* values) {
        const int indices = number_of(system_.indices);
        const int numbers = number_of(system_.values);
        const auto changeable = [](const std::byte* address) { return const_cast<std::byte*>(address); };
        const cudss_status status =
            library_->matrix_create_csr != nullptr
                ? library_->matrix_create_csr(matrix_.put(), system_.n, system_.n, system_.nonzeros, offsets, nullptr,
                                              columns, values, indices, indices, numbers, type_of(system_),
                                              view_of(system_.triangle), cudss_base_zero)
                : library_->matrix_create_csr_before_0_8(matrix_.put(), system_.n, system_.n, system_.nonzeros,
                                                         changeable(offsets), nullptr, changeable(columns),
                                                         changeable(values), indices, numbers, type_of(system_),
                                                         view_of(system_.triangle), cudss_base_zero);
        expect_cudss(status, "cudssMatrixCreateCsr");
        describe_columns(none_.right, {nullptr, 1, 0, 0});
        describe_columns(none_.left, {nullptr, 1, 0, 0});
    }

    void describe_columns(cudss_matrix& made, const dense_columns& what) const {
        const std::int64_t ahead =
            what.first != nullptr ? what.column_stride / static_cast<std::int64_t>(size_of(system_.values)) : system_.n;
        expect_cudss(library_->matrix_create_dense(made.put(), system_.n, what.count, ahead, what.first,
                                                   number_of(system_.values), cudss_column_major),
                     "cudssMatrixCreateDn");
    }

    void execute_and_wait(cudss_phase phase) { execute_and_wait(phase, none_); }
    /// Uses a stream of its own: the operands are complete when a host task runs, and their stream waits for the host task.
    void execute_and_wait(cudss_phase phase, const cudss_columns& columns) {
        const auto once = [&] {
            in_->run_in_context([&] {
                expect_cudss(library_->execute(handle_, static_cast<int>(phase), config_, data_, matrix_.get(),
                                               columns.left.get(), columns.right.get()),
                             "cudssExecute");
            });
        };
        try {
            once();
        } catch (const out_of_memory&) {
            // The library allocates from the driver, which does not know the memory that Weir keeps for later use (rule L6).
            memory::trim(on_);
            once();
        }
        own_.synchronize();
    }

    void destroy() noexcept {
        try {
            in_->run_in_context([this] {
                if (data_ != nullptr) {
                    library_->data_destroy(handle_, data_);
                }
                if (config_ != nullptr) {
                    library_->config_destroy(config_);
                }
                if (handle_ != nullptr) {
                    library_->destroy(handle_);
                }
            });
        } catch (const device_error&) {
            // The context is lost, and everything in it.
        }
    }

    sparse_system system_;
    analyzed_indices indices_;
    const cudss_functions* library_;
    device on_;
    const backend::capability::libraries* in_;
    stream own_;
    void* handle_ = nullptr;
    void* config_ = nullptr;
    void* data_ = nullptr;
    bool is_analyzed_ = false;
    bool is_postponed_ = false;  ///< the library's analysis, until there are values to match rows by
    bool is_factorized_ = false;
    cudss_matrix matrix_{*library_};
    cudss_columns none_{*library_};  ///< passed to phases without a right-hand side
};

}  // namespace

bool serves_cudss(const device& on) noexcept { return on.state(detail::key).driver().can().libraries != nullptr; }

std::shared_ptr<factorization> make_cudss_factorization(const sparse_system& system, const device& on) {
    return std::make_shared<cudss_factorization>(system, on);
}

}  // namespace weir::calls
