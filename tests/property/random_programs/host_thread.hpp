// Runs the steps of one host thread on Weir's public interface.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "random_programs/interpret.hpp"
#include "random_programs/judge.hpp"
#include "random_programs/kernels.hpp"
#include "random_programs/ledger.hpp"
#include "random_programs/oracle.hpp"
#include "random_programs/work.hpp"
#include "weir/memory_resource.hpp"

namespace random_programs {

[[nodiscard]] inline std::size_t at(int slot) noexcept { return static_cast<std::size_t>(slot); }

[[nodiscard]] inline weir::source_location place(const step& one) noexcept {
    return {"program", "step", static_cast<std::uint32_t>(one.number)};
}

/// The state that the threads of one run share. Threads touch different slots, as the program says.
struct shared_state {
    const expectation* wanted = nullptr;
    run_options options;
    std::array<std::optional<weir::stream>, slots> streams;
    std::array<weir::array, slots> arrays;
    std::array<weir::event, slots> events;
    std::array<std::unique_ptr<weir::testing::gate>, gates> gate;
    std::array<weir::completion, most_steps> ends;
    std::array<std::optional<weir::host_view<const double>>, slots> reading;
    std::array<std::optional<weir::host_view<double>>, slots> writing;
    ledger notes;
};

/// One host thread of a program, for one phase.
template <class Memory>
class host_thread {
public:
    explicit host_thread(shared_state& all) : all_(&all), judge_(*all.wanted, all.notes) {}

    /// Calls `before` and `after` around each step.
    template <class Before, class After>
    void run(const std::vector<step>& steps, Before&& before, After&& after) noexcept {
        for (const step& one : steps) {
            try {
                before(one);
                judge_.told(one, reason_of([&] { run(one); }));
                after(one);
            } catch (const std::exception& error) {
                all_->notes.wrong("step #" + std::to_string(one.number) + " " + std::string(name_of(one.kind)) +
                                  " threw: " + error.what());
            }
        }
        while (!currents_.empty()) {
            currents_.pop_back();
        }
        while (!scopes_.empty()) {
            scopes_.pop_back();
        }
    }

    /// Compares the final contents.
    void compare_all() {
        for (const auto& [slot, values] : all_->wanted->finally) {
            try {
                // Back to automatic ordering, which is safe at once (rule O5).
                all_->arrays[at(slot)].set_ordering(std::nullopt);
                judge_.compare_left(all_->arrays[at(slot)], values, all_->wanted->poisoned.at(slot));
            } catch (const std::exception& error) {
                all_->notes.wrong(std::string("at the end: ") + error.what());
            }
        }
    }

private:
    [[nodiscard]] weir::stream stream_of(const step& one) const {
        const weir::stream& named = *all_->streams[at(one.stream)];
        return one.current ? weir::current_stream(named.device()) : named;
    }
    [[nodiscard]] weir::array part(const range& of, const step& one) const {
        return part_of(all_->arrays[at(of.slot)], of, one.number);
    }

    [[nodiscard]] weir::host_view<const double> to_read(const range& of, const step& one) const {
        weir::array all = part(of, one);
        return all.read<double>(place(one));
    }
    void read(const step& one) {
        if (!all_->options.racing || !all_->options.by_kernels.empty()) {
            const auto view = to_read(one.reads[0], one);
            judge_.compare(one.number, view.span(), judge_.seen(one));
            return;
        }
        // Element by element: Weir would copy memory that the host does not reach while others change it.
        weir::array what = part(one.reads[0], one);
        const weir::host_access access(weir::detail::key, what.buffer(), what.footprint(weir::detail::key),
                                       weir::order::access_mode::read, place(one));
        judge_.compare(one.number, what.view<double>().device_span(), judge_.seen(one));
    }
    [[nodiscard]] weir::host_view<double> to_write(const range& of, const step& one) const {
        weir::array all = part(of, one);
        return all.write<double>(place(one));
    }

    void run(const step& one) {
        if (is_operation(one.kind)) {
            const weir::stream stream = stream_of(one);
            weir::on where(stream, place(one));
            for (const int after : one.after) {
                where.after(all_->ends[at(after)]);
            }
            all_->ends[at(one.number)] = enqueue_step(one, where.label("step"));
            return;
        }
        if (!run_on_stream(one)) {
            run_on_host(one);
        }
    }

