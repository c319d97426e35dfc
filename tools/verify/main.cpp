// weir-verify: audits an evidence log of Weir without any of Weir's code (rule V4). The format is docs/evidence-log.md.
// Exit status: 0 everything is proved, 1 something is not, 2 the log is incomplete, or wrong use.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>

#include "auditor.hpp"
#include "reader.hpp"
#include "report.hpp"

namespace {

constexpr int incomplete = 2;

struct settings {
    std::string log;
    weir_verify::audit_options audit;
    bool ignore_completion = false;
    bool all = false;
    bool strict = false;
    bool json = false;
    std::size_t limit = 20;
};

int verify(const settings& wanted, std::istream& from) {
    weir_verify::text_store texts;
    weir_verify::log_reader reader(from, texts);
    weir_verify::auditor auditor(wanted.audit);
    weir_verify::verdict verdict;
    try {
        while (const auto one = reader.next()) {
            auditor.take(*one);
        }
    } catch (const weir_verify::malformed_log& wrong) {
        verdict.malformed = wrong.what();
    }
    verdict.log = wanted.log;
    verdict.sum = auditor.summary();
    verdict.found = &auditor.found();
    verdict.lost = reader.lost();
    verdict.strict = wanted.strict;
    if (wanted.json) {
        print_json(std::cout, verdict);
    } else {
        print(std::cout, verdict, wanted.all, wanted.limit);
    }
    if (!std::cout.flush()) {
        std::cerr << "weir-verify: the report cannot be written\n";
        return incomplete;
    }
    return exit_status(verdict);
}

int run(int argc, char** argv) {
    CLI::App app("Audits an evidence log of Weir: whether everything that must be ordered is", "weir-verify");
    settings wanted;
    app.set_version_flag("--version", "weir-verify " WEIR_VERSION);
    app.add_option("log", wanted.log, "The log (.weirlog), or - for the standard input")->required();
    app.add_flag("--all", wanted.all, "Print notes, and conflicts that are left to the program, too");
    app.add_flag("--strict", wanted.strict, "Notes (waits that are implied by others) count as violations");
    app.add_flag("--as-automatic", wanted.audit.as_automatic,
                 "Hold accesses that the program orders itself to the same rules");
    app.add_flag("--ignore-completion", wanted.ignore_completion,
                 "Nothing counts as ordered only because it was over in time");
    app.add_flag("--json", wanted.json, "Print all findings as JSON");
    app.add_option("--limit", wanted.limit, "How many findings of each kind are printed")->capture_default_str();
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : incomplete;
    }
    wanted.audit.trust_completion = !wanted.ignore_completion;
    if (wanted.log == "-") {
        return verify(wanted, std::cin);
    }
    std::ifstream file(wanted.log, std::ios::binary);
    if (!file) {
        std::cerr << "weir-verify: cannot open " << wanted.log << ": " << std::strerror(errno) << "\n";
        return incomplete;
    }
    return verify(wanted, file);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        std::ios::sync_with_stdio(false);
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::cerr << "weir-verify: " << error.what() << "\n";
        return incomplete;
    }
}
