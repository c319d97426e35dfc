#include "cli/demo/demo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "cli/demo/difference.hpp"
#include "cli/demo/layout.hpp"
#include "cli/demo/picture.hpp"
#include "cli/demo/placement.hpp"
#include "cli/demo/progress.hpp"
#include "cli/demo/reference.hpp"
#include "cli/demo/runs.hpp"
#include "cli/demo/work.hpp"
#include "weir/check.hpp"
#include "weir/device.hpp"
#include "weir/error.hpp"
#include "weir/memory.hpp"
#include "weir/trace.hpp"

namespace weir::demo {

namespace {

/// One performance: state that the acts share.
class performance {
public:
    explicit performance(const demo_options& options)
        : options_(options),
          where_(device::from_name(options.device)),
          placed_(options.streams, where_),
          original_(read_recording(options.file, options.seconds)),
          cut_(original_) {
        // Silence would come out right with any order.
        if (std::all_of(original_.samples.begin(), original_.samples.end(), [](float each) { return each == 0; })) {
            throw argument_error(options_.file.string() + " holds nothing but silence");
        }
        tolerance_ = work::tolerance(where_) * loudest();
        std::error_code failure;
        std::filesystem::create_directories(options_.output, failure);
        if (failure) {
            throw argument_error("cannot make the directory " + options_.output.string() + ": " + failure.message());
        }
    }

    bool play() {
        introduce();
        act_1();
        act_2();
        act_3();
        show_race();
        show_figures();
        fmt::print("\nwritten to {}/\n", options_.output.string());
        for (const std::string& name : written_) {
            fmt::print("  {}\n", name);
        }
        for (const std::string& one : failures_) {
            fmt::print("FAILED: {}\n", one);
        }
        return failures_.empty();
    }

private:
    void introduce();
    void act_1();
    void act_2();
    void act_3();
    void show_race() const;
    void show_figures();

    /// Checks a condition without which the demonstration fails.
    void expect(bool holds, const std::string& what) {
        if (!holds) {
            failures_.push_back(what);
        }
    }
    [[nodiscard]] std::filesystem::path file(const std::string& name) {
        written_.push_back(name);
        return options_.output / name;
    }
    void write(const std::string& name, const std::string& title, const recording& result) {
        write_wav(file(name + ".wav"), result);
        draw(file(name + ".png"), title, original_, result, right_, tolerance_);
        acts_.push_back({title, result});
    }
    [[nodiscard]] static progress_report to(progress_line& line) {
        return [&line](double done) { line.show(done); };
    }
    [[nodiscard]] float loudest() const {
        float most = 0;
        for (const float sample : original_.samples) {
            most = std::max(most, std::abs(sample));
        }
        return most;
    }
    [[nodiscard]] bool is_right(const recording& result) const {
        return compare(result, right_, tolerance_).samples == 0;
    }
    [[nodiscard]] std::string verdict(const recording& result) const {
        const difference apart = compare(result, right_, tolerance_);
        if (apart.samples != 0) {
            return fmt::format("{:.1f} % of the samples are wrong", 100 * apart.share);
        }
        const std::string said = right_in_words(tolerance_);
        return tolerance_ == 0 ? said : said + fmt::format(" (furthest: {:.1e})", apart.furthest);
    }

