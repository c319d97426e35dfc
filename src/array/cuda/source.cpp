#include "array/cuda/source.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "array/cuda/body.hpp"
#include "array/cuda/prelude.hpp"

namespace weir::array_kernels {

namespace {

std::string text(dtype type) { return std::string(name_of(type)); }

/// The names of one kernel in its source.
struct names {
    std::string space = "weir";        ///< the namespace of what is not shared with other kernels of the source
    std::string kernel = kernel_name;  ///< the kernel
};

std::string end_of_kernel(const names& named) {
    return "\n}  // namespace " + named.space + "\n\nextern \"C\" __global__ void " + named.kernel + "(const " +
           named.space + "::parameters p) { " + named.space + "::run(p); }\n";
}

std::string constant(const char* name, std::size_t value) {
    return std::string("constexpr int ") + name + " = " + std::to_string(value) + ";\n";
}

/// The type of element indices, and constants of the kernel.
std::string counting(const description& what, const names& named) {
    std::string source = "\nnamespace " + named.space + " {\n\n";
    source += std::string("using index = ") + (what.wide ? "uint64" : "uint32") + ";\n";
    return source + constant("rank", what.rank) + constant("threads", threads);
}

/// The position of the i-th element: bytes from the first one, for all operands.
std::string place(const description& what) {
    std::string source = constant("operands", what.operands) + R"cuda(
struct parameters {
    uint64 elements;
    uint64 extra[2];
    uint64 operand[operands][2];
    int64 extent[rank];
    int64 stride[rank][operands];
};

struct place {
    int64 of[operands];
};

__device__ inline place place_of(const parameters& p, index i) {
    place at;
)cuda";
    if (what.packed) {
        for (std::size_t k = 0; k < what.operands; ++k) {
            source += "    at.of[" + std::to_string(k) + "] = ";
            source += what.by_value[k] ? "0;\n"
                                       : "static_cast<int64>(i) * " + std::to_string(size_of(what.stored[k])) + ";\n";
        }
    } else {
        source += R"cuda(
#pragma unroll
    for (int k = 0; k < operands; ++k) {
        at.of[k] = 0;
    }
#pragma unroll
    for (int d = rank - 1; d >= 0; --d) {
        index within = i;
        if (d > 0) {
            const index extent = static_cast<index>(p.extent[d]);
            within = i % extent;
            i /= extent;
        }
#pragma unroll
        for (int k = 0; k < operands; ++k) {
            at.of[k] += static_cast<int64>(within) * p.stride[d][k];
        }
    }
)cuda";
    }
    return source + R"cuda(
    return at;
}

template <class T>
__device__ inline T* address(const parameters& p, int operand, const place& at) {
    return reinterpret_cast<T*>(p.operand[operand][0] + static_cast<uint64>(at.of[operand]));
}

template <class T>
__device__ inline T number(const uint64* words) {
    T value;
    memcpy(&value, words, sizeof value);
    return value;
}
)cuda";
}

/// The value of the i-th result, before conversion.
std::string value(const description& what) {
    if (what.what == function::counted) {
        return what.computed[0] == dtype::float64
                   ? "number<double>(p.extra) + number<double>(p.extra + 1) * static_cast<double>(i)"
                   : "static_cast<int64>(p.extra[0] + p.extra[1] * static_cast<uint64>(i))";
    }
    std::string call = body_of(what.what).name +
                       (what.what == of(binary_operation::power) ? "{reinterpret_cast<int*>(p.extra[0])}(" : "{}(");
    for (std::size_t k = 1; k < what.operands; ++k) {
        const std::string number = std::to_string(k);
        call += k > 1 ? ", " : "";
        call += what.by_value[k] ? "number<" : "convert<";
        call += text(what.computed[k]);
        if (what.by_value[k]) {
            call.append(">(p.operand[").append(number).append("])");
        } else {
            call.append(">(*address<const ")
                .append(text(what.stored[k]))
                .append(">(p, ")
                .append(number)
                .append(", at))");
        }
    }
    return call + ")";
}

