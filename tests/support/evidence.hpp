// Evidence logs, kept while a test runs and audited by the independent verifier (rule V4).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <variant>

#include "observe/observers.hpp"
#include "support/step_pairs.hpp"
#include "trace/collector.hpp"
#include "trace/log_writer.hpp"
#include "verify/auditor.hpp"
#include "verify/reader.hpp"
#include "verify/report.hpp"

namespace weir::test {

namespace audit = weir_verify;

/// Records what happens while it lives.
class noted {
public:
    noted() {
        observe::observers::add(told_);
        told_.knows_all_streams();
    }
    ~noted() { observe::observers::remove(told_); }
    noted(const noted&) = delete;
    noted& operator=(const noted&) = delete;

    /// The log so far, as it would be written.
    [[nodiscard]] std::string text() const {
        std::ostringstream text;
        told_.read([&](const trace::log& kept) { trace::write_log(text, kept); });
        return text.str();
    }

private:
    trace::collector told_;
};

/// Audits a log whose records are changed first.
inline audit::auditor audited(
    const std::string& text, audit::audit_options options,
    const std::function<void(audit::record&)>& change = [](audit::record&) {}) {
    static audit::text_store texts;  // for the findings
    std::istringstream from(text);
    audit::log_reader reader(from, texts);
    audit::auditor auditor(options);
    while (auto one = reader.next()) {
        change(*one);
        auditor.take(*one);
    }
    return auditor;
}

inline std::string to_string(const audit::findings& found) {
    std::string said;
    for (const audit::finding& one : found.all()) {
        said += one.weight == audit::severity::information ? "" : to_string(one, "log");
    }
    return said;
}

/// Whether the audit found nothing; prints what it found, and the log, otherwise.
inline ::testing::AssertionResult is_proved(const audit::auditor& auditor, const std::string& log) {
    const auto count = auditor.found().count(audit::severity::violation) + auditor.found().count(audit::severity::note);
    return count == 0 ? ::testing::AssertionSuccess()
                      : ::testing::AssertionFailure() << to_string(auditor.found()) << "\n"
                                                      << log;
}

/// The pairs of unordered accesses among the findings.
inline pair_set pairs_of(const audit::findings& found) {
    pair_set pairs;
    for (const audit::finding& one : found.all()) {
        const std::string kind = one.kind;
        if ((kind == "unordered" || kind == "host") && *one.here.from.file == "program" &&
            *one.other->from.file == "program") {
            pairs.emplace(static_cast<int>(one.other->from.line), static_cast<int>(one.here.from.line));
        }
    }
    return pairs;
}

/// Removes from a log's record what Weir added, so that only the program's own order is left.
inline void take_out_what_weir_did(audit::record& one) {
    if (auto* const operation = std::get_if<audit::operation_record>(&one.what)) {
        operation->waits.clear();
        operation->elisions.clear();
        for (const audit::moment& after : operation->after) {
            operation->waits.push_back({after, false});
        }
    } else if (auto* const wait = std::get_if<audit::stream_wait_record>(&one.what)) {
        wait->issued = true;
    } else if (auto* const access = std::get_if<audit::host_access_record>(&one.what)) {
        access->what.manual = true;
    }
}

/// Only the program's own order counts.
inline constexpr audit::audit_options own_order_only{.as_automatic = true, .trust_completion = false};

}  // namespace weir::test
