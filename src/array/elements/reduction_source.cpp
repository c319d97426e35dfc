#include "array/elements/reduction_source.hpp"

#include <algorithm>
#include <cstddef>

#include "array/cuda/source.hpp"
#include "array/elements/reduction_step.hpp"
#include "array/elements/source_parts.hpp"

// Source text is built once for a kernel: readability matters more than a saved copy.
// NOLINTBEGIN(performance-inefficient-string-concatenation)
namespace weir::elements {

namespace {

/// A function of one expression of the program's, whose lines compilers report under `file`. The value of fields may be a list in
/// braces.
std::string expression_function(const reduction_text& what, const char* name, const std::string& parameters,
                                const char* file, const std::string& expression) {
    const bool has_fields = what.has_fields();
    return std::string("WEIR_INLINE accumulator ") + name + "(" + parameters + ") {\n    return " +
           (has_fields ? "" : "assigned<accumulator>(") + "\n#line 1 \"" + file + "\"\n" + expression +
           "\n#line 1 \"weir\"\n    " + (has_fields ? "" : ")") + ";\n}\n";
}

/// The type of the reduced values. A list of values in braces is converted as C++ does, on all devices alike.
std::string accumulator_type(const reduction_text& what, const value_types& value) {
    if (!what.has_fields()) {
        return "using accumulator = " + type_text(value[0]) + ";\n";
    }
    std::string fields;
    std::string classes;
    std::string parameters;
    std::string values;
    for (std::size_t k = 0; k < value.size(); ++k) {
        const std::string number = std::to_string(k);
        const std::string& name = what.value[k].name;
        const char* const comma = k > 0 ? ", " : "";
        fields += "    " + type_text(value[k]) + " " + name + ";\n";
        classes += comma + ("class T" + number);
        parameters += comma + ("const T" + number + "& weir_" + number);
        values += comma + name + "(assigned<" + type_text(value[k]) + ">(weir_" + number + "))";
    }
    return "struct weir_fields {\n" + fields + "    weir_fields() = default;\n    template <" + classes +
           ">\n    __device__ inline weir_fields(" + parameters + ") : " + values +
           " {}\n};\nusing accumulator = weir_fields;\nstatic_assert(sizeof(accumulator) == " +
           std::to_string(bytes_of_value(value)) + ", \"\");\n";
}

/// Type variables such as T, and the functions of the texts.
std::string text_functions(const reduction_text& what, const element_types& types, const value_types& value) {
    const element_signature& signature = what.signature;
    std::string aliases;
    const auto add_alias = [&](const element_parameter& one, dtype stored) {
        const std::string line = "using " + one.variable + " = " + seen_text(stored) + ";\n";
        if (!one.variable.empty() && aliases.find(line) == std::string::npos) {
            aliases += line;
        }
    };
    std::string inputs;
    for (std::size_t k = 0; k < signature.inputs.size(); ++k) {
        add_alias(signature.inputs[k], types.inputs[k]);
        inputs += "const " + seen_text(types.inputs[k]) + " " + signature.inputs[k].name + ", ";
    }
    // An operand of this name hides the element's number, or how many there are.
    const auto hidden_by_operands = [&](const char* name) {
        return std::string("const int64") + (declares(signature, name) ? "" : std::string(" ") + name);
    };
    inputs += hidden_by_operands("i") + ", " + hidden_by_operands("n");
    std::string classes;
    std::string outputs = "const accumulator a";
    for (std::size_t k = 0; k < signature.outputs.size(); ++k) {
        const element_parameter& one = signature.outputs[k];
        add_alias(one, types.outputs[k]);
        classes += write_only_class(one);
        outputs += ", " + output_type(one, types.outputs[k]) + "& " + one.name;
    }
    const std::string post = what.post.empty() ? signature.outputs.front().name + " = a" : what.post;
    outputs += ", " + hidden_by_operands("n");
    std::string source =
        "\nnamespace weir {\nnamespace given {\n\n" + accumulator_type(what, value) + classes + aliases + "\n";
    source += expression_function(what, "weir_map", inputs, map_file, what.map);
    source +=
        expression_function(what, "weir_combine", "const accumulator a, const accumulator b", reduce_file, what.reduce);
    source += "WEIR_INLINE void weir_post(" + outputs +
              ") {\n{  // post may declare variables of these names\n#line 1 \"" + post_file + "\"\n" + post +
              "\n;\n#line 1 \"weir\"\n}\n}\n";
    if (!what.identity.empty()) {
        source += expression_function(what, "weir_identity", "", identity_file, what.identity);
    }
    return source;
}

/// The value of the map for one element, where `place(k)` is the text of the address of input k, and `index` and `total` those of its
/// number and of how many there are.
template <class Place>
std::string mapped(const element_types& types, const Place& place, const std::string& index, const char* total) {
    std::string call = "weir_map(";
    for (std::size_t k = 0; k < types.inputs.size(); ++k) {
        call += types.is_whole[k] ? "v" + std::to_string(k)
                                  : "convert<" + seen_text(types.inputs[k]) + ">(*reinterpret_cast<const " +
                                        type_text(types.inputs[k]) + "*>(" + place(k) + "))";
        call += ", ";
    }
    return call + index + ", " + total + ")";
}

/// The host's loops over elements, for any strides or for adjacent elements.
std::string host_loops(const element_types& types, bool is_packed) {
    const std::string name = is_packed ? "packed" : "strided";
    std::string setup;
    for (std::size_t k = 0; k < types.inputs.size(); ++k) {
        const std::string number = std::to_string(k);
        if (types.is_whole[k]) {
            setup += "    const " + seen_text(types.inputs[k]) + " v" + number + " = *reinterpret_cast<const " +
                     seen_text(types.inputs[k]) + "*>(s.first[" + number + "]);\n";
            continue;
        }
        setup += "    const char* const p" + number + " = s.first[" + number + "];\n";
    }
    const auto place = [&](const char* strides, const char* index) {
        return [&types, is_packed, strides, index](std::size_t k) {
            const std::string number = std::to_string(k);
            const std::string stride = is_packed ? "static_cast<int64>(sizeof(" + type_text(types.inputs[k]) + "))"
                                                 : std::string("s.") + strides + "[" + number + "]";
            return "p" + number + " + (" + index + ") * " + stride;
        };
    };
    const auto mapped_at = [&](const char* index) {
        return mapped(types, place("strides", index), std::string("s.index + ") + index, "s.total");
    };
    const auto row_place = [](std::size_t k) {
        return "p" + std::to_string(k) + " + j * s.strides[" + std::to_string(k) + "] + r * " + "q" + std::to_string(k);
    };
    std::string result_strides;
    for (std::size_t k = 0; k < types.inputs.size(); ++k) {
        if (!types.is_whole[k]) {
            result_strides += "    const int64 q" + std::to_string(k) + " = " +
                              (is_packed ? "static_cast<int64>(sizeof(" + type_text(types.inputs[k]) + "))"
                                         : "s.result_strides[" + std::to_string(k) + "]") +
                              ";\n";
        }
    }
    // One result: the elements one after the other, and `lanes` of them side by side.
    std::string source =
        "static void one_" + name + "(const weir_step& s) {\n" + setup +
        "    accumulator* const kept = static_cast<accumulator*>(s.lanes);\n"
        "    const int64 end = s.count;\n"
        "    int64 j = 0;\n"
        "    int64 at = s.position;\n"
        "    for (; j < end && at < lanes; ++j, ++at) {\n        kept[at] = " +
        mapped_at("j") +
        ";\n    }\n"
        "    for (; j < end && at % lanes != 0; ++j, ++at) {\n"
        "        kept[at % lanes] = weir_combine(kept[at % lanes], " +
        mapped_at("j") +
        ");\n    }\n"
        "    if (j + lanes <= end) {\n"
        "        accumulator lane[lanes];\n"
        "        for (int64 k = 0; k < lanes; ++k) {\n            lane[k] = kept[k];\n        }\n"
        "        for (; j + lanes <= end; j += lanes, at += lanes) {\n"
        "            for (int64 k = 0; k < lanes; ++k) {\n"
        "                lane[k] = weir_combine(lane[k], " +
        mapped_at("j + k") +
        ");\n            }\n        }\n"
        "        for (int64 k = 0; k < lanes; ++k) {\n            kept[k] = lane[k];\n        }\n    }\n"
        "    for (; j < end; ++j, ++at) {\n"
        "        kept[at % lanes] = weir_combine(kept[at % lanes], " +
        mapped_at("j") + ");\n    }\n}\n";
    // Several results side by side.
    source += "static void several_" + name + "(const weir_step& s) {\n" + setup + result_strides +
              "    for (int64 j = 0; j < s.count; ++j) {\n"
              "        const int64 at = s.position + j;\n"
              "        accumulator* const lane = static_cast<accumulator*>(s.lanes) + at % lanes * s.results;\n"
              "        if (at < lanes) {\n"
              "            for (int64 r = 0; r < s.results; ++r) {\n                lane[r] = " +
              mapped(types, row_place, "s.index + j", "s.total") +
              ";\n            }\n        } else {\n            WEIR_INDEPENDENT\n"
              "            for (int64 r = 0; r < s.results; ++r) {\n                lane[r] = weir_combine(lane[r], " +
              mapped(types, row_place, "s.index + j", "s.total") + ");\n            }\n        }\n    }\n}\n";
    return source;
}

/// Whether all arrays among the inputs have these strides, as a condition.
std::string packed_condition(const element_types& types, const std::string& strides) {
    std::string condition = "true";
    for (std::size_t k = 0; k < types.inputs.size(); ++k) {
        if (!types.is_whole[k]) {
            condition += " && s." + strides + "[" + std::to_string(k) + "] == static_cast<int64>(sizeof(" +
                         type_text(types.inputs[k]) + "))";
        }
    }
    return condition;
}

}  // namespace

std::string reduction_form::fingerprint() const {
    return {static_cast<char>(rank), static_cast<char>(reduced_rank),
            wide ? '1' : '0',        first ? '1' : '0',
            last ? '1' : '0',        none ? '1' : '0'};
}

std::size_t bytes_of_value(const value_types& value) noexcept {
    std::size_t bytes = 0;
    std::size_t most = 1;
    for (const dtype one : value) {
        const std::size_t aligned_to = is_complex(one) ? size_of(one) / 2 : size_of(one);
        bytes = (bytes + aligned_to - 1) / aligned_to * aligned_to + size_of(one);
        most = std::max(most, aligned_to);
    }
    return (bytes + most - 1) / most * most;
}

std::string host_source(const reduction_text& what, const element_types& types, const value_types& value) {
    std::string source = host_start() + text_functions(what, types, value);
    source += R"(
struct weir_step {
    long long what, results, count, position, index, total;
    char* const* first;
    const long long* result_strides;
    const long long* strides;
    void* lanes;
    void* values;
};
constexpr int64 lanes = )" +
              std::to_string(reduction_lanes) + ";\n\n" + host_loops(types, true) + host_loops(types, false) + R"(
static void combine_lanes(const weir_step& s) {
    accumulator* const all = static_cast<accumulator*>(s.lanes);
    accumulator* const values = static_cast<accumulator*>(s.values);
    int64 count = s.count < lanes ? s.count : lanes;
    for (int64 half = lanes / 2; half > 0; half /= 2) {
        for (int64 k = 0; k < half && k + half < count; ++k) {
            for (int64 r = 0; r < s.results; ++r) {
                all[k * s.results + r] = weir_combine(all[k * s.results + r], all[(k + half) * s.results + r]);
            }
        }
        count = count < half ? count : half;
    }
    for (int64 r = 0; r < s.results; ++r) {
        values[r] = all[r];
    }
}
static void write_outputs(const weir_step& s) {
    for (int64 r = 0; r < s.results; ++r) {
)";
    std::string arguments;
    std::string stores;
    for (std::size_t k = 0; k < types.outputs.size(); ++k) {
        const std::string number = std::to_string(k);
        source += "        " + output_type(what.signature.outputs[k], types.outputs[k]) + " o" + number + ";\n";
        arguments += ", o" + number;
        stores += "        *reinterpret_cast<" + type_text(types.outputs[k]) + "*>(s.first[" + number +
                  "] + r * s.result_strides[" + number + "]) = convert<" + type_text(types.outputs[k]) + ">(o" +
                  number + ".weir_value());\n";
    }
    source += "        weir_post(static_cast<accumulator*>(s.values)[r]" + arguments + ", s.total);\n" + stores +
              R"(    }
}

}  // namespace given
}  // namespace weir

