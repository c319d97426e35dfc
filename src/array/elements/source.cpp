#include "array/elements/source.hpp"

#include <cstddef>
#include <string_view>
#include <utility>

#include "array/cuda/prelude.hpp"
#include "array/cuda/source.hpp"
#include "array/elements/prelude.hpp"
#include "array/elements/source_parts.hpp"

// Source text is built once for a kernel: readability matters more than a saved copy.
// NOLINTBEGIN(performance-inefficient-string-concatenation)
namespace weir::elements {

std::string type_text(dtype type) { return name_of(type); }
std::string seen_text(dtype stored) { return type_text(seen_as(stored)); }

std::string write_only_class(const element_parameter& one) {
    const std::string name = one.name + write_only_ending;
    std::string changes;  // each of them reads
    for (const char* const sign : {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"}) {
        changes +=
            std::string("    template <class From>\n    void operator") + sign + "=(const From& given) = delete;\n";
    }
    return "template <class Value>\nclass " + name + R"cuda( {
public:
    template <class From>
    __device__ inline void operator=(const From& given) {
        value = assigned<Value>(given);
    }
    __device__ inline void operator=(const )cuda" +
           name + R"cuda(& given) { value = static_cast<Value>(given); }
    __device__ inline operator Value() const {
        static_assert(is_same<Value, void>, ")cuda" +
           name + R"cuda(");
        return value;
    }
    __device__ inline Value weir_value() const { return value; }
)cuda" + changes +
           R"cuda(
private:
    Value value{};
};
)cuda";
}

std::string output_type(const element_parameter& one, dtype stored) {
    return one.use == element_use::inout ? seen_text(stored)
                                         : one.name + write_only_ending + "<" + seen_text(stored) + ">";
}

std::string host_start() {
    return R"cuda(#include <cmath>
#include <cstdlib>
#define __device__
#define WEIR_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define WEIR_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define WEIR_INDEPENDENT _Pragma("GCC ivdep")
#endif
    )cuda" +
           std::string(array_kernels::prelude_types) + prelude_host_functions + prelude_common;
}

std::string cuda_start() {
    return "#define WEIR_INLINE __device__ inline\n" + std::string(array_kernels::prelude_types) +
           prelude_cuda_functions + prelude_common;
}

namespace {

/// What the body of a kernel sees of a raw input.
constexpr const char* raw_class = R"cuda(
template <class Stored, class Seen>
struct weir_raw {
    const Stored* first;
    int64 count;
    __device__ inline Seen operator[](int64 at) const { return convert<Seen>(first[at]); }
    __device__ inline int64 size() const { return count; }
};
)cuda";

/// The type of an input that is passed by value or seen by the body.
std::string input_type(const element_text& what, const element_types& types, std::size_t k) {
    const std::string seen = seen_text(types.inputs[k]);
    return what.signature.inputs[k].is_raw ? "weir_raw<" + type_text(types.inputs[k]) + ", " + seen + ">" : seen;
}

/// The type variables such as T, the classes of outputs, and the function that computes one element.
std::string element_function(const element_text& what, const element_types& types) {
    const element_signature& signature = what.signature;
    std::string source = "\nnamespace weir {\nnamespace given {\n\n";
    std::string aliases;
    const auto add_alias = [&](const element_parameter& one, dtype stored) {
        const std::string line = "using " + one.variable + " = " + seen_text(stored) + ";\n";
        if (!one.variable.empty() && aliases.find(line) == std::string::npos) {
            aliases += line;
        }
    };
    std::string parameters;
    bool has_raw = false;
    for (std::size_t k = 0; k < signature.inputs.size(); ++k) {
        add_alias(signature.inputs[k], types.inputs[k]);
        parameters += "const " + input_type(what, types, k) + " " + signature.inputs[k].name + ", ";
        has_raw = has_raw || signature.inputs[k].is_raw;
    }
    for (std::size_t k = 0; k < signature.outputs.size(); ++k) {
        const element_parameter& one = signature.outputs[k];
        add_alias(one, types.outputs[k]);
        const bool is_read = one.use == element_use::inout;
        source += is_read ? std::string() : write_only_class(one);
        parameters += output_type(one, types.outputs[k]) + "& " + one.name + ", ";
    }
    source += (has_raw ? raw_class : "") + aliases + "\nWEIR_INLINE void element(" + parameters + "const int64" +
              (what.uses_index ? " i" : "") + ", const int64" + (what.uses_count ? " n" : "") + ") {\n#line 1 \"" +
              body_file + "\"\n" + what.body + "\n;\n#line 1 \"weir\"\n}\n";
    return source;
}

/// How a host loop accesses an input.
enum class loop_form : std::uint8_t { number, packed, constant, strided };