    /// The kernels that do the work in this stream; null if host code does it.
    [[nodiscard]] const kernels* kernels_of(const weir::on& where) const {
        for (const kernels& each : all_->options.by_kernels) {
            if (each.device() == where.stream().device()) {
                return &each;
            }
        }
        return nullptr;
    }
    /// Sets each element to `value(i)`: what the step brings there.
    template <class Value>
    weir::completion set(const step& one, const weir::on& where, weir::array& target, Value value) {
        const kernels* const by = kernels_of(where);
        return by != nullptr ? noted(one, by->assign(one, where, target))
                             : assign<Memory>(one, where, all_->notes, target, value);
    }

    weir::completion enqueue_step(const step& one, const weir::on& where) {
        const kernels* const by = kernels_of(where);
        const auto element = [number = one.number](std::size_t i) { return fresh(number, 0, i); };
        switch (one.kind) {
            case step_kind::allocate: {
                std::optional<weir::memory::use> forgetful;
                if (all_->options.forget_frontiers) {
                    forgetful.emplace(weir::memory::allocating_stream());
                }
                weir::array& made = all_->arrays[at(one.array)];
                made = weir::empty(one.size, weir::dtype::float64, *all_->streams[at(one.other)], place(one));
                return set(one, where, made, element);
            }
            case step_kind::copy: {
                weir::array source = part(one.reads[0], one);
                weir::array target = part(one.writes[0], one);
                if (all_->options.racing) {
                    return by != nullptr ? noted(one, by->copy(where, target, source))
                                         : copy_by_hand<Memory>(one, where, all_->notes, target, source);
                }
                return noted(one, weir::copy(where, target, source.reshape(target.shape())));
            }
            case step_kind::fill: {
                weir::array target = part(one.writes[0], one);
                if (all_->options.racing) {
                    return set(one, where, target, [value = element(0)](std::size_t) { return value; });
                }
                return noted(one, weir::fill(where, target, element(0)));
            }
            case step_kind::copy_from_host: {
                weir::array target = part(one.writes[0], one);
                if (all_->options.racing) {
                    return set(one, where, target, element);
                }
                std::vector<double> source(at(static_cast<int>(target.size())));
                for (std::size_t i = 0; i < source.size(); ++i) {
                    source[i] = element(i);
                }
                const weir::completion end = weir::copy_from_host(where, target, std::as_bytes(std::span(source)));
                // The source was taken at the call and may be changed at once.
                std::fill(source.begin(), source.end(), -1.0);
                return noted(one, end);
            }
            default: {
                std::vector<weir::array> reads;
                std::vector<weir::array> writes;
                for (const range& read : one.reads) {
                    reads.push_back(part(read, one));
                }
                for (const range& write : one.writes) {
                    writes.push_back(part(write, one));
                }
                if (by != nullptr && one.how != form::host_task) {
                    return noted(one, by->operate(one, where, reads, writes));
                }
                return operate<Memory>(one, where, all_->notes, reads, writes);
            }
        }
    }

    /// Kernels, and Weir's own operations, cannot report that they ran.
    weir::completion noted(const step& one, weir::completion end) {
        if (!all_->notes.is_idle(one.number)) {
            all_->notes.ran(one.number);
        }
        return end;
    }

    /// Steps on streams, events and gates. Returns false for any other step.
    bool run_on_stream(const step& one) {
        switch (one.kind) {
            case step_kind::make_stream:
                all_->streams[at(one.stream)].emplace(all_->options.on[at(one.device)],
                                                      weir::stream_options{0, "s" + std::to_string(one.stream_number)});
                return true;
            case step_kind::drop_stream:
                all_->streams[at(one.stream)].reset();
                return true;
            case step_kind::record:
                all_->events[at(one.other)].record(stream_of(one), place(one));
                return true;
            case step_kind::wait_event:
                if (one.number % 2 == 0) {
                    all_->events[at(one.other)].wait(stream_of(one), place(one));
                } else {
                    stream_of(one).wait(all_->events[at(one.other)], place(one));
                }
                return true;
            case step_kind::wait_stream:
                stream_of(one).wait(*all_->streams[at(one.other)], place(one));
                return true;
            case step_kind::wait_operation:
                stream_of(one).wait(all_->ends[at(one.other)], place(one));
                return true;
            case step_kind::order_stream:
                stream_of(one).set_ordering(one.mode);
                return true;
            case step_kind::hold: {
                auto& gate = all_->gate[at(one.other)];
                if (!gate) {
                    gate = std::make_unique<weir::testing::gate>();
                }
                gate->hold(stream_of(one), place(one));
                return true;
            }
            case step_kind::open:
                open(one.other);
                return true;
            case step_kind::push_current:
                currents_.push_back(std::make_unique<weir::use>(*all_->streams[at(one.stream)]));
                return true;
            case step_kind::pop_current:
                currents_.pop_back();
                return true;
            case step_kind::query:
                static_cast<void>(one.stream != none ? stream_of(one).done(place(one))
                                                     : all_->events[at(one.other)].done(place(one)));
                return true;
            default:
                return false;
        }
    }

