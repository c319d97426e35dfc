#include "calls/sparse/pardiso_factorization.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "calls/shared_library.hpp"
#include "calls/value_type.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/sparse.hpp"

namespace weir::calls {

namespace {

/// The one function of PARDISO (oneMKL reference for C, "pardiso_64"), declared here anew, so that Weir is built without MKL. All integers
/// have 64 bits. `error` is 0, or says what went wrong.
struct pardiso_library {
    using integer = long long;

    void (*call)(void** handle, const integer* factors, const integer* which, const integer* type, const integer* phase,
                 const integer* n, const void* values, const integer* row_starts, const integer* columns,
                 integer* permutation, const integer* right_hand_sides, integer* parameters, const integer* messages,
                 void* b, void* x, integer* error) = nullptr;
    std::string file;
};

const pardiso_library& pardiso() {
    const detail::fork_section whole;
    // If opening throws, the next call tries again.
    static const auto* const opened = [] {
        const shared_library library({"libmkl_rt.so.3", pardiso_file, "libmkl-rt"});
        auto* const made = new pardiso_library;
        library.find("pardiso_64", made->call);
        made->file = library.file();
        return made;
    }();
    return *opened;
}

enum class pardiso_phase : pardiso_library::integer { analysis = 11, factorization = 22, solution = 33, release = -1 };

/// The parameters that differ from 0, by their index, and those that are read.
struct pardiso_parameter {
    static constexpr std::size_t is_given = 0;
    static constexpr std::size_t ordering = 1;  ///< 2: nested dissection
    static constexpr std::size_t perturbation = 9;
    static constexpr std::size_t scaling = 10;
    static constexpr std::size_t matching = 12;
    static constexpr std::size_t perturbed_pivots = 13;
    static constexpr std::size_t peak_kib = 14;     ///< of memory, of the analysis
    static constexpr std::size_t kept_kib = 15;     ///< of the analysis
    static constexpr std::size_t factors_kib = 16;  ///< of factorization and solution, besides what is kept
    static constexpr std::size_t bunch_kaufman = 20;
    static constexpr std::size_t single_precision = 27;
    static constexpr std::size_t row_of_bad_pivot = 29;
    static constexpr std::size_t zero_based = 34;
};

/// Errors. Those from the first to the last of the matrix, but one, say that it cannot be factorized.
struct pardiso_error {
    static constexpr pardiso_library::integer inconsistent = -1;
    static constexpr pardiso_library::integer memory = -2;
    static constexpr pardiso_library::integer first_of_the_matrix = -3;
    static constexpr pardiso_library::integer unclassified = -5;
    static constexpr pardiso_library::integer last_of_the_matrix = -7;
};

class pardiso_factorization final : public factorization {
    using integer = pardiso_library::integer;
    using parameter = pardiso_parameter;

public:
    explicit pardiso_factorization(const sparse_system& system)
        : system_(system), library_(&pardiso()), type_(type_of(system)) {
        const bool is_definite = system.kind == matrix_kind::positive_definite;
        const bool is_general = system.kind == matrix_kind::general;
        parameters_[parameter::is_given] = 1;
        parameters_[parameter::ordering] = 2;
        parameters_[parameter::perturbation] = is_general ? 13 : 8;  // the exponent of the least pivot
        parameters_[parameter::scaling] = parameters_[parameter::matching] = is_definite ? 0 : 1;
        parameters_[parameter::bunch_kaufman] = 1;
        parameters_[parameter::single_precision] =
            system.values == dtype::float32 || system.values == dtype::complex64 ? 1 : 0;
        parameters_[parameter::zero_based] = 1;
    }
    ~pardiso_factorization() override { static_cast<void>(run(pardiso_phase::release)); }

    [[nodiscard]] std::string library() const override { return "PARDISO (" + library_->file + ")"; }
    [[nodiscard]] const manner& how() const noexcept override {
        // The handle has one workspace, so solutions are computed one after the other. Rows are matched by the values of the analysis.
        static constexpr manner on_the_host{phase_form::host_code, false, true, true, false};
        return on_the_host;
    }

