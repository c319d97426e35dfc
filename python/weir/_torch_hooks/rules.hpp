// What each operator of torch reads and writes, by its schema.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace weir_torch {

constexpr c10::DispatchKey wrapper = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

enum class touch : std::uint8_t {
    nothing,
    reads,
    writes,
    made,   ///< a new result
    wrote,  ///< a result that is a written argument, which may have got other memory
};

/// What an operator does to its operands, by its schema.
struct rules {
    enum class kind : std::uint8_t {
        nothing,  ///< calls other operators alone, or looks at no elements
        usual,
        composite,  ///< calls other operators, or works itself
        record_stream,
        copy,
        collective,  ///< uses its operands on a stream of its own
    };
    kind what = kind::nothing;
    const char* name = nullptr;
    bool takes_part_of_memory = false;  ///< which elements depends on values
    std::vector<touch> arguments;
    std::vector<touch> results;
};

inline bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }
inline bool ends(std::string_view text, std::string_view with) {
    return text.size() >= with.size() && text.substr(text.size() - with.size()) == with;
}
inline bool writes(const c10::AliasInfo& alias) {
    return alias.isWrite() || std::any_of(alias.containedTypes().begin(), alias.containedTypes().end(),
                                          [](const c10::AliasInfo& one) { return writes(one); });
}

inline std::unique_ptr<const rules> rules_of(const c10::OperatorHandle& op) {
    // Views, and changes of shape, that schemas do not tell from others.
    static const std::unordered_set<std::string_view> of_metadata{
        "resize_",      "resize_as_",   "set_",         "_resize_output_", "_reshape_alias",
        "detach",       "detach_",      "is_same_size", "is_pinned",       "lift_fresh",
        "_unsafe_view", "unsafe_split", "unsafe_chunk", "as_strided_",     "unsafe_split_with_sizes",
        "squeeze_",     "unsqueeze_",   "t_",           "transpose_",      "swapaxes_",
        "swapdims_",    "lift",         "rename_",      "requires_grad_"};
    static const std::unordered_set<std::string_view> without_results{"_local_scalar_dense", "equal", "_assert_async",
                                                                      "is_nonzero"};
    static const std::vector<std::string_view> indexed{"index", "_index_put", "scatter",   "gather",    "masked_",
                                                       "take",  "put_",       "embedding", "_embedding"};
    const c10::FunctionSchema& schema = op.schema();
    auto made = std::make_unique<rules>();
    static auto* const names = new std::unordered_set<std::string>;
    static auto* const mutex = new std::mutex;
    {
        const std::lock_guard lock(*mutex);
        made->name = names->emplace(schema.name()).first->c_str();
    }
    std::string_view name = schema.name();
    const bool is_of_torch = begins(name, "aten::");
    if (is_of_torch) {
        name.remove_prefix(6);
    }
    if (begins(name, "c10d::") || begins(name, "_c10d_functional::")) {
        made->what = rules::kind::collective;
        return made;
    }
    if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
        (is_of_torch && of_metadata.count(name) != 0)) {
        return made;
    }
    if (is_of_torch && name == "record_stream") {
        made->what = rules::kind::record_stream;
        return made;
    }
    const auto has = [&](c10::DispatchKey key) { return op.hasKernelForDispatchKey(key); };
    const bool is_composite = (has(c10::DispatchKey::CompositeExplicitAutograd) ||
                               has(c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) &&
                              !has(c10::DispatchKey::CPU) && !has(c10::DispatchKey::CUDA);
    made->what = is_of_torch && name == "copy_" ? rules::kind::copy
                 : is_composite                 ? rules::kind::composite
                                                : rules::kind::usual;
    // These look at the shape of what they are given alone.
    const bool makes = is_of_torch && (begins(name, "new_") || ends(name, "_like"));
    const bool leaves_empty =
        is_of_torch && (begins(name, "empty") || begins(name, "new_empty") || begins(name, "_empty"));
    made->takes_part_of_memory = is_of_torch && std::any_of(indexed.begin(), indexed.end(),
                                                            [&](std::string_view one) { return begins(name, one); });
    bool has_writes = false;
    for (const c10::Argument& one : schema.arguments()) {
        const c10::AliasInfo* const alias = one.alias_info();
        touch what = touch::nothing;
        if (alias == nullptr) {
            what = makes ? touch::nothing : touch::reads;
        } else if (writes(*alias)) {
            what = touch::writes;
            has_writes = true;
        }
        made->arguments.push_back(what);
    }
    bool has_results = false;
    for (const c10::Argument& one : schema.returns()) {
        const c10::AliasInfo* const alias = one.alias_info();
        const bool is_new = alias == nullptr && !leaves_empty;
        made->results.push_back(is_new                               ? touch::made
                                : alias != nullptr && writes(*alias) ? touch::wrote
                                                                     : touch::nothing);
        has_results = has_results || one.type()->isSubtypeOf(*c10::TensorType::get()) ||
                      one.type()->kind() == c10::TypeKind::ListType;
    }
    const auto is_nothing = [](touch one) { return one == touch::nothing; };
    const bool touches_nothing = std::all_of(made->arguments.begin(), made->arguments.end(), is_nothing) &&
                                 std::all_of(made->results.begin(), made->results.end(), is_nothing);
    // Such as a view, or the size of a tensor.
    if (touches_nothing || (is_of_torch && !has_writes && !has_results && without_results.count(name) == 0)) {
        made->what = rules::kind::nothing;
    }
    return made;
}

inline const rules& known_rules(const c10::OperatorHandle& op) {
    thread_local std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<const rules>> known;
    std::unique_ptr<const rules>& one = known[&op.schema()];
    if (one == nullptr) {
        one = rules_of(op);
    }
    return *one;
}

/// Operators of torch that do nothing to memory themselves need not come here, which saves their calls the most of what it costs.
inline void pass_by_what_does_nothing() {
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
        const auto op = dispatcher.findSchema(name);
        if (op && begins(name.name, "aten::") && rules_of(*op)->what == rules::kind::nothing) {
            static auto* const kept = new std::vector<c10::RegistrationHandleRAII>;
            kept->push_back(dispatcher.registerImpl(name, wrapper, c10::KernelFunction::makeFallthrough(), std::nullopt,
                                                    nullptr, "weir"));
        }
    }
}

}  // namespace weir_torch
