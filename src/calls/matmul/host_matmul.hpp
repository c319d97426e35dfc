#pragma once

#include <memory>

#include "calls/call.hpp"
#include "calls/matmul/blas_library.hpp"
#include "calls/matmul/matmul_call.hpp"
#include "calls/matmul/route.hpp"
#include "weir/device.hpp"

namespace weir::calls {

/// A library with the interface of CBLAS, for devices on whose memory code of the host computes.
struct host_matmul_provider {
    [[nodiscard]] bool serves(const device& on) const noexcept { return on.kind() != device_kind::cuda; }
    [[nodiscard]] std::unique_ptr<const call_plan> plan(const matmul_call& call, const call_layout& layout) const;
};

/// Multiplies by BLAS, one matrix of the batch after the other. Blocks while it computes.
void multiply_by_blas(const blas_functions& by, const blas_product& what);

}  // namespace weir::calls