/// One loop over `columns` elements.
std::string one_loop(const element_text& what, const element_types& types, const std::vector<loop_form>& inputs,
                     bool packed_outputs) {
    const std::size_t outputs = types.outputs.size();
    std::string before;
    std::string call;
    std::string declared;
    std::string stores;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        const std::string number = std::to_string(outputs + k);
        const std::string stored = type_text(types.inputs[k]);
        const std::string seen = seen_text(types.inputs[k]);
        const std::string load = "convert<" + seen + ">(*reinterpret_cast<const " + stored + "*>(p" + number;
        switch (inputs[k]) {
            case loop_form::number:
                call += "v" + number + ", ";
                break;
            case loop_form::packed:
                call += "convert<" + seen + ">(reinterpret_cast<const " + stored + "*>(p" + number + ")[j]), ";
                break;
            case loop_form::constant:
                before += "            const " + seen + " c" + number + " = " + load + "));\n";
                call += "c" + number + ", ";
                break;
            case loop_form::strided:
                call += load + " + j * s" + number + ")), ";
                break;
        }
    }
    for (std::size_t k = 0; k < outputs; ++k) {
        const std::string number = std::to_string(k);
        const std::string stored = type_text(types.outputs[k]);
        const element_parameter& one = what.signature.outputs[k];
        const std::string place = packed_outputs
                                      ? "reinterpret_cast<" + stored + "*>(p" + number + ")[j]"
                                      : "*reinterpret_cast<" + stored + "*>(p" + number + " + j * s" + number + ")";
        const bool is_read = one.use == element_use::inout;
        declared += "                ";
        declared += output_type(one, types.outputs[k]) + " o" + number;
        declared += is_read ? " = convert<" + seen_text(types.outputs[k]) + ">(" + place + ");\n" : ";\n";
        call += "o" + number + ", ";
        stores += "                " + place + " = convert<" + stored + ">(o" + number +
                  (is_read ? ");\n" : ".weir_value());\n");
    }
    return before + "            WEIR_INDEPENDENT\n            for (int64 j = 0; j < columns; ++j) {\n" + declared +
           "                element(" + call + "index + j, n);\n" + stores + "            }\n";
}

/// The loops of the host's function: one for each of the most frequent strides, and one for all others.
std::string all_loops(const element_text& what, const element_types& types) {
    const std::size_t outputs = types.outputs.size();
    std::vector<std::size_t> arrays;  // inputs
    std::string packed_outputs;
    for (std::size_t k = 0; k < outputs; ++k) {
        packed_outputs +=
            (k > 0 ? " && s" : "s") + std::to_string(k) + " == sizeof(" + type_text(types.outputs[k]) + ")";
    }
    std::vector<loop_form> forms(types.inputs.size(), loop_form::number);
    for (std::size_t k = 0; k < types.inputs.size(); ++k) {
        if (!types.is_whole[k]) {
            arrays.push_back(k);
        }
    }
    // Each combination of packed and constant inputs, if there are few combinations.
    const std::size_t combinations = arrays.size() <= 2 ? std::size_t{1} << arrays.size() : 1;
    std::string source;
    for (std::size_t constants = 0; constants < combinations; ++constants) {
        source += "        " + std::string(constants > 0 ? "} else " : "") + "if (" + packed_outputs;
        for (std::size_t a = 0; a < arrays.size(); ++a) {
            const bool is_constant = (constants >> a & 1U) != 0;
            forms[arrays[a]] = is_constant ? loop_form::constant : loop_form::packed;
            source += " && s" + std::to_string(outputs + arrays[a]) +
                      (is_constant ? " == 0" : " == sizeof(" + type_text(types.inputs[arrays[a]]) + ")");
        }
        source += ") {\n" + one_loop(what, types, forms, true);
    }
    for (const std::size_t k : arrays) {
        forms[k] = loop_form::strided;
    }
    return source + "        } else {\n" + one_loop(what, types, forms, false) + "        }\n";
}

}  // namespace

element_text::element_text(element_signature its, std::string_view text)
    : signature(std::move(its)),
      body(text),
      uses_index(!declares(signature, "i") && mentions(text, "i")),
      uses_count(!declares(signature, "n") && mentions(text, "n")) {}

std::string element_types::fingerprint() const {
    std::string text;
    for (const auto* const list : {&inputs, &outputs}) {
        for (const dtype one : *list) {
            const auto number = one.key();
            text.append(reinterpret_cast<const char*>(&number), sizeof number);
        }
    }
    for (const bool one : is_whole) {
        text += one ? '1' : '0';
    }
    return text;
}

std::string cuda_form::fingerprint() const { return {static_cast<char>(rank), packed ? '1' : '0', wide ? '1' : '0'}; }

dtype seen_as(dtype stored) noexcept {
    return stored == dtype::float16 || stored == dtype::bfloat16 ? dtype::float32 : stored;
}

