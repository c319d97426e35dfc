#include "weir/explain.hpp"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>

#include "backend/timeline.hpp"
#include "order/history.hpp"
#include "runtime/resource.hpp"
#include "runtime/standstill.hpp"
#include "weir/array.hpp"
#include "weir/event.hpp"

namespace weir {

namespace {

/// What is not over and touches the same bytes.
std::vector<order::past_access> pending_accesses(runtime::resource& memory, const order::footprint& where) {
    const order::watermarks& completed = backend::timeline_table::instance();
    std::vector<order::past_access> found;
    const std::lock_guard lock(memory.mutex);
    for (const order::past_access& past : memory.history.accesses()) {
        if (!past.former_owner && !completed.is_complete(past.when.at) && overlap(past.where, where)) {
            found.push_back(past);
        }
    }
    return found;
}

void list(std::string& text, std::string_view title, const std::vector<std::string>& lines) {
    text += "\n  " + std::string(title) + (lines.empty() ? ": nothing" : ":");
    for (const std::string& line : lines) {
        text += "\n    " + line;
    }
}

}  // namespace

std::string explanation::to_string() const {
    std::string text = subject;
    if (protocol != "none") {
        text += "\n  came by " + protocol + (copied ? ", copied" : ", not copied") +
                (host_blocked ? ", and the host waited" : "");
    }
    list(text, "pending", pending);
    list(text, "waits for", waits);
    return text;
}

explanation explain(const array& what) {
    explanation said{what.to_string(), "none", false, false, {}, {}};
    runtime::resource* const memory = what.buffer().resource();
    if (memory == nullptr) {
        return said;
    }
    for (const order::past_access& one : pending_accesses(*memory, what.footprint())) {
        const runtime::pending_work work = runtime::look_at(one.when.at);
        said.pending.push_back(work.name + (one.mode == order::access_mode::write ? " writes" : " reads") + " bytes [" +
                               std::to_string(one.where.begin) + ", " + std::to_string(one.where.end) + ") on " +
                               work.stream);
        for (const frontiers::point awaited : work.waits) {
            const runtime::pending_work other = runtime::look_at(awaited);
            said.waits.push_back(work.name + " on " + work.stream + " waits for " + other.name + " on " + other.stream);
        }
    }
    return said;
}

explanation explain(const event& what) {
    explanation said{what.to_string(), "none", false, false, {}, {}};
    const completion recorded = what.recorded();
    const frontiers::point at{recorded.timeline(), recorded.epoch()};
    if (at.at == 0 || backend::timeline_table::instance().is_complete(at)) {
        return said;
    }
    const runtime::pending_work work = runtime::look_at(at);
    said.pending.push_back(work.name + " on " + work.stream);
    // The first line says what it is; each of the others, what the one before waits for.
    const std::string story = runtime::why_not_over(at).story;
    for (std::size_t from = 0; from < story.size();) {
        const std::size_t end = std::min(story.find('\n', from), story.size());
        const std::size_t begin = std::min(story.find_first_not_of(' ', from), end);
        said.waits.push_back(story.substr(begin, end - begin));
        from = end + 1;
    }
    return said;
}

}  // namespace weir