    void analyze(const std::byte* offsets, const std::byte* columns, const std::byte* values) override {
        is_analyzed_ = false;
        indices_.take(system_, offsets, columns);
        if (system_.indices == dtype::int32) {
            take_structure<std::int32_t>(offsets, columns);
        } else {
            take_structure<std::int64_t>(offsets, columns);
        }
        take_values(values);
        // An error may be that of these values, and the factorization may be one of others: it analyzes anew then.
        is_matched_ = run(pardiso_phase::analysis) == 0;
        is_analyzed_ = true;
    }

    void expect_places(const std::byte* offsets, const std::byte* columns) override {
        indices_.expect(system_, offsets, columns);
    }

    void factorize(const std::byte* values) override {
        is_factorized_ = false;
        if (!is_analyzed_) {
            return;  // the analysis has failed: then this may run, and is reported as failed for the same reason (rule K4)
        }
        take_values(values);
        expect_room(system_, bytes_of_analysis(), "PARDISO");
        integer error = is_matched_ ? run(pardiso_phase::factorization) : pardiso_error::first_of_the_matrix;
        if (is_of_the_matrix(error) || (error == 0 && parameters_[parameter::perturbed_pivots] > 0)) {
            // Rows were matched for the values of the analysis, which may have been others.
            error = run(pardiso_phase::analysis);
            is_matched_ = error == 0;
            error = is_matched_ ? run(pardiso_phase::factorization) : error;
        }
        expect_factors(error);
        is_factorized_ = true;
    }

    void solve(const dense_columns& b, const dense_columns& x) override {
        if (!is_factorized_) {
            return;  // the factorization has failed: see factorize
        }
        const auto packed = system_.n * static_cast<std::int64_t>(size_of(system_.values));
        const bool at_once = b.count == 1 || (b.column_stride == packed && x.column_stride == packed);
        for (std::int64_t column = 0; column < (at_once ? 1 : b.count); ++column) {
            const integer error = run(pardiso_phase::solution, at_once ? b.count : 1,
                                      b.first + column * b.column_stride, x.first + column * x.column_stride);
            if (error != 0) {
                throw device_error(library() + " found no solution (error " + std::to_string(error) + ")");
            }
        }
    }

private:
    /// PARDISO's number for the matrix's type.
    static integer type_of(const sparse_system& system) noexcept {
        const bool complex = is_complex(system.values);
        switch (system.kind) {
            case matrix_kind::general:
                break;
            case matrix_kind::symmetric:
                return complex ? 6 : -2;
            case matrix_kind::hermitian:
                return -4;
            case matrix_kind::positive_definite:
                return complex ? 4 : 2;
        }
        return complex ? 13 : 11;
    }

    /// A place of `sources_` for an element that the matrix does not store: PARDISO wants each element of the diagonal of a matrix of which
    /// it has the upper triangle.
    static constexpr std::int64_t is_zero = std::numeric_limits<std::int64_t>::min();

    /// Keeps what the library refers to until the last solution: all rows of a general matrix, else the upper triangle.
    template <class Index>
    void take_structure(const std::byte* offsets, const std::byte* columns) {
        const std::span<const Index> starts(reinterpret_cast<const Index*>(offsets),
                                            static_cast<std::size_t>(system_.n) + 1);
        const std::span<const Index> indices(reinterpret_cast<const Index*>(columns),
                                             static_cast<std::size_t>(system_.nonzeros));
        row_starts_.assign(1, 0);
        columns_.clear();
        sources_.clear();
        if (system_.kind == matrix_kind::general) {
            row_starts_.assign(starts.begin(), starts.end());
            columns_.assign(indices.begin(), indices.end());
            for (std::size_t i = 0; i < indices.size(); ++i) {
                sources_.push_back(static_cast<std::int64_t>(i));
            }
            return;
        }
        // The lower triangle by columns is the upper one by rows, of the transposed matrix.
        const bool is_conjugated = is_complex(system_.values) && system_.kind != matrix_kind::symmetric;
        const column_structure<Index> lower = lower_by_columns(system_, starts, indices);
        for (std::int64_t at = 0; at < system_.n; ++at) {
            const auto first = static_cast<std::size_t>(lower.starts[static_cast<std::size_t>(at)]);
            const auto last = static_cast<std::size_t>(lower.starts[static_cast<std::size_t>(at) + 1]);
            if (first == last || static_cast<std::int64_t>(lower.rows[first]) != at) {
                columns_.push_back(at);
                sources_.push_back(is_zero);
            }
            for (std::size_t k = first; k < last; ++k) {
                columns_.push_back(static_cast<integer>(lower.rows[k]));
                const auto source = static_cast<std::int64_t>(lower.sources[k]);
                sources_.push_back(is_conjugated ? ~source : source);
            }
            row_starts_.push_back(static_cast<integer>(columns_.size()));
        }
    }