std::string host_source(const element_text& what, const element_types& types) {
    std::string source = host_start();
    source += element_function(what, types);
    source +=
        "\n}  // namespace given\n}  // namespace weir\n\nextern \"C\" __attribute__((visibility(\"default\"))) void ";
    source += host_function;
    source += R"((char* const* first, const long long* row_strides, const long long* column_strides, long long rows,
    long long columns, long long index, long long n) {
    using namespace weir;
    using namespace weir::given;
)";
    const std::size_t outputs = types.outputs.size();
    const std::size_t operands = outputs + types.inputs.size();
    std::string pointers;
    for (std::size_t k = 0; k < operands; ++k) {
        const std::string number = std::to_string(k);
        if (k >= outputs && types.is_whole[k - outputs]) {
            const std::string seen = input_type(what, types, k - outputs);
            source += "    const " + seen + " v" + number + " = *reinterpret_cast<const " + seen + "*>(first[" +
                      number + "]);\n";
            continue;
        }
        source += "    const int64 s" + number + " = column_strides[" + number + "];\n";
        pointers +=
            "        char* const p" + number + " = first[" + number + "] + row * row_strides[" + number + "];\n";
    }
    return source + "    for (int64 row = 0; row < rows; ++row, index += columns) {\n" + pointers +
           all_loops(what, types) + "    }\n}\n";
}

std::string cuda_source(const element_text& what, const element_types& types, const cuda_form& form) {
    const std::size_t outputs = types.outputs.size();
    const std::size_t operands = outputs + types.inputs.size();
    const auto constant = [](const char* name, std::size_t value) {
        return std::string("constexpr int ") + name + " = " + std::to_string(value) + ";\n";
    };
    const auto stored = [&](std::size_t k) { return k < outputs ? types.outputs[k] : types.inputs[k - outputs]; };
    std::string source = cuda_start();
    source += element_function(what, types);
    source += std::string("\nusing index = ") + (form.wide ? "uint64" : "uint32") + ";\n" +
              constant("rank", form.rank) + constant("operands", operands) +
              constant("threads", array_kernels::threads) + constant("each", array_kernels::elements_at_once);
    source += "\nstruct parameters {\n    uint64 elements;\n    uint64 operand[operands][2];\n";
    source += form.packed ? "};\n" : "    int64 extent[rank];\n    int64 stride[rank][operands];\n};\n";
    source += R"cuda(
struct place {
    int64 of[operands];
};

__device__ inline place place_of(const parameters& p, index i) {
    place at;
)cuda";
    if (form.packed) {
        for (std::size_t k = 0; k < operands; ++k) {
            const bool is_whole = k >= outputs && types.is_whole[k - outputs];
            source += "    at.of[" + std::to_string(k) +
                      "] = " + (is_whole ? "0" : "static_cast<int64>(i) * " + std::to_string(size_of(stored(k)))) +
                      ";\n";
        }
    } else {
        source += R"cuda(#pragma unroll
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
    source += R"cuda(    return at;
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
    std::string fields;
    std::string reads;
    std::string arguments;
    std::string writes;
    for (std::size_t k = 0; k < operands; ++k) {
        const std::string which = std::to_string(k);
        const std::string as = seen_text(stored(k));
        const std::string place = "(p, " + which + ", at)";
        if (k >= outputs) {
            arguments += types.is_whole[k - outputs]
                             ? "number<" + input_type(what, types, k - outputs) + ">(p.operand[" + which + "]), "
                             : "convert<" + as + ">(*address<const " + type_text(stored(k)) + ">" + place + "), ";
            continue;
        }
        const bool is_read = what.signature.outputs[k].use == element_use::inout;
        fields += "    " + output_type(what.signature.outputs[k], stored(k)) + " o" + which + ";\n";
        if (is_read) {
            reads += "    to.o" + which + " = convert<" + as + ">(*address<const " + type_text(stored(k)) + ">" +
                     place + ");\n";
        }
        writes += "    *address<" + type_text(stored(k)) + ">" + place + " = convert<" + type_text(stored(k)) +
                  ">(from.o" + which + (is_read ? ");\n" : ".weir_value());\n");
    }
    for (std::size_t k = 0; k < outputs; ++k) {
        arguments += "to.o" + std::to_string(k) + ", ";
    }
    source += "struct results {\n" + fields +
              "};\n\n__device__ inline void compute(const parameters& p, index i, results& to) {\n" +
              "    const place at = place_of(p, i);\n" + reads + "    element(" + arguments +
              "static_cast<int64>(i), static_cast<int64>(p.elements));\n}\n\n" +
              "__device__ inline void store(const parameters& p, index i, const results& from) {\n" +
              "    const place at = place_of(p, i);\n" + writes + "}\n";
    return source + R"cuda(
// All are read before any is written: so the reads of several elements are under way at once.
template <bool Whole>
__device__ inline void piece(const parameters& p, index first, index count) {
    results values[each];
#pragma unroll
    for (int k = 0; k < each; ++k) {
        const index i = first + k * threads;
        if (Whole || i < count) {
            compute(p, i, values[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < each; ++k) {
        const index i = first + k * threads;
        if (Whole || i < count) {
            store(p, i, values[k]);
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

}  // namespace given
}  // namespace weir

extern "C" __global__ void weir_kernel(const weir::given::parameters p) { weir::given::run(p); }
)cuda";
}

}  // namespace weir::elements
// NOLINTEND(performance-inefficient-string-concatenation)
