#include "cli/demo/device_source.hpp"

namespace weir::demo {

const char* const device_source = R"(
#define BINS (FRAME / 2 + 1)
#define STEP (FRAMES_PER_BLOCK * HOP)

__device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// samples: (span, CHANNELS); frames: (CHANNELS * FRAMES_PER_BLOCK, FRAME). A thread for each sample of each frame.
extern "C" __global__ void window(const float* samples, const float* fade, float* frames) {
    const int i = index();
    if (i < CHANNELS * FRAMES_PER_BLOCK * FRAME) {
        const int frame = i / FRAME;
        const int k = i % FRAME;
        const int channel = frame / FRAMES_PER_BLOCK;
        const int first = frame % FRAMES_PER_BLOCK * HOP;
        frames[i] = samples[(first + k) * CHANNELS + channel] * fade[k];
    }
}

__device__ float2 times(float2 a, float2 b) { return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

__device__ int bits_reversed(int k) {
    int reversed = 0;
    for (int bit = 1; bit < FRAME; bit *= 2) {
        reversed = 2 * reversed + (k & 1);
        k /= 2;
    }
    return reversed;
}

// The discrete Fourier transform in place: radix 2, in shared memory, of elements that lie in reversed order of the bits of
// their indices. turns[k] is exp(-2 pi i k / FRAME).
__device__ void transform_in_place(float2* data, const float2* turns) {
    for (int half = 1; half < FRAME; half *= 2) {
        __syncthreads();
        for (int i = threadIdx.x; i < FRAME / 2; i += blockDim.x) {
            const int k = i % half;
            const int low = i / half * 2 * half + k;
            const float2 a = data[low];
            const float2 b = times(data[low + half], turns[k * (FRAME / 2 / half)]);
            data[low] = make_float2(a.x + b.x, a.y + b.y);
            data[low + half] = make_float2(a.x - b.x, a.y - b.y);
        }
    }
    __syncthreads();
}

// A block for each frame.
extern "C" __global__ void transform(const float* frames, const float2* turns, float2* spectrum) {
    extern __shared__ float2 data[];
    for (int k = threadIdx.x; k < FRAME; k += blockDim.x) {
        data[bits_reversed(k)] = make_float2(frames[blockIdx.x * FRAME + k], 0);
    }
    transform_in_place(data, turns);
    for (int k = threadIdx.x; k < BINS; k += blockDim.x) {
        spectrum[blockIdx.x * BINS + k] = data[k];
    }
}

// The same back: the transform of the conjugate is the conjugate of the inverse, but for a factor, and the frames are real.
extern "C" __global__ void transform_back(const float2* spectrum, const float2* turns, float* frames) {
    extern __shared__ float2 data[];
    for (int k = threadIdx.x; k < FRAME; k += blockDim.x) {
        const float2 bin = spectrum[blockIdx.x * BINS + (k < BINS ? k : FRAME - k)];
        const bool is_real = k == 0 || k == FRAME / 2;
        data[bits_reversed(k)] = make_float2(bin.x, is_real ? 0.0f : k < BINS ? -bin.y : bin.y);
    }
    transform_in_place(data, turns);
    for (int k = threadIdx.x; k < FRAME; k += blockDim.x) {
        frames[blockIdx.x * FRAME + k] = data[k].x * (1.0f / FRAME);
    }
}

__device__ float cube(float x) { return x * x * x; }

// A block for each channel, whose threads share its bins. spectrum: (CHANNELS * FRAMES_PER_BLOCK, BINS); level and
// magnitudes: (CHANNELS, BINS).
extern "C" __global__ void keep_tones(float2* spectrum, float* level, float* magnitudes) {
    const float silence = 1e-9f;
    float* const here = magnitudes + blockIdx.x * BINS;
    float* const tone = level + blockIdx.x * BINS;
    for (int frame = 0; frame < FRAMES_PER_BLOCK; ++frame) {
        float2* const row = spectrum + (blockIdx.x * FRAMES_PER_BLOCK + frame) * BINS;
        for (int k = threadIdx.x; k < BINS; k += blockDim.x) {
            here[k] = sqrtf(row[k].x * row[k].x + row[k].y * row[k].y);
            tone[k] = MEMORY * tone[k] + (1.0f - MEMORY) * here[k];
        }
        __syncthreads();
        for (int k = threadIdx.x; k < BINS; k += blockDim.x) {
            float around = 0;
            for (int other = max(k - REACH, 0); other <= min(k + REACH, BINS - 1); ++other) {
                around += here[other];
            }
            const float steady = cube(tone[k]);
            const float beat = cube(around * (1.0f / (2 * REACH + 1)));
            const float share = steady / (steady + beat + cube(silence) * silence);
            row[k] = make_float2(row[k].x * share, row[k].y * share);
        }
        __syncthreads();
    }
}

// A thread for each sample that a frame of the block lies over. part and next: (STEP, CHANNELS).
extern "C" __global__ void overlap_add(const float* frames, const float* fade, float* part, float* next) {
    const int i = index();
    const int sample = i / CHANNELS;
    const int channel = i % CHANNELS;
    if (sample < STEP + FRAME - HOP) {
        float* const to = sample < STEP ? part + i : next + (i - STEP * CHANNELS);
        float sum = *to;
        const int first = max((sample - FRAME) / HOP + (sample >= FRAME ? 1 : 0), 0);
        for (int frame = first; frame < FRAMES_PER_BLOCK && frame * HOP <= sample; ++frame) {
            const int k = sample - frame * HOP;
            sum += frames[(channel * FRAMES_PER_BLOCK + frame) * FRAME + k] * fade[k];
        }
        *to = sum;
    }
}

// part and result: (STEP, CHANNELS). A thread for each element.
extern "C" __global__ void store(float* part, float* result) {
    const int i = index();
    if (i < STEP * CHANNELS) {
        result[i] = part[i];
        part[i] = 0;
    }
}
)";

}  // namespace weir::demo
