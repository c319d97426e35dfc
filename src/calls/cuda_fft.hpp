#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "array/cuda/launch.hpp"
#include "backend/cuda/context.hpp"
#include "calls/cufft_layout.hpp"
#include "calls/cufft_provider.hpp"
#include "calls/fft_route.hpp"
#include "weir/device.hpp"

namespace weir::calls {

/// The context of a CUDA device; null for other devices. Also where tests have host code stand for kernels: transforms go
/// through cuFFT all the same. Throws state_error if the device stayed with the process that this one was forked from.
[[nodiscard]] const backend::cuda::context* fft_context_of(const device& where);

/// What cuFFT asks of problems.
[[nodiscard]] fft_demands cufft_demands() noexcept;

/// The work of one transform in a CUDA stream, as a native task does it.
class cuda_fft_work {
public:
    /// Puts it into submitting_to::current(). Throws device_error, out_of_memory.
    void operator()() const;

private:
    friend class cuda_fft;

    struct transform {
        std::shared_ptr<const cufft_plan> plan;
        std::vector<cufft_plan::execution> executions;
        int direction = cufft_forward;
    };
    explicit cuda_fft_work(const backend::cuda::context& in) : filling_(in), zeroing_(in), finishing_(in) {}
    void run(const std::vector<transform>& all) const;

    array_kernels::launches filling_;  ///< in this order
    std::vector<transform> before_;
    array_kernels::launches zeroing_;
    std::vector<transform> after_;
    array_kernels::launches finishing_;
    std::byte* workspace_ = nullptr;  ///< the library's
};

/// A route by cuFFT, its plans made.
class cuda_fft {
public:
    /// Throws missing_library, device_error, out_of_memory.
    cuda_fft(const backend::cuda::context& in, const fft_route& route);

    /// The route's workspace, and behind it the library's.
    [[nodiscard]] std::size_t workspace_bytes() const noexcept { return own_bytes_ + library_bytes_; }

    /// The work, with a workspace of `workspace_bytes` or more. Compiles the kernels that it takes beside cuFFT. Throws
    /// missing_library, device_error, out_of_memory.
    [[nodiscard]] cuda_fft_work work(const fft_route& route, std::byte* workspace) const;

private:
    using plans = std::vector<std::shared_ptr<const cufft_plan>>;
    [[nodiscard]] plans prepare(const std::vector<cufft_part>& parts);

    const backend::cuda::context* in_;
    cufft_parts parts_;
    plans before_;
    plans after_;
    std::size_t own_bytes_ = 0;
    std::size_t library_bytes_ = 0;
};

}  // namespace weir::calls