std::string elementwise(const description& what, const names& named) {
    std::string source = counting(what, named) + constant("each", elements_at_once) + place(what);
    source += "\nusing result = " + text(what.stored[0]) + ";\n";
    source +=
        "\n__device__ inline result value_of(const parameters& p, const place& at, index i) {\n    return "
        "convert<result>(" +
        value(what) + ");\n}\n";
    return source + R"cuda(
// All are read before any is written: so the reads of several elements are under way at once.
template <bool Whole>
__device__ inline void piece(const parameters& p, index first, index count) {
    result values[each];
#pragma unroll
    for (int k = 0; k < each; ++k) {
        const index i = first + k * threads;
        if (Whole || i < count) {
            values[k] = value_of(p, place_of(p, i), i);
        }
    }
#pragma unroll
    for (int k = 0; k < each; ++k) {
        const index i = first + k * threads;
        if (Whole || i < count) {
            *address<result>(p, 0, place_of(p, i)) = values[k];
        }
    }
}

__device__ inline void run(const parameters& p) {
    const index count = static_cast<index>(p.elements);
    const index here = static_cast<index>(blockIdx.x) * (threads * each) + threadIdx.x;
    const index step = static_cast<index>(gridDim.x) * (threads * each);
    for (index first = here; first < count; first += step) {
        if (first + (each - 1) * threads < count) {
            piece<true>(p, first, count);
        } else {
            piece<false>(p, first, count);
        }
    }
}
)cuda" + end_of_kernel(named);
}

std::string random(const description& what, const names& named) {
    std::string source = counting(what, named) + place(what) + "\nusing result = " + text(what.stored[0]) + ";\n";
    return source + R"cuda(
__device__ inline void run(const parameters& p) {
    constexpr uint64 each = 16 / sizeof(result);
    const uint64 step = static_cast<uint64>(gridDim.x) * threads;
    for (uint64 block = static_cast<uint64>(blockIdx.x) * threads + threadIdx.x; block * each < p.elements; block += step) {
        const words all = philox(p.extra[0], block);
        for (uint32 k = 0; k < each; ++k) {
            if (block * each + k < p.elements) {
                reinterpret_cast<result*>(p.operand[0][0])[block * each + k] = random_number<result>(all, k);
            }
        }
    }
}
)cuda" + end_of_kernel(named);
}

std::string reduction(const description& what, const names& named) {
    std::string source =
        counting(what, named) + constant("reduced_rank", what.reduced_rank) + constant("by_thread", reduced_by_thread);
    source += "using stored = " + text(what.stored[1]) + ";\nusing computed = " + text(what.computed[1]) +
              ";\nusing result = " + text(what.stored[0]) + ";\nusing function = " + body_of(what.what).name +
              ";\nconstexpr bool last_step = " + (what.last ? "true" : "false") +
              ";\nconstexpr bool mean = " + (what.mean ? "true" : "false") + ";\n";
    return source + R"cuda(
struct parameters {
    uint64 results;
    uint64 elements;
    uint64 total;
    uint64 lanes;
    uint64 across;
    uint64 blocks;
    uint64 out;
    uint64 in;
    int64 result_extent[rank];
    int64 result_stride[rank][2];
    int64 extent[reduced_rank];
    int64 stride[reduced_rank];
};

)cuda" + offset_text() +
           R"cuda(__device__ inline computed element(const parameters& p, uint64 row, index i) {
    const int64 at = offset<reduced_rank, 1>(p.extent, p.stride, i);
    return convert<computed>(*reinterpret_cast<const stored*>(row + static_cast<uint64>(at)));
}

)cuda" + part_text("computed") +
           R"cuda(    const function combine{};
    if (used) {
        const uint64 row = p.in + static_cast<uint64>(offset<rank, 2>(p.result_extent, &p.result_stride[0][1], at));
        index i = first + lane;
        computed value = element(p, row, i);
        for (i += lanes; i + 3 * lanes < last; i += 4 * lanes) {
            const computed a = element(p, row, i);
            const computed b = element(p, row, i + lanes);
            const computed c = element(p, row, i + 2 * lanes);
            const computed d = element(p, row, i + 3 * lanes);
            value = combine(value, combine(combine(a, b), combine(c, d)));
        }
        for (; i < last; i += lanes) {
            value = combine(value, element(p, row, i));
        }
        shared[thread] = value;
    }
    const index here = last - first;
    for (uint32 half = lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        if (used && lane < half && lane + half < here) {
            shared[thread] = combine(shared[thread], shared[thread + half * apart]);
        }
    }
    if (!used || lane != 0) {
        return;
    }
    computed value = shared[thread];
    if constexpr (mean) {
        value = divided(value, p.total);
    }
    if constexpr (last_step) {
        const int64 to = offset<rank, 2>(p.result_extent, &p.result_stride[0][0], at);
        *reinterpret_cast<result*>(p.out + static_cast<uint64>(to)) = convert<result>(value);
    } else {
        reinterpret_cast<computed*>(p.out)[part * static_cast<index>(p.results) + at] = value;
    }
}

)cuda" + "}  // namespace " +
           named.space + "\n\nextern \"C\" __global__ void " + named.kernel + "(const " + named.space +
           "::parameters p) {\n    __shared__ " + named.space + "::computed shared[" + named.space +
           "::threads];\n    " + named.space + "::run(p, shared);\n}\n";
}

