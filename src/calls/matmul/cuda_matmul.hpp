#pragma once

#include <memory>
#include <span>

#include "calls/call.hpp"
#include "calls/matmul/matmul_call.hpp"
#include "weir/array.hpp"
#include "weir/device.hpp"
#include "weir/linalg.hpp"
#include "weir/on.hpp"

namespace weir::calls {

/// cuBLASLt, for CUDA devices. Also where tests have host code stand for kernels.
struct cuda_matmul_provider {
    [[nodiscard]] bool serves(const device& on) const noexcept;
    [[nodiscard]] std::unique_ptr<const call_plan> plan(const matmul_call& call, const call_layout& layout) const;
};

/// Tries algorithms on the operands and keeps the fastest: see matmul_plan::autotune, which has checked `how`. 0 where the device of
/// `where` has another library. Blocks.
int tune_cuda_matmul(const matmul_call& call, const call_terms& terms, const on& where, std::span<const array> operands,
                     const matmul_tuning& how);

}  // namespace weir::calls
