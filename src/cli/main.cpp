// The weir command. Exit status: 0 all is well, 1 it found something, 2 wrong use or something is missing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "cli/demo/demo.hpp"
#include "cli/info.hpp"
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
        ->check(CLI::Range(4, 32))
        ->capture_default_str();
    demo->add_option("--seconds", options.seconds, "How much of the recording is used")
        ->check(CLI::Range(0.1, 3600.0))
        ->capture_default_str();

    CLI::App* const verify = app.add_subcommand(
        "verify", "Audit an evidence log by a program that shares no code with Weir; see weir verify --help");
    verify->prefix_command();
    verify->set_help_flag();  // the verifier's own

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // Help and the version are no errors; CLI11's other codes are of its own.
        return app.exit(error) == 0 ? all_is_well : wrong_use;
    }
    if (*info) {
        weir::cli::print_info();
        return all_is_well;
    }
    if (*verify) {
        weir::cli::become_verifier(verify->remaining());
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
