// The folder calls/ holds the library calls: each has its contract in one place (fft_call.cpp) and one file for each
// library that does the work (fftw_provider.cpp). It includes array/ and what is below it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "weir/fft.hpp"

namespace weir::calls {

/// A batch of one-dimensional transforms without a norm, as libraries know them. Distances are between the first
/// elements of consecutive rows, counted in elements of that side (real or complex).
struct fft_problem {
    fft_kind kind = fft_kind::complex_to_complex;
    fft_direction direction = fft_direction::forward;
    bool double_precision = true;
    bool in_place = false;
    bool aligned = true;  ///< both sides begin at a multiple of fft_alignment
    std::int64_t n = 1;
    std::int64_t batch = 1;
    std::int64_t in_distance = 1;
    std::int64_t out_distance = 1;

    friend auto operator<=>(const fft_problem&,
                            const fft_problem&) = default;  // NOLINT(modernize-use-nullptr): LLVM 14
};

/// What libraries may count on where a problem says `aligned`: the width of the widest vectors.
inline constexpr std::size_t fft_alignment = 64;

/// A prepared transform. Any number of threads may execute one at the same time.
class fft_transform {
public:
    fft_transform() = default;
    fft_transform(const fft_transform&) = delete;
    fft_transform& operator=(const fft_transform&) = delete;
    virtual ~fft_transform() = default;

    /// Transforms `in`, which it leaves as it is unless it is `out`, to `out`. Blocks while it computes.
    virtual void execute(const std::byte* in, std::byte* out) const = 0;
};

/// A library that transforms. Any thread.
class fft_provider {
public:
    fft_provider() = default;
    fft_provider(const fft_provider&) = delete;
    fft_provider& operator=(const fft_provider&) = delete;
    virtual ~fft_provider() = default;

    /// Prepares a transform, or finds it prepared. Throws missing_library; device_error if the library refuses.
    [[nodiscard]] virtual std::shared_ptr<const fft_transform> prepare(const fft_problem& problem) = 0;
};

/// What transforms memory of the CPU: a library with the interface of FFTW 3.
[[nodiscard]] fft_provider& cpu_fft_provider() noexcept;

/// Puts another provider in its place while the object lives. For tests.
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