extern "C" __attribute__((visibility("default"))) void )" +
              host_function + R"((const weir::given::weir_step* what) {
    using namespace weir;
    using namespace weir::given;
    const weir_step& s = *what;
    accumulator* const values = static_cast<accumulator*>(s.values);
    switch (s.what) {
        case 0:
            if (s.results == 1) {
                )" +
              packed_condition(types, "strides") +
              R"( ? one_packed(s) : one_strided(s);
            } else {
                )" +
              packed_condition(types, "result_strides") +
              R"( ? several_packed(s) : several_strided(s);
            }
            break;
        case 1:
            combine_lanes(s);
            break;
        case 2:
            for (int64 r = 0; r < s.results; ++r) {
                values[r] = weir_combine(values[r], static_cast<const accumulator*>(s.lanes)[r]);
            }
            break;
        case 3:
            write_outputs(s);
            break;
)";
    if (!what.identity.empty()) {
        source += R"(        case 4:
            for (int64 r = 0; r < s.results; ++r) {
                values[r] = weir_identity();
            }
            break;
)";
    }
    return source + "        default:\n            break;\n    }\n}\n";
}

std::string cuda_source(const reduction_text& what, const element_types& types, const value_types& value,
                        const reduction_form& form) {
    const auto constant = [](const char* name, std::size_t number) {
        return std::string("constexpr int ") + name + " = " + std::to_string(number) + ";\n";
    };
    const std::size_t inputs = types.inputs.size();
    const std::size_t outputs = types.outputs.size();
    std::string source = cuda_start() + text_functions(what, types, value);
    source += std::string("\nusing index = ") + (form.wide ? "uint64" : "uint32") + ";\n" +
              constant("rank", form.rank) + constant("reduced_rank", form.reduced_rank) +
              constant("inputs", std::max<std::size_t>(inputs, 1)) + constant("outputs", outputs) +
              constant("operands", outputs + inputs) + constant("threads", array_kernels::threads) +
              constant("by_thread", array_kernels::reduced_by_thread);
    source += R"cuda(
struct parameters {
    uint64 results;
    uint64 elements;
    uint64 total;
    uint64 lanes;
    uint64 across;
    uint64 blocks;
    uint64 parts_from;
    uint64 parts_to;
    uint64 in[inputs][2];
    uint64 out[outputs];
    int64 result_extent[rank];
    int64 result_stride[rank][operands];
    int64 extent[reduced_rank];
    int64 stride[reduced_rank][inputs];
};

template <class T>
__device__ inline T number(const uint64* words) {
    T value;
    memcpy(&value, words, sizeof value);
    return value;
}

)cuda" + array_kernels::offset_text() +
              R"cuda(__device__ inline accumulator element(const parameters& p, index result, index i) {
)cuda";
    if (form.none) {
        source += "    return weir_identity();\n}\n";
    } else if (form.first) {
        std::string numbers;
        for (std::size_t k = 0; k < inputs; ++k) {
            const std::string which = std::to_string(k);
            numbers += types.is_whole[k] ? "    const " + seen_text(types.inputs[k]) + " v" + which + " = number<" +
                                               seen_text(types.inputs[k]) + ">(p.in[" + which + "]);\n"
                                         : std::string();
        }
        source += numbers + "    return " +
                  mapped(
                      types,
                      [outputs](std::size_t k) {
                          const std::string which = std::to_string(k);
                          return "p.in[" + which +
                                 "][0] + static_cast<uint64>(offset<rank, operands>(p.result_extent, "
                                 "&p.result_stride[0][" +
                                 std::to_string(outputs + k) +
                                 "], result) + offset<reduced_rank, inputs>(p.extent, &p.stride[0][" + which + "], i))";
                      },
                      "static_cast<int64>(i)", "static_cast<int64>(p.total)") +
                  ";\n}\n";
    } else {
        source +=
            "    return reinterpret_cast<const accumulator*>(p.parts_from)[i * static_cast<index>(p.results) + "
            "result];\n}\n";
    }
    source += "\n__device__ inline void finish(const parameters& p, index result, index part, accumulator value) {\n";
    if (form.last) {
        std::string arguments;
        std::string stores;
        for (std::size_t k = 0; k < outputs; ++k) {
            const std::string which = std::to_string(k);
            const std::string stored = type_text(types.outputs[k]);
            source += "    " + output_type(what.signature.outputs[k], types.outputs[k]) + " o" + which + ";\n";
            arguments += ", o" + which;
            stores += "    *reinterpret_cast<" + stored + "*>(p.out[" + which +
                      "] + static_cast<uint64>(offset<rank, operands>(p.result_extent, &p.result_stride[0][" + which +
                      "], result))) = convert<" + stored + ">(o" + which + ".weir_value());\n";
        }
        source += "    weir_post(value" + arguments + ", static_cast<int64>(p.total));\n" + stores + "}\n";
    } else {
        source +=
            "    reinterpret_cast<accumulator*>(p.parts_to)[part * static_cast<index>(p.results) + result] = "
            "value;\n}\n";
    }
    return source + "\n" + array_kernels::part_text("accumulator") + R"cuda(    if (used) {
        index i = first + lane;
        accumulator value = element(p, at, i);
        for (i += lanes; i < last; i += lanes) {
            value = weir_combine(value, element(p, at, i));
        }
        shared[thread] = value;
    }
    const index here = last - first;
    for (uint32 half = lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        if (used && lane < half && lane + half < here) {
            shared[thread] = weir_combine(shared[thread], shared[thread + half * apart]);
        }
    }
    if (used && lane == 0) {
        finish(p, at, part, shared[thread]);
    }
}

}  // namespace given
}  // namespace weir

extern "C" __global__ void weir_kernel(const weir::given::parameters p) {
    __shared__ weir::given::accumulator shared[weir::given::threads];
    weir::given::run(p, shared);
}
)cuda";
}

}  // namespace weir::elements
// NOLINTEND(performance-inefficient-string-concatenation)
