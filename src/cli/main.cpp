// The weir command. Exit status: 0 success, 1 the command found a problem, 2 wrong use or something is missing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/demo/demo.hpp"
#include "cli/info.hpp"
#include "cli/python_commands.hpp"
#include "cli/suggestion.hpp"
#include "cli/verify.hpp"

namespace {

constexpr int all_is_well = 0;
constexpr int found_something = 1;
constexpr int wrong_use = 2;

int run_demo(weir::demo::demo_options& options) {
    if (options.file.empty()) {
        options.file = weir::demo::default_recording();
    }
    return weir::demo::play(options) ? all_is_well : found_something;
}

/// A number from `least` to `most`, and nothing else: CLI11's own check accepts NaN.
template <class T>
CLI::Validator between(T least, T most) {
    const std::string range = fmt::format("{} to {}", least, most);
    return {[=](const std::string& text) {
                T number{};
                const char* const end = text.data() + text.size();
                const auto [parsed, failure] = std::from_chars(text.data(), end, number);
                const bool is_right = failure == std::errc() && parsed == end && number >= least && number <= most;
                return is_right ? std::string() : fmt::format("{} is no number from {}", text, range);
            },
            range};
}

std::vector<std::string> commands_of(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* const each : app.get_subcommands([](const CLI::App*) { return true; })) {
        names.push_back(each->get_name());
    }
    return names;
}

/// Reports an unknown command. CLI11 would report a missing one.
int refuse(const std::string& word, const std::vector<std::string>& commands) {
    const std::string meant = weir::cli::nearest(word, commands);
    fmt::print(stderr, "weir: there is no command {}{}: there are {}; see weir --help\n", word,
               meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant), fmt::join(commands, ", "));
    return wrong_use;
}

int run(int argc, char** argv) {
    CLI::App app("Weir: streams and events that order themselves", "weir");
    app.set_version_flag("--version", "weir " WEIR_VERSION);
    app.require_subcommand(1);

    CLI::App* const info = app.add_subcommand("info", "Print devices, libraries and settings");

    CLI::App* const demo = app.add_subcommand(
        "demo", "Take the beats out of a recording on several streams: unordered, ordered by hand, ordered by Weir");
    weir::demo::demo_options options;
    options.output = "weir-demo";
    demo->add_option("file", options.file, "A recording, mono or stereo, of any format that libsndfile reads");
    demo->add_option("-o,--output", options.output, "The directory for results")->capture_default_str();
    demo->add_option("--device", options.device, "Where the program runs: cpu, cuda:0, sim:0, ...")
        ->capture_default_str();
    demo->add_option("--streams", options.streams, "4 to 6: stages share streams; 8, 10, ...: transforms get more")
        ->check(between(4, 32))
        ->capture_default_str();
    demo->add_option("--seconds", options.seconds, "How much of the recording is used")
        ->check(between(0.2, 3600.0))
        ->capture_default_str();

    CLI::App* const verify = app.add_subcommand(
        "verify", "Audit an evidence log by a program that shares no code with Weir; see weir verify --help");
    verify->prefix_command();
    verify->set_help_flag();  // the verifier has its own help

    CLI::App* const check = app.add_subcommand(
        "check", "Run a program of Python, also one of torch, and report its races; see weir check --help");
    check->prefix_command();
    check->set_help_flag();  // it has its own help

    CLI::App* const conformance = app.add_subcommand(
        "conformance",
        "Test whether array libraries of Python exchange memory without races; see weir conformance --help");
    conformance->prefix_command();
    conformance->set_help_flag();  // the suite has its own help

    if (const std::string word = argc > 1 ? argv[1] : "--help";
        !word.starts_with('-') || app.get_option_no_throw(word) == nullptr) {
        const std::vector<std::string> commands = commands_of(app);
        if (std::find(commands.begin(), commands.end(), word) == commands.end()) {
            return refuse(word, commands);
        }
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // Help and the version are no errors; CLI11's own exit codes are not used.
        return app.exit(error) == 0 ? all_is_well : wrong_use;
    }
    if (*info) {
        weir::cli::print_info();
        return all_is_well;
    }
    if (*verify) {
        weir::cli::become_verifier(verify->remaining());
    }
    if (*check) {
        weir::cli::become_check(check->remaining());
    }
    if (*conformance) {
        weir::cli::become_conformance_suite(conformance->remaining());
    }
    return run_demo(options);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "weir: {}\n", error.what());
        return wrong_use;
    }
}
