#include "weir/explain.hpp"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>

#include "backend/timeline.hpp"
#include "order/history.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/diagnostics/standstill.hpp"
#include "runtime/lifetime/resource.hpp"
#include "weir/access.hpp"
#include "weir/array.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/event.hpp"
#include "weir/package.hpp"
#include "weir/token.hpp"

namespace weir {

namespace {

/// Incomplete accesses that touch the same bytes.
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

constexpr unsigned protocol_bits = 0x0F;
constexpr unsigned went_out_bit = 0x10;
constexpr unsigned copied_bit = 0x20;
constexpr unsigned host_blocked_bit = runtime::resource::host_blocked_note;

std::string name_of_protocol(exchange_protocol one) {
    switch (one) {
        case exchange_protocol::dlpack:
            return "DLPack";
        case exchange_protocol::dlpack_table:
            return "DLPack C exchange table";
        case exchange_protocol::cuda_array_interface:
            return "CUDA Array Interface";
        case exchange_protocol::arrow_device:
            return "Arrow C device data interface";
        case exchange_protocol::arrow:
            return "Arrow C data interface";
        case exchange_protocol::elements:
            return "elements";
        case exchange_protocol::buffer:
            return "buffer protocol";
        case exchange_protocol::none:
            break;
    }
    return "none";
}

/// Adds the pending accesses to `where` of a resource, and what they wait for.
void add_pending(explanation& to, runtime::resource& of, const order::footprint& where) {
    for (const order::past_access& one : pending_accesses(of, where)) {
        const runtime::pending_work work = runtime::look_at(one.when.at);
        const std::string part = of.token_name() != nullptr ? "it"
                                                            : "bytes [" + std::to_string(one.where.begin) + ", " +
                                                                  std::to_string(one.where.end) + ")";
        to.pending.push_back(work.name + (one.mode == order::access_mode::write ? " writes " : " reads ") + part +
                             " on " + work.stream);
        for (const frontiers::point awaited : work.waits) {
            const runtime::pending_work other = runtime::look_at(awaited);
            to.waits.push_back(work.name + " on " + work.stream + " waits for " + other.name + " on " + other.stream);
        }
    }
}

/// The packages that share the memory, as explanation::shared_with.
std::vector<std::string> sharers_of(runtime::resource& memory) {
    std::vector<std::string> found;
    const std::lock_guard lock(memory.mutex);
    for (const runtime::package_tie& one : memory.packages().all()) {
        const bool has_streams = one.device->kind() == device_kind::cuda;
        found.push_back(std::string(one.with->name()) +
                        (one.rights == runtime::tie_rights::writing ? "" : ", which lets Weir only read") +
                        (one.mode == order::access_mode::read ? ", which only reads" : "") +
                        (has_streams ? ": operations and its current stream wait for each other"
                                     : ": operations that conflict are over when their calls return"));
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
        text += (went_out ? "\n  went out by " : "\n  came by ") + protocol + (copied ? ", copied" : ", not copied") +
                (host_blocked ? ", and the host waited" : "");
    }
    const bool is_shared = !copied && protocol != "none";
    if (!shared_with.empty()) {
        list(text, "shared with", shared_with);
    } else if (is_shared && !went_out) {
        text +=
            "\n  shared with nobody: the package has let go of it, and operations are not ordered with what it does";
    }
    if (!phases.empty()) {
        list(text, "phases", phases);
        return text;
    }
    list(text, "pending", pending);
    list(text, "waits for", waits);
    return text;
}

void note_exchange(const buffer& memory, const exchange_record& how) noexcept {
    if (runtime::resource* const of = memory.resource(detail::key)) {
        of->note_exchange(static_cast<std::uint8_t>(static_cast<unsigned>(how.by) | (how.went_out ? went_out_bit : 0U) |
                                                    (how.copied ? copied_bit : 0U) |
                                                    (how.host_blocked ? host_blocked_bit : 0U)));
    }
}

exchange_record last_exchange(const buffer& memory) noexcept {
    const unsigned note = memory ? memory.resource(detail::key)->exchange_note() : 0U;
    return {static_cast<exchange_protocol>(note & protocol_bits), (note & went_out_bit) != 0, (note & copied_bit) != 0,
            (note & host_blocked_bit) != 0};
}

bool has_pending(const array& what, bool writes) {
    runtime::resource* const memory = what.buffer().resource(detail::key);
    if (memory == nullptr) {
        return false;
    }
    const std::vector<order::past_access> pending = pending_accesses(*memory, what.footprint(detail::key));
    return std::any_of(pending.begin(), pending.end(),
                       [&](const order::past_access& one) { return writes || one.mode == order::access_mode::write; });
}

explanation explain(const array& what) {
    explanation said{what.to_string(), "none", false, false, false, {}, {}};
    runtime::resource* const memory = what.buffer().resource(detail::key);
    if (memory == nullptr) {
        return said;
    }
    const exchange_record last = last_exchange(what.buffer());
    said.protocol = name_of_protocol(last.by);
    said.went_out = last.went_out;
    said.copied = last.copied;
    said.host_blocked = last.host_blocked;
    said.shared_with = sharers_of(*memory);
    add_pending(said, *memory, what.footprint(detail::key));
    return said;
}

explanation explain(const token& what) {
    explanation said{what.to_string(), "none", false, false, false, {}, {}};
    if (runtime::resource* const of = what.resource(detail::key)) {
        add_pending(said, *of, {0, of->size()});
    }
    return said;
}

explanation explain(const event& what) {
    explanation said{what.to_string(), "none", false, false, false, {}, {}};
    const completion recorded = what.recorded();
    const frontiers::point at{recorded.timeline(detail::key), recorded.epoch(detail::key)};
    if (at.at == 0 || backend::timeline_table::instance().is_complete(at)) {
        return said;
    }
    const runtime::pending_work work = runtime::look_at(at);
    said.pending.push_back(work.name + " on " + work.stream);
    // The first line names the operation; each further line states what the one before waits for.
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
