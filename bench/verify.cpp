// How many operations a second weir-verify audits: reading the log, and the audit alone.
#include <benchmark/benchmark.h>

#include <sstream>
#include <string>
#include <vector>

#include "verify/auditor.hpp"
#include "verify/reader.hpp"

namespace {

using namespace weir_verify;

/// Streams that hand arrays on in turns. Each operation has two accesses and usually one wait, and runs a hundred operations later.
std::string log_of(std::uint64_t operations, std::uint64_t streams) {
    std::ostringstream text;
    std::uint64_t time = 0;
    const auto begin = [&](const char* type) -> std::ostream& {
        return text << R"({"t":)" << ++time << R"(,"type":")" << type << "\"";
    };
    const std::string place = R"(,"file":"main.cpp","line":7,"function":"main")";
    const auto at = [&](std::uint64_t i) {
        return "[" + std::to_string(1 + i % streams) + "," + std::to_string(1 + i / streams) + "]";
    };
    text << R"({"format":"weirlog","version":2,"clock":"steady"})"
         << "\n";
    for (std::uint64_t i = 0; i < streams; ++i) {
        begin("stream") << R"(,"stream":)" << i + 1 << R"(,"name":"s","device":"cpu","new":true,"former":[0,0]})"
                        << "\n";
        begin("allocation") << R"(,"resource":)" << i + 1 << R"(,"bytes":64,"device":"cpu","address":)" << 64 * (i + 1)
                            << R"(,"stream":1)" << place << "}\n";
    }
    const auto access = [&](std::uint64_t resource, const char* mode) {
        return R"({"resource":)" + std::to_string(1 + resource % streams) +
               R"(,"bytes":64,"begin":0,"end":64,"mode":")" + mode + R"(","ordering":"automatic"})";
    };
    for (std::uint64_t i = 0; i < operations; ++i) {
        begin("operation") << R"(,"at":)" << at(i) << R"(,"label":"step")" << place
                           << R"(,"kind":"device","accesses":[)" << access(i + streams - 1, "read") << ","
                           << access(i, "write") << R"(],"after":[],"waits":[)";
        if (i > 0 && streams > 1) {
            text << R"({"target":)" << at(i - 1) << R"(,"reason":"read_after_write","for_check":false})";
        }
        text << R"(],"elisions":[]})"
             << "\n";
        if (i >= 100) {
            begin("execution") << R"(,"at":)" << at(i - 100) << R"(,"start":1,"end":2})"
                               << "\n";
        }
    }
    text << R"({"type":"end","records":)" << time << R"(,"lost":0})"
         << "\n";
    return text.str();
}

void read_and_audit(benchmark::State& state) {
    const std::uint64_t operations = 100'000;
    const std::string log = log_of(operations, static_cast<std::uint64_t>(state.range(0)));
    for (auto _ : state) {
        std::istringstream from(log);
        text_store texts;
        log_reader reader(from, texts);
        auditor one;
        while (const auto next = reader.next()) {
            one.take(*next);
        }
        if (!one.found().all().empty()) {
            state.SkipWithError("the log is good, and the verifier found something");
        }
    }
    state.counters["operations/s"] = benchmark::Counter(
        static_cast<double>(operations) * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(read_and_audit)->Arg(1)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);

void audit_alone(benchmark::State& state) {
    const std::uint64_t operations = 100'000;
    std::istringstream from(log_of(operations, static_cast<std::uint64_t>(state.range(0))));
    text_store texts;
    log_reader reader(from, texts);
    std::vector<record> records;
    while (auto next = reader.next()) {
        records.push_back(std::move(*next));
    }
    for (auto _ : state) {
        auditor one;
        for (const record& each : records) {
            one.take(each);
        }
        benchmark::DoNotOptimize(one.found().all().size());
    }
    state.counters["operations/s"] = benchmark::Counter(
        static_cast<double>(operations) * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(audit_alone)->Arg(1)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
