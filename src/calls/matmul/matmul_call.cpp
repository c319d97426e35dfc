#include "calls/matmul/matmul_call.hpp"

#include "backend/backend.hpp"
#include "backend/capability/libraries.hpp"
#include "calls/matmul/blas_library.hpp"
#include "calls/matmul/cublaslt_library.hpp"
#include "calls/matmul/cuda_matmul.hpp"
#include "calls/matmul/host_matmul.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/passkey.hpp"

namespace weir::calls {

std::unique_ptr<const call_plan> matmul_call::plan(const call_layout& layout) const {
    return plan_by_first(*this, layout, cuda_matmul_provider{}, host_matmul_provider{});
}

library_in_use matmul_library_on(const device& computing) {
    if (cuda_matmul_provider{}.serves(computing)) {
        const int version = computing.state(detail::key).driver().can().libraries->version();
        return {title_of_library("cuBLASLt", [&] { return cublaslt(version).file; }), true};
    }
    return {title_of_library("BLAS", [] { return blas().file; }), false};
}

kept_calls<kept_matmul>& kept_matmuls() {
    const detail::fork_section whole;  // else a child could wait for a thread that makes it, and that it does not have
    // Never destroyed: calls may be made until the process ends.
    static auto* const all = new kept_calls<kept_matmul>();
    return *all;
}

}  // namespace weir::calls
