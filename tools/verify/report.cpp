#include "report.hpp"

#include <nlohmann/json.hpp>

namespace weir_verify {

namespace {

using nlohmann::ordered_json;

void print_some(std::ostream& to, const verdict& of, severity weight, std::size_t limit) {
    std::size_t printed = 0;
    std::size_t left = 0;
    for (const finding& one : of.found->all()) {
        if (one.weight != weight) {
            continue;
        }
        if (printed < limit) {
            to << to_string(one, of.log);
            ++printed;
        } else {
            ++left;
        }
    }
    if (left != 0) {
        to << "... and " << left << " more of this kind\n";
    }
}

ordered_json to_json(const party& of) {
    ordered_json made{{"line", of.line}};
    if (of.from.file != nullptr) {
        made["place"] = {{"file", *of.from.file}, {"line", of.from.line}, {"function", *of.from.function}};
    }
    if (of.label != nullptr) {
        made["label"] = *of.label;
    }
    if (of.at.stream != 0) {
        made["at"] = {of.at.stream, of.at.epoch};
    }
    if (of.stream != nullptr) {
        made["stream"] = *of.stream;
    }
    return made;
}

const char* name_of(severity of) {
    return of == severity::violation ? "violation" : of == severity::note ? "note" : "information";
}

}  // namespace

int exit_status(const verdict& of) {
    if (!of.malformed.empty() || of.lost != 0) {
        return 2;
    }
    const bool found = of.found->count(severity::violation) != 0 || (of.strict && of.found->count(severity::note) != 0);
    return found ? 1 : 0;
}

void print(std::ostream& to, const verdict& of, bool all, std::size_t limit) {
    print_some(to, of, severity::violation, limit);
    if (all || of.strict) {
        print_some(to, of, severity::note, limit);
    }
    if (all) {
        print_some(to, of, severity::information, limit);
    }
    if (!of.malformed.empty()) {
        to << "incomplete: " << of.log << ": " << of.malformed << "\n";
    }
    if (of.lost != 0) {
        to << "incomplete: " << of.log << ": there was no memory for " << of.lost << " records\n";
    }
    const audit_summary& sum = of.sum;
    to << (exit_status(of) == 0 ? "verified: " : "not verified: ") << sum.operations << " operations, " << sum.waits
       << " waits, " << sum.elisions << " elisions";
    const auto count = [&](std::uint64_t n, const char* what) {
        if (n != 0) {
            to << "; " << n << " " << what;
        }
    };
    count(of.found->count(severity::violation), "violations");
    count(of.found->count(severity::note), "notes");
    count(of.found->count(severity::information), "conflicts left to the program");
    count(sum.by_completion, "conflicts in order because the first was over");
    count(sum.trusted, "claims about what is not in the log");
    count(sum.pending, "operations had not run");
    to << "\n";
}

void print_json(std::ostream& to, const verdict& of) {
    const audit_summary& sum = of.sum;
    const int status = exit_status(of);
    ordered_json all{{"log", of.log},
                     {"status", status == 0   ? "verified"
                                : status == 1 ? "violations"
                                              : "incomplete"},
                     {"operations", sum.operations},
                     {"streams", sum.streams},
                     {"waits", sum.waits},
                     {"elisions", sum.elisions},
                     {"host_waits", sum.host_waits},
                     {"allocations", sum.allocations},
                     {"conflicts", sum.conflicts},
                     {"by_completion", sum.by_completion},
                     {"trusted", sum.trusted},
                     {"pending", sum.pending},
                     {"lost", of.lost},
                     {"malformed", of.malformed},
                     {"findings", ordered_json::array()}};
    for (const finding& one : of.found->all()) {
        ordered_json made{{"severity", name_of(one.weight)}, {"kind", one.kind},          {"what", one.what},
                          {"missing", one.missing},          {"here", to_json(one.here)}, {"times", one.times}};
        if (one.other) {
            made["earlier"] = to_json(*one.other);
        }
        all["findings"].push_back(std::move(made));
    }
    to << all.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
}

}  // namespace weir_verify
