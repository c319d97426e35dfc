#include "calls/sparse/cusolver_factorization.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/capability/libraries.hpp"
#include "calls/sparse/cusolver_library.hpp"
#include "calls/sparse/device_indices.hpp"
#include "calls/value_type.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/array.hpp"
#include "weir/buffer.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "weir/memory.hpp"
#include "weir/sparse.hpp"
#include "weir/stream.hpp"

namespace weir::calls {

namespace {

constexpr std::int64_t most_of_cusolver = std::numeric_limits<int>::max();

class cusolver_factorization final : public factorization {
public:
    cusolver_factorization(const sparse_system& system, const device& on)
        : system_(system),
          on_(on),
          in_(on.state(detail::key).driver().can().libraries),
          library_(&cusolver(in_->version())),
          own_(on, {.name = "cuSOLVER"}) {
        if (system.n > most_of_cusolver || 2 * system.nonzeros > most_of_cusolver) {
            throw argument_error("cuSOLVER takes matrices of at most " + std::to_string(most_of_cusolver) +
                                 " rows and elements, this one has " + std::to_string(system.n) + " and " +
                                 std::to_string(system.nonzeros) +
                                 "; install cuDSS, which takes more, or compute with execution cpu");
        }
        try {
            in_->run_in_context([this] {
                expect_cusolver(library_->create(&handle_), "cusolverSpCreate");
                expect_cusolver(library_->create_description(&description_), "cusparseCreateMatDescr");
                expect_cusolver(library_->set_stream(handle_, own_.handle()), "cusolverSpSetStream");
            });
        } catch (...) {
            destroy();
            throw;
        }
    }
    ~cusolver_factorization() override { destroy(); }

    [[nodiscard]] std::string library() const override {
        return "cuSOLVER (" + library_->file + "), since there is no cuDSS";
    }
    [[nodiscard]] const manner& how() const noexcept override {
        // The handle has one stream and one workspace, so solutions are computed one after the other.
        static constexpr manner on_cuda{phase_form::host_task, false, false, true, false, true};
        return on_cuda;
    }

    void analyze(const std::byte* offsets, const std::byte* columns, const std::byte* /*values*/) override {
        is_analyzed_ = false;
        if (system_.indices == dtype::int32) {
            take_structure<std::int32_t>(offsets, columns);
        } else {
            take_structure<std::int64_t>(offsets, columns);
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
            return;  // the analysis has failed: then this may run, and is reported as failed for the same reason (rule K4)
        }
        with_value_type(system_.values, [&]<class T>(T) {
            take_values<T>(values);
            // A solution for 0, which nothing reads: so this phase fails for a singular matrix, as it does with other libraries.
            const array b = stored(std::vector<T>(static_cast<std::size_t>(system_.n)), system_.values);
            const array x = stored(std::vector<T>(static_cast<std::size_t>(system_.n)), system_.values);
            solve_with_memory(b.device_data(), x.device_data());
        });
        is_factorized_ = true;
    }

    void solve(const dense_columns& b, const dense_columns& x) override {
        if (!is_factorized_) {
            return;  // the factorization has failed: see factorize
        }
        for (std::int64_t column = 0; column < b.count; ++column) {
            solve_with_memory(b.first + column * b.column_stride, x.first + column * x.column_stride);
        }
    }

private:
    /// Checks the indices, since invalid ones would make the library read outside of its memory, and keeps them: the whole matrix in rows.
    template <class Index>
    void take_structure(const std::byte* offsets, const std::byte* columns) {
        const indices_on_host on_host(on_, system_, offsets, columns);
        indices_.take(system_, on_host.offsets(), on_host.columns());
        std::vector<Index> starts = on_host.offsets_as<Index>();
        std::vector<Index> indices = on_host.columns_as<Index>();
        sources_.clear();
        if (system_.triangle != matrix_triangle::full) {
            fill_triangle(starts, indices);
        }
        if (static_cast<std::int64_t>(indices.size()) < system_.n) {
            throw argument_error("the matrix is singular: " + std::to_string(system_.n) + " rows have " +
                                 std::to_string(indices.size()) + " elements");
        }
        offsets_ = stored(std::vector<std::int32_t>(starts.begin(), starts.end()), dtype::int32);
        columns_ = stored(std::vector<std::int32_t>(indices.begin(), indices.end()), dtype::int32);
    }

