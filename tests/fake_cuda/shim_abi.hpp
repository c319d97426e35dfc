// The interface between a compiled kernel and the fake driver. It is compiled into both, and includes nothing: NVRTC knows
// no headers of the host either.
#pragma once

namespace weir_shim {

struct dim3 {
    unsigned x, y, z;
};

/// A kernel's view of its launch. The driver changes `thread` and `block` before it goes on with another thread.
struct view {
    dim3 thread;
    dim3 block;
    dim3 block_size;
    dim3 grid_size;
    void* dynamic_shared;
    void (*sync_threads)();
    void (*sync_warp)(unsigned mask);
    /// Every thread of the mask gives a value and gets the one of another lane.
    unsigned long long (*shuffle)(unsigned mask, unsigned long long value, unsigned lane);
    void (*pause)();
    void (*stop)(int error);  ///< does not return
    long long (*clock)();
};

/// A kernel of an image. The image exports a table of them, `weir_fake_kernels`, that ends with a null address, and
/// `weir_fake_set_view`, which sets the view of the calling thread.
struct kernel {
    const char* expression;  ///< as it is in the source, or as the caller of NVRTC wrote it
    void* address;
    void (*run)(void** arguments);
    unsigned count;  ///< of the arguments
    const unsigned long* sizes;
    const unsigned long* alignments;
};

}  // namespace weir_shim
