#include "random_programs/poison_model.hpp"

#include <algorithm>

namespace random_programs {

int poison_model::reason_in(const touch& part) const {
    const std::vector<int> all = reasons_in(part);
    const auto first = std::find_if(all.begin(), all.end(), [](int reason) { return reason != none; });
    return first == all.end() ? none : *first;
}

std::vector<int> poison_model::reasons_in(const touch& part) const {
    const std::vector<int>& memory = memories_.at(part.memory);
    return {memory.begin() + part.begin, memory.begin() + part.end};
}

void poison_model::set(const touch& part, int reason) {
    healings_ += reason == none && reason_in(part) != none ? 1 : 0;
    std::vector<int>& memory = memories_.at(part.memory);
    std::fill(memory.begin() + part.begin, memory.begin() + part.end, reason);
}

int poison_model::add(const step& one) {
    const bool is_work = is_operation(one.kind);
    if (!is_work && !is_host_access(one.kind)) {
        return none;
    }
    if (one.kind == step_kind::allocate) {
        memories_[one.memory].assign(static_cast<std::size_t>(one.size), none);
    }
    int reason = none;
    for (const touch& part : one.touches) {
        // The host's writes always succeed.
        const bool depends = is_work ? !overwrites(one.kind, part.write) : !part.write;
        reason = reason == none && depends ? reason_in(part) : reason;
    }
    for (const int after : one.after) {
        const auto found = failed_.find(after);
        reason = reason == none && found != failed_.end() ? found->second : reason;
    }
    reason = reason == none && one.fails ? one.number : reason;
    if (is_work && reason != none) {
        failed_[one.number] = reason;
    }
    for (const touch& part : one.touches) {
        if (part.write && (reason != none || !is_work || overwrites(one.kind, true))) {
            set(part, reason);
        }
    }
    return reason;
}

}  // namespace random_programs
