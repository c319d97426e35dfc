#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "frontier/small_vector.hpp"
#include "weir/fft.hpp"

namespace weir::calls {

/// One dimension of a transform or of a batch: strides from one index to the next, in elements of that side (real
/// or complex).
struct fft_dimension {
    std::int64_t n = 1;
    std::int64_t in_stride = 1;
    std::int64_t out_stride = 1;

    friend auto operator<=>(const fft_dimension&,
                            const fft_dimension&) = default;  // NOLINT(modernize-use-nullptr): LLVM 14
};

/// A few dimensions, in lexicographic order.
struct fft_dimensions : detail::small_vector<fft_dimension, 3> {
    fft_dimensions() = default;
    fft_dimensions(std::initializer_list<fft_dimension> all) { append(all.begin(), all.end()); }

    friend std::strong_ordering operator<=>(const fft_dimensions& a, const fft_dimensions& b) noexcept {
        return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
    }
};

/// A batch of transforms without a norm, in the form that libraries take.
struct fft_problem {
    fft_kind kind = fft_kind::complex_to_complex;
    fft_direction direction = fft_direction::forward;
    bool double_precision = true;
    bool in_place = false;
    bool aligned = true;          ///< both sides begin at a multiple of fft_alignment
    bool preserves_input = true;  ///< for transforms out of place: the operand is not changed
    fft_dimensions transform;     ///< outermost first; real transforms halve the last one. `n` is that of the real side
    fft_dimensions batch;

    friend auto operator<=>(const fft_problem&,
                            const fft_problem&) = default;  // NOLINT(modernize-use-nullptr): LLVM 14
    friend bool operator==(const fft_problem& a, const fft_problem& b) noexcept { return std::is_eq(a <=> b); }
};

/// Alignment that libraries may rely on if a problem is `aligned`: the width of the widest vectors.
inline constexpr std::size_t fft_alignment = 64;

/// A prepared transform. Any number of threads may execute it at the same time.
class fft_transform {
public:
    fft_transform() = default;
    fft_transform(const fft_transform&) = delete;
    fft_transform& operator=(const fft_transform&) = delete;
    virtual ~fft_transform() = default;

    /// Transforms `in` to `out`. Blocks while it computes.
    virtual void execute(const std::byte* in, std::byte* out) const = 0;
};

/// A transform library. Any thread.
class fft_provider {
public:
    fft_provider() = default;
    fft_provider(const fft_provider&) = delete;
    fft_provider& operator=(const fft_provider&) = delete;
    virtual ~fft_provider() = default;

    /// Prepares a transform, or finds a prepared one. Throws missing_library; device_error if the library refuses.
    [[nodiscard]] virtual std::shared_ptr<const fft_transform> prepare(const fft_problem& problem) = 0;
};

/// The transform library for memory that host code uses: one with the interface of FFTW 3. CUDA devices use cuFFT
/// instead (cuda_fft.hpp).
[[nodiscard]] fft_provider& cpu_fft_provider();

/// Installs another provider while the object lives. For tests.
class replaced_fft_provider {
public:
    explicit replaced_fft_provider(fft_provider& by) noexcept;
    ~replaced_fft_provider();
    replaced_fft_provider(const replaced_fft_provider&) = delete;
    replaced_fft_provider& operator=(const replaced_fft_provider&) = delete;

private:
    fft_provider* previous_;
};

}  // namespace weir::calls
