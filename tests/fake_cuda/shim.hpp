// Put before CUDA C++ source by the fake NVRTC, which has the host's compiler compile it without any header of the host:
// names that NVRTC does not know are not known here either. Not supported in kernels: inline PTX, half precision, cooperative
// groups, overloaded kernels, and threads of a block that spin for each other without __nanosleep.
#pragma once

#include "shim_abi.hpp"
#include "shim_math.hpp"
#include "shim_types.hpp"

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __shared__ static thread_local
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))

static thread_local weir_shim::view* weir_fake_view;
extern "C" __attribute__((visibility("default"))) void weir_fake_set_view(weir_shim::view* now) {
    weir_fake_view = now;
}

namespace weir_shim {

template <unsigned long... Numbers>
struct numbers {};
template <unsigned long Count, unsigned long... Numbers>
struct count_to : count_to<Count - 1, Count - 1, Numbers...> {};
template <unsigned long... Numbers>
struct count_to<0, Numbers...> {
    using type = numbers<Numbers...>;
};

template <class Function>
struct signature;
template <class... Arguments>
struct signature<void (*)(Arguments...)> {
    static constexpr unsigned long sizes[] = {sizeof(Arguments)..., 0};
    static constexpr unsigned long alignments[] = {alignof(Arguments)..., 0};
    static constexpr unsigned count = sizeof...(Arguments);

    template <unsigned long... I>
    static void call(void (*what)(Arguments...), void** arguments, numbers<I...>) {
        what(*static_cast<Arguments*>(arguments[I])...);
    }
};

template <auto Kernel>
void run(void** arguments) {
    using type = signature<decltype(Kernel)>;
    type::call(Kernel, arguments, typename count_to<type::count>::type{});
}

template <auto Kernel>
kernel describe(const char* expression) {
    using type = signature<decltype(Kernel)>;
    return {expression, reinterpret_cast<void*>(Kernel), &run<Kernel>, type::count, type::sizes, type::alignments};
}

template <class Value>
unsigned long long shuffle(unsigned mask, Value value, unsigned lane) {
    static_assert(sizeof(Value) <= 8, "a shuffle is of 4 or 8 bytes");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    return weir_fake_view->shuffle(mask, bits, lane);
}

inline unsigned lane() {
    const view& v = *weir_fake_view;
    return (v.thread.x + v.block_size.x * (v.thread.y + v.block_size.y * v.thread.z)) % 32;
}

template <class Value>
Value exchange(unsigned mask, Value value, unsigned from, bool inside) {
    const unsigned long long bits = shuffle(mask, value, inside ? from : lane());
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace weir_shim

#define threadIdx (weir_fake_view->thread)
#define blockIdx (weir_fake_view->block)
#define blockDim (weir_fake_view->block_size)
#define gridDim (weir_fake_view->grid_size)
inline constexpr int warpSize = 32;

// Threads of a block and of a warp.
inline void __syncthreads() { weir_fake_view->sync_threads(); }
inline void __syncwarp(unsigned mask = 0xffffffff) { weir_fake_view->sync_warp(mask); }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(unsigned) { weir_fake_view->pause(); }
inline long long clock64() { return weir_fake_view->clock(); }
inline unsigned long long __globaltimer() { return static_cast<unsigned long long>(weir_fake_view->clock()); }
[[noreturn]] inline void __trap() {
    weir_fake_view->stop(719);
    __builtin_unreachable();
}
#define assert(condition) ((condition) ? static_cast<void>(0) : weir_fake_view->stop(710))
extern "C" int printf(const char*, ...);

template <class Value>
Value __shfl_sync(unsigned mask, Value value, int from, int width = 32) {
    const unsigned first = weir_shim::lane() / static_cast<unsigned>(width) * static_cast<unsigned>(width);
    return weir_shim::exchange(mask, value, first + static_cast<unsigned>(from) % static_cast<unsigned>(width), true);
}
template <class Value>
Value __shfl_down_sync(unsigned mask, Value value, unsigned by, int width = 32) {
    const unsigned me = weir_shim::lane();
    return weir_shim::exchange(mask, value, me + by,
                               me % static_cast<unsigned>(width) + by < static_cast<unsigned>(width));
}
template <class Value>
Value __shfl_up_sync(unsigned mask, Value value, unsigned by, int width = 32) {
    const unsigned me = weir_shim::lane();
    return weir_shim::exchange(mask, value, me - by, me % static_cast<unsigned>(width) >= by);
}
template <class Value>
Value __shfl_xor_sync(unsigned mask, Value value, int with, int width = 32) {
    const unsigned me = weir_shim::lane();
    const unsigned other = me ^ static_cast<unsigned>(with);
    return weir_shim::exchange(mask, value, other,
                               other / static_cast<unsigned>(width) <= me / static_cast<unsigned>(width));
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
    unsigned bits = predicate != 0 ? 1U << weir_shim::lane() : 0;
    unsigned all = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
        if ((mask >> lane & 1) != 0) {
            all |= static_cast<unsigned>(weir_shim::shuffle(mask, bits, lane)) & 1U << lane;
        }
    }
    return all;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate == 0) == 0; }
