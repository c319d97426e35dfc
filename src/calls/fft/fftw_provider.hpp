#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "calls/fft/fftw_library.hpp"
#include "calls/fft/provider.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::calls {

/// Transforms by a library with the interface of FFTW 3. Prepared transforms are kept for reuse.
///
/// Plans are made without measuring (FFTW_ESTIMATE), so that a call costs microseconds, results do not change from run to
/// run, and operands are not touched. The library's planner is limited to one thread at a time; any number of threads may execute
/// (FFTW manual, section 5.4).
class fftw_provider final : public fft_provider {
public:
    /// Uses the libraries that `fftw` opens at their first use.
    fftw_provider() = default;
    /// Uses these functions. For tests.
    fftw_provider(const fftw_functions<float>& single, const fftw_functions<double>& dual) noexcept
        : single_(&single), double_(&dual) {}

    [[nodiscard]] std::shared_ptr<const fft_transform> prepare(const fft_problem& problem) override;

private:
    /// Number of prepared transforms that are kept; when the limit is exceeded, all are dropped.
    static constexpr std::size_t most_kept = 256;

    const fftw_functions<float>* single_ = nullptr;
    const fftw_functions<double>* double_ = nullptr;
    detail::mutex mutex_;  ///< guards kept_; a leaf in the lock order
    std::map<fft_problem, std::shared_ptr<const fft_transform>> kept_;
};

}  // namespace weir::calls