    /// The columns of the whole matrix are the rows of its transpose. That is the matrix itself, or of complex elements its conjugate.
    template <class Index>
    void fill_triangle(std::vector<Index>& starts, std::vector<Index>& indices) {
        sparse_system whole = system_;
        const bool is_hermitian = is_complex(system_.values) && system_.kind != matrix_kind::symmetric;
        whole.kind = is_hermitian ? matrix_kind::hermitian : matrix_kind::symmetric;
        column_structure<Index> by_columns =
            whole_by_columns(whole, std::span<const Index>(starts), std::span<const Index>(indices));
        for (const Index source : by_columns.sources) {
            sources_.push_back(static_cast<std::int64_t>(is_hermitian ? ~source : source));
        }
        starts = std::move(by_columns.starts);
        indices = std::move(by_columns.rows);
    }

    template <class T>
    void take_values(const std::byte* values) {
        std::vector<T> all(static_cast<std::size_t>(system_.nonzeros));
        fetch(all.data(), values, all.size() * sizeof(T));
        if (!sources_.empty()) {
            std::vector<T> whole;
            whole.reserve(sources_.size());
            for (const std::int64_t source : sources_) {
                const bool is_conjugated = source < 0;
                const T value = all[static_cast<std::size_t>(is_conjugated ? ~source : source)];
                whole.push_back(is_conjugated ? conjugate_of(value) : value);
            }
            all = std::move(whole);
        }
        using real = decltype(std::abs(T{}));
        real largest = 0;
        for (const T& each : all) {
            largest = std::max(largest, std::abs(each));
        }
        // A pivot that rounding alone makes differ from 0. The errors of sums of that many numbers grow with the root.
        tolerance_ = 4 * std::sqrt(static_cast<double>(system_.n)) * static_cast<double>(largest) *
                     static_cast<double>(std::numeric_limits<real>::epsilon());
        values_ = stored(std::move(all), system_.values);
    }

    void solve_with_memory(const std::byte* b, std::byte* x) {
        try {
            solve_one(b, x);
        } catch (const out_of_memory&) {
            // The library allocates from the driver, which does not know the memory that Weir keeps for later use (rule L6).
            memory::trim(on_);
            solve_one(b, x);
        }
    }

    void solve_one(const std::byte* b, std::byte* x) {
        const bool is_definite = system_.kind == matrix_kind::positive_definite;
        const cusolver_functions::solvers& by = is_definite ? library_->cholesky : library_->qr;
        int singular = -1;
        const auto call = [&](auto* solver, auto tolerance) {
            in_->run_in_context([&] {
                expect_cusolver(
                    solver(handle_, static_cast<int>(system_.n), static_cast<int>(values_.size()), description_,
                           values_.device_data(), reinterpret_cast<const int*>(offsets_.device_data()),
                           reinterpret_cast<const int*>(columns_.device_data()), b, tolerance, cusolver_reorder, x,
                           &singular),
                    is_definite ? "cusolverSpcsrlsvchol" : "cusolverSpcsrlsvqr");
            });
        };
        if (system_.values == dtype::float32 || system_.values == dtype::complex64) {
            call(system_.values == dtype::float32 ? by.s : by.c, static_cast<float>(tolerance_));
        } else {
            call(system_.values == dtype::float64 ? by.d : by.z, tolerance_);
        }
        own_.synchronize();
        if (singular >= 0) {
            // What is not positive definite is solved as a general matrix.
            refuse_matrix(is_definite ? system_.kind : matrix_kind::general, "cuSOLVER",
                          "row " + std::to_string(singular));
        }
    }

    void fetch(void* to, const std::byte* from, std::size_t bytes) {
        if (bytes > 0) {
            on_.state(detail::key).driver().fetch(static_cast<std::byte*>(to), from, bytes);
        }
    }

    /// The numbers in device memory. Blocks until they are there.
    template <class Number>
    array stored(std::vector<Number> numbers, dtype type) {
        const auto count = static_cast<std::int64_t>(numbers.size());
        auto held = std::make_shared<std::vector<Number>>(std::move(numbers));
        const array from(buffer::wrap(held->data(), held->size() * sizeof(Number), cpu(), held), type, {count});
        array made = detail::internal(empty({count}, type, own_));
        copy(own_, made, from);
        own_.synchronize();
        return made;
    }

    void destroy() noexcept {
        try {
            in_->run_in_context([this] {
                if (description_ != nullptr) {
                    library_->destroy_description(description_);
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
    device on_;
    const backend::capability::libraries* in_;
    const cusolver_functions* library_;
    stream own_;
    void* handle_ = nullptr;
    void* description_ = nullptr;
    std::vector<std::int64_t>
        sources_;  ///< of the elements of a whole matrix, as column_structure::sources; empty: all are given
    array offsets_;
    array columns_;
    array values_;
    double tolerance_ = 0;
    bool is_analyzed_ = false;
    bool is_factorized_ = false;
};

}  // namespace

std::shared_ptr<factorization> make_cusolver_factorization(const sparse_system& system, const device& on) {
    return std::make_shared<cusolver_factorization>(system, on);
}

}  // namespace weir::calls