inline unsigned __activemask() { return 0xffffffff; }

// Atomic operations on memory that all devices and the host share.
#define WEIR_SHIM_ATOMIC(suffix)                                                                        \
    template <class Value>                                                                              \
    Value atomicExch##suffix(Value* at, weir_shim::same<Value> value) {                                 \
        Value before;                                                                                   \
        __atomic_exchange(at, &value, &before, __ATOMIC_SEQ_CST);                                       \
        return before;                                                                                  \
    }                                                                                                   \
    template <class Value>                                                                              \
    Value atomicCAS##suffix(Value* at, weir_shim::same<Value> expected, weir_shim::same<Value> value) { \
        __atomic_compare_exchange(at, &expected, &value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);    \
        return expected;                                                                                \
    }                                                                                                   \
    WEIR_SHIM_ATOMIC_OF(atomicAdd##suffix, before + value)                                              \
    WEIR_SHIM_ATOMIC_OF(atomicSub##suffix, before - value)                                              \
    WEIR_SHIM_ATOMIC_OF(atomicMin##suffix, value < before ? value : before)                             \
    WEIR_SHIM_ATOMIC_OF(atomicMax##suffix, before < value ? value : before)                             \
    WEIR_SHIM_ATOMIC_OF(atomicAnd##suffix, before& value)                                               \
    WEIR_SHIM_ATOMIC_OF(atomicOr##suffix, before | value)                                               \
    WEIR_SHIM_ATOMIC_OF(atomicXor##suffix, before ^ value)
#define WEIR_SHIM_ATOMIC_OF(name, result)                                                                    \
    template <class Value>                                                                                   \
    Value name(Value* at, weir_shim::same<Value> value) {                                                    \
        Value before;                                                                                        \
        __atomic_load(at, &before, __ATOMIC_SEQ_CST);                                                        \
        for (;;) {                                                                                           \
            Value after = static_cast<Value>(result);                                                        \
            if (__atomic_compare_exchange(at, &before, &after, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) { \
                return before;                                                                               \
            }                                                                                                \
        }                                                                                                    \
    }
WEIR_SHIM_ATOMIC()
WEIR_SHIM_ATOMIC_OF(atomicInc, before >= value ? 0 : before + 1)
WEIR_SHIM_ATOMIC_OF(atomicDec, before == 0 || before > value ? value : before - 1)
WEIR_SHIM_ATOMIC(_block)
WEIR_SHIM_ATOMIC(_system)

// Loads and stores with a hint.
#define WEIR_SHIM_LOAD(name)        \
    template <class Value>          \
    Value name(const Value* from) { \
        return *from;               \
    }
#define WEIR_SHIM_STORE(name)                            \
    template <class Value>                               \
    void name(Value* to, weir_shim::same<Value> value) { \
        *to = value;                                     \
    }
WEIR_SHIM_LOAD(__ldg)
WEIR_SHIM_LOAD(__ldca)
WEIR_SHIM_LOAD(__ldcg)
WEIR_SHIM_LOAD(__ldcs)
WEIR_SHIM_LOAD(__ldlu)
WEIR_SHIM_STORE(__stwb)
WEIR_SHIM_STORE(__stcg)
WEIR_SHIM_STORE(__stcs)
WEIR_SHIM_STORE(__stwt)
template <class Value>
Value __ldcv(const Value* from) {
    return *static_cast<const volatile Value*>(from);
}