    void open(int gate) {
        if (auto& closed = all_->gate[at(gate)]) {
            if (all_->options.forget_frontiers) {
                let_others_overtake();
            }
            closed->open();
            closed.reset();
        }
    }

    /// Gives the operations that no gate holds some time to run. Which ones these are depends on where memory was
    /// handed on too early, so the host cannot wait for them.
    void let_others_overtake() const {
        const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(300);
        const auto over = [](const weir::completion& end) { return end.done(); };
        while (std::chrono::steady_clock::now() < until && !std::all_of(all_->ends.begin(), all_->ends.end(), over)) {
            std::this_thread::yield();
        }
    }

    void run_on_host(const step& one) {
        if (all_->options.forget_frontiers && blocks_host(one.kind)) {
            // Memory waits for its allocating stream instead of its users, so that any gate may hold any array back.
            for (int gate = 0; gate < gates; ++gate) {
                open(gate);
            }
        }
        switch (one.kind) {
            case step_kind::alias:
                all_->arrays[at(one.array)] = part(one.reads[0], one).reshape(one.reads[0].last - one.reads[0].first);
                break;
            case step_kind::drop_array:
                all_->arrays[at(one.array)] = weir::array();
                break;
            case step_kind::read_host:
                read(one);
                break;
            case step_kind::write_host: {
                const auto view = to_write(one.writes[0], one);
                change(one, view.span());
                break;
            }
            case step_kind::open_view:
                if (one.writes.empty()) {
                    all_->reading[at(one.other)].emplace(to_read(one.reads[0], one));
                } else {
                    all_->writing[at(one.other)].emplace(to_write(one.writes[0], one));
                }
                break;
            case step_kind::touch_view:
                if (const auto& view = all_->writing[at(one.other)]) {
                    judge_.compare(one.number, view->span(), judge_.seen(one));
                    change(one, view->span());
                } else {
                    judge_.compare(one.number, all_->reading[at(one.other)]->span(), judge_.seen(one));
                }
                break;
            case step_kind::close_view:
                all_->reading[at(one.other)].reset();
                all_->writing[at(one.other)].reset();
                break;
            case step_kind::synchronize_stream:
                stream_of(one).synchronize(place(one));
                break;
            case step_kind::synchronize_event:
                all_->events[at(one.other)].synchronize(place(one));
                break;
            case step_kind::synchronize_operation:
                all_->ends[at(one.other)].synchronize(place(one));
                break;
            case step_kind::synchronize_device:
                all_->options.on[at(one.device)].synchronize(place(one));
                break;
            case step_kind::keep_alive:
                weir::keep_alive(all_->ends[at(one.other)], token(all_->notes, one.other));
                break;
            case step_kind::order_array:
                all_->arrays[at(one.array)].set_ordering(one.mode);
                break;
            case step_kind::order_scope:
                if (one.mode) {
                    scopes_.push_back(std::make_unique<weir::ordering_scope>(*one.mode));
                } else {
                    scopes_.pop_back();
                }
                break;
            case step_kind::order_process:
                weir::set_ordering(one.mode.value_or(weir::ordering_mode::automatic));
                break;
            default:
                break;
        }
    }

    void change(const step& one, std::span<double> target) {
        const std::array targets{target};
        for (std::size_t i = 0; i < target.size(); ++i) {
            compute_at<Memory>(one.number, one.adds, i, {}, targets);
        }
    }

    shared_state* all_;
    judge<Memory> judge_;
    std::vector<std::unique_ptr<weir::use>> currents_;
    std::vector<std::unique_ptr<weir::ordering_scope>> scopes_;
};

}  // namespace random_programs