    void take_values(const std::byte* from) {
        with_value_type(system_.values, [&]<class T>(T) {
            const auto* const values = reinterpret_cast<const T*>(from);
            values_.resize(sources_.size() * sizeof(T));
            T* to = reinterpret_cast<T*>(values_.data());
            for (const std::int64_t source : sources_) {
                *to++ = source == is_zero ? T(0) : source >= 0 ? values[source] : conjugate_of(values[~source]);
            }
        });
    }

    [[nodiscard]] integer run(pardiso_phase phase, integer right_hand_sides = 1, std::byte* b = nullptr,
                              std::byte* x = nullptr) noexcept {
        const integer one = 1;
        const integer silent = 0;
        const auto number = static_cast<integer>(phase);
        const integer n = system_.n;
        integer error = 0;
        const library_visit inside;
        library_->call(handle_.data(), &one, &one, &type_, &number, &n, values_.data(), row_starts_.data(),
                       columns_.data(), nullptr, &right_hand_sides, parameters_.data(), &silent, b, x, &error);
        return error;
    }

    /// What the analysis says of the memory of all phases; 0 if there was none.
    [[nodiscard]] std::size_t bytes_of_analysis() const noexcept {
        const integer in_kib = std::max(parameters_[parameter::peak_kib],
                                        parameters_[parameter::kept_kib] + parameters_[parameter::factors_kib]);
        return static_cast<std::size_t>(std::max<integer>(in_kib, 0)) * 1024;
    }

    /// Whether the phase failed because of the matrix.
    static bool is_of_the_matrix(integer error) noexcept {
        return error <= pardiso_error::first_of_the_matrix && error >= pardiso_error::last_of_the_matrix &&
               error != pardiso_error::unclassified;
    }

    /// PARDISO does not call such a matrix singular, but its input inconsistent.
    [[nodiscard]] bool is_all_zero() const noexcept {
        bool all = true;
        with_value_type(system_.values, [&]<class T>(T) {
            const std::span<const T> values(reinterpret_cast<const T*>(values_.data()), sources_.size());
            all = std::all_of(values.begin(), values.end(), [](const T& one) { return one == T(0); });
        });
        return all;
    }

    void expect_factors(integer error) const {
        if (is_of_the_matrix(error)) {
            refuse_matrix(
                system_.kind, "PARDISO",
                "error " + std::to_string(error) + ", row " + std::to_string(parameters_[parameter::row_of_bad_pivot]));
        }
        if (error == pardiso_error::inconsistent && is_all_zero()) {
            refuse_matrix(system_.kind, "PARDISO", "all elements are 0");
        }
        if (error == pardiso_error::memory) {
            throw out_of_memory(library() + " could not get memory for the factors of the matrix");
        }
        if (error != 0) {
            throw device_error(library() + " failed (error " + std::to_string(error) + ")");
        }
        if (const integer replaced = parameters_[parameter::perturbed_pivots]; replaced > 0) {
            refuse_matrix(system_.kind, "PARDISO", small_pivots(replaced));
        }
    }

    sparse_system system_;
    analyzed_indices indices_;
    const pardiso_library* library_;
    integer type_;
    std::array<void*, 64> handle_{};
    std::array<integer, 64> parameters_{};
    std::vector<integer> row_starts_;
    std::vector<integer> columns_;
    std::vector<std::int64_t>
        sources_;  ///< for each kept element its place in the values; ~place if the conjugate is meant
    std::vector<std::byte> values_;
    bool is_analyzed_ = false;
    bool is_matched_ = false;
    bool is_factorized_ = false;
};

}  // namespace

std::shared_ptr<factorization> make_pardiso_factorization(const sparse_system& system) {
    return std::make_shared<pardiso_factorization>(system);
}

}  // namespace weir::calls
