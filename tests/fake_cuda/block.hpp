// Runs a grid on the calling thread: its blocks one after the other, the threads of a block as fibers.
#pragma once

#include "cuda.hpp"
#include "shim_abi.hpp"

namespace weir_fake {

struct launch {
    const weir_shim::kernel* kernel = nullptr;
    void (*set_view)(weir_shim::view*) = nullptr;
    weir_shim::dim3 grid{};
    weir_shim::dim3 block{};
    std::size_t shared_bytes = 0;
    void** arguments = nullptr;
};

/// The sticky error that the kernel stopped with; success for none.
CUresult run(const launch& what);

}  // namespace weir_fake
