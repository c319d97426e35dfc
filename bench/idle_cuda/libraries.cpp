// The fake cuBLASLt and the fake cuFFT of the tests, except that a product and a transform do nothing: with the idle driver, what a library
// call costs is Weir's own. For `./run bench instructions`.
#include <cstddef>

#define WEIR_IDLE_CALL extern "C" __attribute__((visibility("default"))) int

WEIR_IDLE_CALL cublasLtMatmul(void* /*handle*/, void* /*desc*/, const void* /*alpha*/, const void* /*a*/,
                              void* /*a_layout*/, const void* /*b*/, void* /*b_layout*/, const void* /*beta*/,
                              const void* /*c*/, void* /*c_layout*/, void* /*d*/, void* /*d_layout*/,
                              const void* /*algorithm*/, void* /*workspace*/, std::size_t /*workspace_bytes*/,
                              void* /*stream*/) {
    return 0;
}

WEIR_IDLE_CALL cufftExecC2C(int /*handle*/, void* /*in*/, void* /*out*/, int /*direction*/) { return 0; }
