#include "trace/perfetto_writer.hpp"

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <unordered_map>
#include <utility>

#include "frontier/point.hpp"
#include "trace/json_writer.hpp"
#include "trace/names.hpp"
#include "weir/detail/site.hpp"
#include "weir/source_location.hpp"

namespace weir::trace {

namespace {

using std::chrono::nanoseconds;

/// Microseconds with three digits after the decimal point, as the format requires.
std::string microseconds(nanoseconds time) {
    const auto count = static_cast<std::uint64_t>(std::max(time, nanoseconds(0)).count());
    std::string rest = std::to_string(count % 1000);
    rest.insert(0, 3 - rest.size(), '0');
    return std::to_string(count / 1000) + "." + rest;
}

class writer {
public:
    explicit writer(std::ostream& to) : to_(&to) {}

    void all(const log& from) {
        bool is_virtual = false;
        nanoseconds first = nanoseconds::max();
        for (const record& one : from.records) {
            if (const auto* ran = std::get_if<execution>(&one.what)) {
                executions_[{ran->at.stream, ran->at.at}] = ran;
                is_virtual = is_virtual || ran->by == clock_kind::virtual_time;
                first = std::min(first, ran->start);
            }
        }
        *to_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
        event("M", 0, "process_name", {},
              [](json_writer& json) { json.key("args").open('{').field("name", "Weir").close('}'); });
        // Under a virtual clock, operations are reported long before they end by the device's clock. So what the host did is put at the
        // device's time: after the last end that was reported before.
        nanoseconds device_time = first;
        for (const record& one : from.records) {
            if (const auto* ran = std::get_if<execution>(&one.what)) {
                device_time = std::max(device_time, ran->end);
            }
            now_ = is_virtual ? device_time : one.when;
            std::visit(*this, one.what);
        }
        *to_ << "\n]}\n";
    }

    void operator()(const stream_made& one) {
        event("M", one.stream, "thread_name", {},
              [&](json_writer& json) { json.key("args").open('{').field("name", one.name).close('}'); });
    }

    void operator()(const operation& one) {
        const execution* const ran = find(one.at);
        if (ran == nullptr) {
            return;
        }
        event("X", one.at.stream, one.from.label == nullptr ? "operation" : one.from.label, ran->start,
              [&](json_writer& json) {
                  json.key("dur").raw(microseconds(ran->end - ran->start)).field("cat", name_of(one.kind));
                  json.key("args").open('{').field("file", one.from.where.file).field("line", one.from.where.line);
                  json.field("epoch", one.at.at).close('}');
              });
        for (const issued_wait& wait : one.waits) {
            flow(wait, *ran);
        }
    }

    void operator()(const allocation& one) {
        sizes_[one.resource] = one.bytes;
        memory(live_ + one.bytes);
    }
    void operator()(const drop& one) {
        const auto known = sizes_.find(one.resource);
        if (known != sizes_.end()) {
            memory(live_ - known->second);
            sizes_.erase(known);
        }
    }

    template <class Other>
    void operator()(const Other&) {}

private:
    [[nodiscard]] const execution* find(const moment& at) const {
        const auto found = executions_.find({at.stream, at.at});
        return found == executions_.end() ? nullptr : found->second;
    }

    template <class Fields>
    void event(const char* phase, std::uint64_t thread, const char* name, nanoseconds at, Fields&& more) {
        line_.clear();
        json_writer json(line_);
        json.open('{').field("ph", phase).field("pid", 1).field("tid", thread).field("name", name);
        json.key("ts").raw(microseconds(at));
        more(json);
        json.close('}');
        *to_ << (is_first_ ? "" : ",\n") << line_;
        is_first_ = false;
    }

    void flow(const issued_wait& wait, const execution& to) {
        const execution* const from = find(wait.target);
        if (from == nullptr) {
            return;
        }
        const auto one_end = [&](const char* phase, const execution& end, nanoseconds at) {
            event(phase, end.at.stream, name_of(wait.why).data(), at, [&](json_writer& json) {
                json.field("cat", "wait").field("id", flows_);
                if (*phase == 'f') {
                    json.field("bp", "e");
                }
            });
        };
        ++flows_;
        // A flow belongs to the slice that is open at the flow's time.
        one_end("s", *from, from->end > from->start ? from->end - nanoseconds(1) : from->start);
        one_end("f", to, to.start);
    }

    void memory(std::uint64_t live) {
        live_ = live;
        event("C", 0, "memory in use", now_,
              [&](json_writer& json) { json.key("args").open('{').field("bytes", live).close('}'); });
    }

    std::ostream* to_;
    std::string line_;
    bool is_first_ = true;
    nanoseconds now_{0};
    std::map<std::pair<std::uint64_t, frontiers::epoch>, const execution*> executions_;
    std::unordered_map<std::uint64_t, std::uint64_t> sizes_;
    std::uint64_t live_ = 0;
    std::uint64_t flows_ = 0;
};

}  // namespace

void write_perfetto(std::ostream& to, const log& from) { writer(to).all(from); }

}  // namespace weir::trace
