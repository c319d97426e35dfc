#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "calls/fft_provider.hpp"
#include "calls/fftw_library.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::calls {

/// Transforms by a library with the interface of FFTW 3. Keeps what it has prepared.
///
/// Plans are made without measuring (FFTW_ESTIMATE), so that a call costs microseconds, results do not change from run to
/// run, and operands are not touched; the library's planner takes one thread at a time, executing takes any number
/// (FFTW manual, section 5.4).
class fftw_provider final : public fft_provider {
public:
    /// With the libraries that `fftw` opens when they are needed first.
    fftw_provider() = default;
    /// With these functions. For tests.
    fftw_provider(const fftw_functions<float>& single, const fftw_functions<double>& dual) noexcept
        : single_(&single), double_(&dual) {}

    [[nodiscard]] std::shared_ptr<const fft_transform> prepare(const fft_problem& problem) override;

private:
    /// How many prepared transforms are kept; when there are more, all are let go of.
    static constexpr std::size_t most_kept = 256;

    const fftw_functions<float>* single_ = nullptr;
    const fftw_functions<double>* double_ = nullptr;
    detail::mutex mutex_;  ///< guards kept_; a leaf in the lock order
    std::map<fft_problem, std::shared_ptr<const fft_transform>> kept_;
};

}  // namespace weir::calls