/// The kernel without the definitions that it shares with others.
std::string kernel_of(const description& what, const names& named) {
    switch (what.what) {
        case function::plus:
        case function::lesser:
        case function::larger:
            return reduction(what, named);
        case function::random:
            return random(what, named);
        default:
            return elementwise(what, named);
    }
}

}  // namespace

std::span<const std::string> compiler_options() {
    static const std::vector<std::string> options = {"--std=c++17", "--fmad=false"};
    return options;
}

std::string offset_text() {
    return R"cuda(template <int Dimensions, int Operands>
__device__ inline int64 offset(const int64* extents, const int64* strides, index i) {
    int64 at = 0;
#pragma unroll
    for (int d = Dimensions - 1; d >= 0; --d) {
        index within = i;
        if (d > 0) {
            const index extent = static_cast<index>(extents[d]);
            within = i % extent;
            i /= extent;
        }
        at += static_cast<int64>(within) * strides[d * Operands];
    }
    return at;
}

)cuda";
}

std::string part_text(const std::string& value) {
    return R"cuda(// A block reduces a part of the elements of some results: `lanes` threads for each, which are next to each other or,
// `across`, as far apart as there are results in the block. Parts are put together by one more launch.
__device__ inline void run(const parameters& p, )cuda" +
           value + R"cuda(* shared) {
    const uint32 lanes = static_cast<uint32>(p.lanes);
    const uint32 beside = threads / lanes;
    const uint32 thread = threadIdx.x;
    const uint32 lane = p.across != 0 ? thread / beside : thread % lanes;
    const uint32 which = p.across != 0 ? thread % beside : thread / lanes;
    const uint32 apart = p.across != 0 ? beside : 1;
    const index part = static_cast<index>(blockIdx.x / p.blocks);
    const index at = static_cast<index>(blockIdx.x % p.blocks) * beside + which;
    const index first = part * (lanes * by_thread);
    const index rest = static_cast<index>(p.elements) - first;
    const index last = first + (rest < lanes * by_thread ? rest : lanes * by_thread);
    const bool used = at < p.results && first + lane < last;
)cuda";
}

std::string source_of(const description& what) {
    return prelude_types + body_of(what.what).definition + kernel_of(what, {});
}

std::string source_of(std::span<const description> all) {
    std::vector<std::string_view> definitions;
    for (const description& one : all) {
        definitions.emplace_back(body_of(one.what).definition);
    }
    // The longest first: the definition of power contains those of the other operations.
    std::sort(definitions.begin(), definitions.end(),
              [](std::string_view a, std::string_view b) { return a.size() > b.size(); });
    std::string source = prelude_types;
    for (const std::string_view one : definitions) {
        if (source.find(one) == std::string::npos) {
            source += one;
        }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::string number = std::to_string(i);
        source += kernel_of(all[i], {"weir::kernel_" + number, name_in_set(i)});
    }
    return source;
}

std::string name_in_set(std::size_t i) { return std::string(kernel_name) + "_" + std::to_string(i); }

}  // namespace weir::array_kernels