    demo_options options_;
    device where_;
    placement placed_;
    recording original_;
    layout cut_;
    recording right_;
    float tolerance_ = 0;  ///< see work::tolerance
    recording by_hand_;
    weir::report races_;
    std::vector<act> acts_;
    std::vector<std::string> written_;
    std::vector<std::string> failures_;
};

void performance::introduce() {
    fmt::print("{}\n{:.1f} s, {} samples a second, {}: {} blocks of {} frames of {} samples\n\n",
               options_.file.string(), original_.seconds(), original_.rate, original_.channels == 1 ? "mono" : "stereo",
               cut_.blocks, layout::frames_per_block, cut_.frame);
    fmt::print(
        "The program takes the beats out of music, on {} streams of {}. Each block is loaded, analysed\n"
        "(window, FFT), filtered, synthesised (inverse FFT), added to its neighbours and stored; blocks follow each\n"
        "other through arrays that are used again and again. Read it in src/cli/demo/pipeline.cpp.\n\n"
        "Act 1 must fail on every machine alike, so it replays one schedule, with a gate before each stage of\n"
        "each block: six times one stream stands still while the others go on. Nothing in a program without\n"
        "events forbids that.\n\n",
        options_.streams, where_.name());
    if (tolerance_ > 0) {
        fmt::print(
            "Another device rounds otherwise: samples count as right within {:.0e} of the plain loop's, 1e-5 of the\n"
            "loudest of the recording.\n\n",
            tolerance_);
    }
    progress_line line("right result: a plain loop, no streams");
    right_ = reference_result(original_);
    line.finish(fmt::format("{} samples", right_.samples.size()));
}

void performance::act_1() {
    progress_line line("act 1  without ordering: no events");
    const recording broken = run_delayed(original_, placed_, to(line));
    line.finish(verdict(broken));
    expect(!is_right(broken), "act 1: without events the result must be wrong");
    write("act1-broken", "act 1: without ordering", broken);

    progress_line check_line("       the same under check");
    const checked_run checked = run_checked(original_, placed_, way::unordered);
    races_ = checked.report;
    check_line.finish(verdict(checked.result) + fmt::format("; {} pairs of lines race", races_.size()));
    expect(is_right(checked.result), "act 1: under check the result must be right");
    expect(!races_.empty(), "act 1: check must find the races");
    const std::filesystem::path text = file("act1-check.txt");
    if (!(std::ofstream(text) << races_.to_string() << std::flush)) {
        throw file_error("cannot write " + text.string());
    }
}

void performance::act_2() {
    progress_line line("act 2  ordered by hand: the author's events");
    by_hand_ = run(original_, placed_, way::by_hand, to(line));
    const checked_run checked = run_checked(original_, placed_, way::by_hand);
    line.finish(verdict(by_hand_) + (checked.report.empty() ? "; check finds nothing" : "; check finds races"));
    expect(is_right(by_hand_), "act 2: with events the result must be right");
    expect(checked.report.empty(), "act 2: check must find nothing\n" + checked.report.to_string());
    write("act2-by-hand", "act 2: ordered by hand", by_hand_);
}

void performance::act_3() {
    progress_line line("act 3  ordered by Weir: no events");
    const recording by_weir = run(original_, placed_, way::by_weir, to(line));
    const recording traced =
        run_traced(original_, placed_, way::by_weir, {file("timeline.html"), file("evidence.weirlog")});
    line.finish(compare(by_weir, by_hand_).samples == 0 ? "bit for bit the result of act 2" : verdict(by_weir));
    expect(compare(by_weir, by_hand_).samples == 0, "act 3: the result must be that of act 2");
    expect(compare(traced, by_hand_).samples == 0, "act 3: the traced result must be that of act 2");
    write("act3-by-weir", "act 3: ordered by Weir", by_weir);
    draw_acts(file("acts.png"), acts_, right_, tolerance_);
}

void performance::show_race() const {
    if (races_.empty()) {
        return;
    }
    const auto name = [](const race_access& access) {
        return std::filesystem::path(access.file).filename().string() + ":" + std::to_string(access.line);
    };
    fmt::print("\nWhat check says of act 1, for the first of {} pairs of lines (all are in act1-check.txt):\n\n{}\n",
               races_.size(), weir::report({races_.races().front()}, {}).to_string());
    for (const race& each : races_) {
        fmt::print("  {}  {:<16} {:<16} then {:<16} {:<16} {:>4} times\n", each.kind, name(each.first),
                   each.first.label, name(each.second), each.second.label, each.times);
    }
}

void performance::show_figures() {
    fmt::print("\n");
    progress_line line("time and waits");
    const trace_summary alone = count_waits(original_, placement(1, where_), way::by_weir);
    const trace_summary hand = count_waits(original_, placed_, way::by_hand);
    const trace_summary weir = count_waits(original_, placed_, way::by_weir);
    const times taken = measure(original_, placed_, to(line));
    line.finish("medians of several runs in turns");

    fmt::print("{:<32}{:>14}{:>14}{:>14}\n", "", "one stream", "by hand", "by Weir");
    fmt::print("{:<32}{:>11.1f} ms{:>11.1f} ms{:>11.1f} ms\n", "time, median", 1e3 * taken.one_stream,
               1e3 * taken.by_hand, 1e3 * taken.by_weir);
    const auto row = [&](const char* what, std::uint64_t trace_summary::*number) {
        fmt::print("{:<32}{:>14}{:>14}{:>14}\n", what, alone.*number, hand.*number, weir.*number);
    };
    row("operations", &trace_summary::operations);
    row("waits issued", &trace_summary::waits_issued);
    row("waits elided", &trace_summary::waits_elided);
    row("fewest waits possible", &trace_summary::waits_minimal);
    fmt::print("{:<32}{:>14}{:>14}{:>11.1f} MiB\n", "memory, most at once", "", "",
               static_cast<double>(memory::stats(where_).peak) / (1 << 20));

    expect(alone.waits_issued == 0, "one stream must need no wait");
    expect(weir.waits_issued <= hand.waits_issued, "Weir must not issue more waits than the author of act 2");
}

}  // namespace

std::filesystem::path default_recording() {
    static constexpr std::array files = {"/usr/share/asterisk/moh/manolo_camp-morning_coffee.wav",
                                         "/usr/share/sounds/alsa/Front_Center.wav"};
    for (const char* const each : files) {
        if (std::filesystem::exists(each)) {
            return each;
        }
    }
    throw argument_error(
        "there is no recording to work on: name a sound file, or install the package asterisk-moh-opsound-wav (Debian) "
        "or "
        "alsa-utils (Ubuntu)");
}

bool play(const demo_options& options) { return performance(options).play(); }

}  // namespace weir::demo
