#include "random_programs/oracle.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "random_programs/arithmetic.hpp"
#include "random_programs/poison_model.hpp"

namespace random_programs {

namespace {

/// The failures that are reported to the host where it waits. For programs of one thread.
class messenger {
public:
    void add(const step& one, int failed_by) {
        switch (one.kind) {
            case step_kind::make_stream:
                streams_[one.stream_number].device = one.device;
                break;
            case step_kind::drop_stream:
                streams_[one.stream_number].dropped = true;  // sooner or later nothing is reported any more
                break;
            case step_kind::record:
                events_[one.other] = reasons_on(one.stream_number);
                break;
            case step_kind::synchronize_stream:
                told_[one.number] = {reasons_on(one.stream_number), reasons_on(one.stream_number)};
                break;
            case step_kind::synchronize_event:
                told_[one.number].possible = events_[one.other];
                break;
            case step_kind::synchronize_operation:
                told_[one.number].possible = operations_[one.other];
                break;
            case step_kind::synchronize_device:
                synchronize_device(one);
                break;
            default:
                break;
        }
        if (is_operation(one.kind)) {
            if (failed_by != none) {
                streams_[one.stream_number].reasons.insert(failed_by);
            }
            operations_[one.number] = reasons_on(one.stream_number);
        }
    }
    [[nodiscard]] const std::map<int, tidings>& told() const noexcept { return told_; }

private:
    struct stream_state {
        std::set<int> reasons;
        int device = none;  ///< none: it is the default stream of the device of its number
        bool dropped = false;
    };
    [[nodiscard]] const std::set<int>& reasons_on(int stream) { return streams_[stream].reasons; }
    void synchronize_device(const step& one) {
        for (const auto& [number, stream] : streams_) {
            if ((stream.device == none ? number : stream.device) == one.device) {
                told_[one.number].possible.insert(stream.reasons.begin(), stream.reasons.end());
                if (!stream.dropped) {
                    told_[one.number].due.insert(stream.reasons.begin(), stream.reasons.end());
                }
            }
        }
    }

    std::map<int, stream_state> streams_;
    std::map<int, std::set<int>> events_;
    std::map<int, std::set<int>> operations_;
    std::map<int, tidings> told_;
};

class serial_machine {
public:
    explicit serial_machine(dependents of_failures) : of_failures_(of_failures) {}

    void run(const step& one) {
        if (is_operation(one.kind)) {
            result_.operations.push_back(one.number);
        }
        const int reason = of_failures_ == dependents::rest ? poison_.add(one) : none;
        messages_.add(one, is_operation(one.kind) ? reason : none);
        if (one.kind == step_kind::allocate) {
            memory_[one.memory].resize(static_cast<std::size_t>(one.size));
            slots_[at(one.array)] = {one.memory, 0, one.size, true, false};
        }
        if (reason != none) {
            result_.failed[one.number] = reason;
        }
        if (reason == none || reason == one.number) {
            do_work(one, reason != none);
        }
    }

    expectation result(bool alone) && {
        for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
            if (slots_[slot].memory != none) {
                const std::span<double> left = elements(slots_[slot]);
                result_.finally[static_cast<int>(slot)].assign(left.begin(), left.end());
                result_.poisoned[static_cast<int>(slot)] = of_failures_ == dependents::rest
                                                               ? poison_.reasons_in(slots_[slot])
                                                               : std::vector<int>(left.size(), none);
            }
        }
        result_.healings = poison_.healings();
        if (alone) {
            result_.told = messages_.told();
        }
        return std::move(result_);
    }

private:
    static std::size_t at(int slot) noexcept { return static_cast<std::size_t>(slot); }

    /// All of the work, or the part that runs before it fails.
    void do_work(const step& one, bool fails) {
        std::vector<std::span<const double>> reads;
        std::vector<std::span<double>> writes;
        for (const touch& part : one.touches) {
            const std::span<double> at = elements(part);
            if (part.write) {
                writes.push_back(at);
            } else {
                reads.emplace_back(at);
            }
        }
        switch (one.kind) {
            case step_kind::allocate:
            case step_kind::copy_from_host:
                for (std::size_t i = 0; i < writes[0].size(); ++i) {
                    writes[0][i] = fresh(one.number, 0, i);
                }
                break;
            case step_kind::fill:
                std::fill(writes[0].begin(), writes[0].end(), fresh(one.number, 0, 0));
                break;
            case step_kind::copy: {
                const std::vector<double> source(reads[0].begin(), reads[0].end());
                std::copy(source.begin(), source.end(), writes[0].begin());
                break;
            }
            case step_kind::operate:
            case step_kind::write_host:
                compute(one, reads, writes, fails);
                break;
            case step_kind::alias:
                slots_[at(one.array)] = one.touches[0];
                break;
            case step_kind::drop_array:
                slots_[at(one.array)].memory = none;
                break;
            case step_kind::read_host:
                result_.seen[one.number].assign(reads[0].begin(), reads[0].end());
                break;
            case step_kind::open_view:
                views_[at(one.other)] = one.touches[0];
                break;
            case step_kind::touch_view:
                touch_view(one);
                break;
            default:
                break;
        }
    }

    std::span<double> elements(const touch& part) {
        return std::span(memory_[part.memory])
            .subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.end - part.begin));
    }

    static void compute(const step& one, std::span<const std::span<const double>> reads,
                        std::span<const std::span<double>> writes, bool fails = false) {
        const std::size_t all = extent(writes);
        for (std::size_t i = 0; i < (fails ? done_before_failure(all) : all); ++i) {
            compute_at<plain_memory>(one.number, one.adds, i, reads, writes);
        }
    }

    void touch_view(const step& one) {
        const touch& view = views_[at(one.other)];
        const std::span<double> part = elements(view);
        result_.seen[one.number].assign(part.begin(), part.end());
        if (view.write) {
            compute(one, {}, std::array{part});
        }
    }

    dependents of_failures_;
    poison_model poison_;
    messenger messages_;
    std::map<int, std::vector<double>> memory_;
    std::array<touch, slots> slots_{};
    std::array<touch, slots> views_{};
    expectation result_;
};

}  // namespace

expectation expected(const program& completed, dependents of_failures) {
    serial_machine machine(of_failures);
    for (const auto& phase : completed.phases) {
        for (const auto& thread : phase) {
            for (const step& one : thread) {
                machine.run(one);
            }
        }
    }
    return std::move(machine).result(completed.threads() == 1);
}

}  // namespace random_programs
