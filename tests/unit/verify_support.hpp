#pragma once

#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "verify/auditor.hpp"
#include "verify/reader.hpp"
#include "verify/report.hpp"

namespace weir_verify::testing {

inline text_store& texts() {
    static text_store all;
    return all;
}

/// A log, record by record, as Weir would write it.
class story {
public:
    story& stream(std::uint64_t id, moment former = {}, bool is_new = true, std::uint64_t queue = 0) {
        return add(
            stream_record{id, texts().keep("s" + std::to_string(id)), texts().keep("cpu"), is_new, former, queue});
    }
    /// A stream that its device orders with others: "legacy" or "blocking".
    story& ordered_stream(std::uint64_t id, const char* order, const char* device = "cuda:0") {
        stream_record one{id, texts().keep("s" + std::to_string(id)), texts().keep(device), true, {}, 0};
        one.order = texts().keep(order);
        return add(one);
    }
    story& device_order(moment at, moment target) {
        stream_wait_record one{at, target, 0, false, line(100 * at.stream + at.epoch)};
        one.by_device = true;
        return add(one);
    }
    /// An operation; its place is line 100 * stream + epoch.
    story& operation(moment at, std::vector<access> accesses, std::vector<moment> waits = {},
                     std::vector<elision> elisions = {}, std::vector<moment> after = {}) {
        operation_record one;
        one.at = at;
        one.label = texts().keep("work");
        one.from = line(100 * at.stream + at.epoch);
        one.accesses = std::move(accesses);
        one.after = std::move(after);
        for (const moment& each : waits) {
            one.waits.push_back({each, false});
        }
        one.elisions = std::move(elisions);
        return add(std::move(one));
    }
    story& gate(moment at) {
        operation_record one;
        one.at = at;
        one.label = texts().keep("gate");
        one.from = line(100 * at.stream + at.epoch);
        one.is_gate = true;
        return add(std::move(one));
    }
    story& event(std::uint64_t event, moment at) { return add(event_record{event, at, line(1)}); }
    story& wait(moment at, moment target, bool issued = true, std::uint64_t event = 0) {
        return add(stream_wait_record{at, target, event, issued, line(100 * at.stream + at.epoch)});
    }
    story& host_wait(moment target) { return add(host_wait_record{target, line(2)}); }
    story& host_access(access what) { return add(host_access_record{what, line(3)}); }
    story& allocate(std::uint64_t resource, std::uint64_t address, std::uint64_t bytes = 64, std::uint64_t stream = 1) {
        return add(allocation_record{resource, bytes, texts().keep("cpu"), address, stream, line(4)});
    }
    story& drop(std::uint64_t resource) { return add(drop_record{resource}); }
    story& failed(moment at) { return add(failure_record{at}); }
    story& ran(moment at) { return add(execution_record{at, 0, 1}); }

    [[nodiscard]] const std::vector<record>& records() const noexcept { return records_; }

    /// How many findings there are of each kind.
    [[nodiscard]] std::map<std::string, std::uint64_t> audit(audit_options options = {}) const {
        auditor one(options);
        for (const record& each : records_) {
            one.take(each);
        }
        std::map<std::string, std::uint64_t> kinds;
        for (const finding& each : one.found().all()) {
            kinds[each.kind] += each.times;
        }
        return kinds;
    }

private:
    static place line(std::uint64_t number) {
        return {texts().keep("main.cpp"), texts().keep("main"), static_cast<std::uint32_t>(number)};
    }
    template <class What>
    story& add(What what) {
        records_.push_back({records_.size() + 2, std::move(what)});
        return *this;
    }

    std::vector<record> records_;
};

inline access reads(std::uint64_t resource, std::uint64_t begin = 0, std::uint64_t end = 64) {
    return {resource, 64, {begin, end, 0, {}}, false, false};
}
inline access writes(std::uint64_t resource, std::uint64_t begin = 0, std::uint64_t end = 64) {
    return {resource, 64, {begin, end, 0, {}}, true, false};
}
inline access manual(access one) {
    one.manual = true;
    return one;
}

/// The printed result for a log, and the exit status.
struct judged {
    int status = 0;
    std::string said;
    findings found;
    audit_summary sum;
};

inline judged judge(const std::string& log, audit_options options = {}) {
    std::istringstream from(log);
    log_reader reader(from, texts());
    auditor one(options);
    verdict made;
    try {
        while (const auto next = reader.next()) {
            one.take(*next);
        }
    } catch (const malformed_log& wrong) {
        made.malformed = wrong.what();
    }
    made.log = "log";
    made.sum = one.summary();
    made.found = &one.found();
    made.lost = reader.lost();
    std::ostringstream said;
    print(said, made, true, 5);
    print_json(said, made);
    return {exit_status(made), said.str(), one.found(), made.sum};
}

}  // namespace weir_verify::testing
