// Plays a program through src/order as the runtime would (need, resolve, reserve, record), and records which waits it
// issued. Faults can be planted, so that the oracle can show that it detects them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "order/foreign.hpp"
#include "order/history.hpp"
#include "order/sequencer.hpp"
#include "order_device.hpp"
#include "order_fault.hpp"
#include "order_program.hpp"

namespace order_test {

struct drive_options {
    fault planted = fault::none;
    bool completion = false;  ///< the device runs meanwhile, and what is complete counts as ordered
    std::uint64_t pace = 6;   ///< how fast it runs
    std::uint64_t seed = 0;   ///< for the device's random progress
    std::vector<weir::order::timeline_id> names{};  ///< of the timelines of the streams; by default their indices
};

/// The largest sizes that occurred.
struct drive_sizes {
    std::size_t clock = 0;
    /// The largest excess of points in a new clock over the unfinished timelines, or over the points that take no memory.
    std::size_t clock_over_needed = 0;
    std::size_t history = 0;
};

class driver {
public:
    driver(const program& p, drive_options options);

    outcome run();
    [[nodiscard]] const drive_sizes& sizes() const noexcept { return sizes_; }

private:
    using plan = weir::order::plan;
    using mark = weir::order::mark;
    using reason = weir::order::reason;

    weir::order::sequencer& stream(int index) { return streams_[static_cast<std::size_t>(index)]; }
    int stream_of(weir::order::timeline_id timeline) const;
    [[nodiscard]] bool is(fault planted) const { return options_.planted == planted; }

    void play(const step& at, int index);
    void launch(const step& at, int index);
    bool launch_shortly(const step& at, int index);
    void wait(int on, const mark& target, int index);
    void host(const step& at, int index);
    void make(int buffer);
    void hand_out(const step& at, int index);

    bool by_weir(const touch& t, const step& at) const;
    std::vector<int> peers(const step& at) const;
    mark tail_of(int index, int step);
    void need(plan& into, const mark& target, reason why);
    void need_accesses(plan& into, const step& at);
    void need_entry(plan& into, int peer, int step);
    weir::order::clock clock_after(plan& from) const;
    mark commit(int on, plan& from, int position, const weir::order::short_plan* by = nullptr);
    void remember(const touch& t, const mark& when);

    const program& program_;
    drive_options options_;
    device device_;
    std::vector<weir::order::sequencer> streams_;
    std::vector<weir::order::history> histories_;
    std::vector<mark> events_;
    std::vector<int> current_;
    std::vector<unsigned> shared_;
    std::vector<mark> entries_;    // for each stream the last point made for an entry
    std::vector<int> bare_waits_;  // for each stream, how many waits are at its tail
    std::vector<bool> adopted_;    // streams that packages use, too
    outcome done_;
    drive_sizes sizes_;
};

/// As `driver{p, options}.run()`.
outcome drive(const program& p, drive_options options = {});

}  // namespace order_test
