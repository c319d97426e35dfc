#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "array/cuda/launch.hpp"
#include "backend/capability/kernels.hpp"
#include "calls/call.hpp"
#include "calls/fft/cufft_layout.hpp"
#include "calls/fft/cufft_provider.hpp"
#include "calls/fft/fft_call.hpp"
#include "calls/fft/route.hpp"
#include "weir/device.hpp"

namespace weir::calls {

/// cuFFT, for CUDA devices. Also used where tests run host code in place of kernels.
struct cuda_fft_provider {
    [[nodiscard]] bool serves(const device& on) const noexcept;
    [[nodiscard]] std::unique_ptr<const call_plan> plan(const fft_call& call, const call_layout& layout) const;
};

/// The work of one transform in a CUDA stream: the body of a native task.
class cuda_fft_work {
public:
    /// Addresses in kernels' arguments stay.
    [[nodiscard]] bool can_move() const noexcept { return filling_.empty() && zeroing_.empty() && finishing_.empty(); }
    /// Puts the transform into submitting_to::current(). Throws device_error, out_of_memory.
    void operator()(const call_shift& by) const;

private:
    friend class cuda_fft;

    struct transform {
        std::shared_ptr<const cufft_plan> plan;
        std::vector<cufft_plan::execution> executions;
        int direction = cufft_forward;
        cufft_part::way from_to = cufft_part::way::in_to_out;
    };
    explicit cuda_fft_work(const backend::capability::kernels& in) : filling_(in), zeroing_(in), finishing_(in) {}
    void run(const std::vector<transform>& all, const call_shift& by) const;

    array_kernels::launches filling_;  ///< in this order
    std::vector<transform> before_;
    array_kernels::launches zeroing_;
    std::vector<transform> after_;
    array_kernels::launches finishing_;
    std::byte* workspace_ = nullptr;  ///< of the library
};

/// A route that uses cuFFT, with its plans.
class cuda_fft final : public call_plan {
public:
    /// Throws missing_library, device_error, out_of_memory.
    cuda_fft(const device& where, fft_route route);

    /// The sum of the route's workspace and the library's, which follows it.
    [[nodiscard]] std::size_t workspace_bytes() const noexcept override { return own_bytes_ + library_bytes_; }
    /// Compiles the kernels that the work needs in addition to cuFFT.
    [[nodiscard]] call_work work(std::byte* workspace) const override;

private:
    using plans = std::vector<std::shared_ptr<const cufft_plan>>;
    [[nodiscard]] plans prepare(const std::vector<cufft_part>& parts);

    device where_;
    fft_route route_;
    cufft_parts parts_;
    plans before_;
    plans after_;
    std::size_t own_bytes_ = 0;
    std::size_t library_bytes_ = 0;
};

}  // namespace weir::calls
