// Compares what the host sees of a run with what it should see.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "random_programs/ledger.hpp"
#include "random_programs/oracle.hpp"
#include "weir/array.hpp"
#include "weir/error.hpp"

namespace random_programs {

/// The failing step that `call` throws of; none if it throws of none.
template <class Call>
int reason_of(Call&& call) {
    try {
        call();
        return none;
    } catch (const weir::operation_error& told) {
        return static_cast<int>(told.where().line);
    }
}

/// Records what is wrong.
template <class Memory>
class judge {
public:
    judge(const expectation& wanted, ledger& notes) : wanted_(&wanted), notes_(&notes) {}

    /// Compares the failure that a step reported to the host, none if none, with the failure that it should report.
    void told(const step& one, int reason) {
        const expectation& wanted = *wanted_;
        const bool of_operation = one.kind == step_kind::synchronize_operation;
        const auto failed = wanted.failed.find(of_operation ? one.other : one.number);
        const auto told = wanted.told.find(one.number);
        const bool refused = (of_operation || is_host_access(one.kind)) && failed != wanted.failed.end();
        if (refused && reason != failed->second) {
            wrong(one.number, "was refused because of", reason, failed->second);
        } else if (!refused && reason != none && (is_host_access(one.kind) || !blocks_host(one.kind))) {
            wrong(one.number, "was refused because of", reason, none);
        } else if (!refused && reason != none && told != wanted.told.end() && !told->second.possible.contains(reason)) {
            wrong(one.number, "was told of", reason, none);
        } else if (reason == none && told != wanted.told.end()) {
            for (const int due : told->second.due) {
                if (!notes_->was_told(due)) {
                    wrong(one.number, "was told of", reason, due);
                }
            }
        }
        if (reason != none) {
            notes_->told(reason);
        }
    }

    /// Compares the parts that are valid, and expects the whole to be refused if there are others.
    void compare_left(const weir::array& all, const std::vector<double>& values, const std::vector<int>& reasons) {
        const auto is_valid = [](int reason) { return reason == none; };
        const auto bad = std::find_if_not(reasons.begin(), reasons.end(), is_valid);
        if (bad != reasons.end()) {
            const int reason = reason_of([&] { static_cast<void>(all.template read<double>()); });
            if (reason != *bad) {
                wrong(none, "an array was refused because of", reason, *bad);
            }
        }
        for (auto first = std::find_if(reasons.begin(), reasons.end(), is_valid); first != reasons.end();) {
            const auto last = std::find_if_not(first, reasons.end(), is_valid);
            const auto begin = first - reasons.begin();
            const auto end = last - reasons.begin();
            const auto view = all.slice(begin, end).template read<double>();
            compare(none, view.span(), {values.begin() + begin, values.begin() + end});
            first = std::find_if(last, reasons.end(), is_valid);
        }
    }

    /// Compares which operations did their work. Called once all of them are complete and their failures were reported. `ends`:
    /// by step.
    template <class Ends>
    void compare_ends(const Ends& ends) {
        for (const int number : wanted_->operations) {
            const auto failed = wanted_->failed.find(number);
            const int wanted = failed == wanted_->failed.end() ? none : failed->second;
            // The first query may report another operation, of a stream that was just dropped.
            const auto ask = [&] { ends[static_cast<std::size_t>(number)].synchronize(); };
            const int reason = wanted == none && reason_of(ask) == none ? none : reason_of(ask);
            if (reason != wanted) {
                wrong(number, "did not do its work because of", reason, wanted);
            }
            if (notes_->has_run(number) == notes_->is_idle(number)) {
                notes_->wrong("step #" + std::to_string(number) + (notes_->is_idle(number) ? " ran" : " did not run"));
            }
        }
    }

    /// Empty if it should be refused.
    [[nodiscard]] std::vector<double> seen(const step& one) const {
        const auto found = wanted_->seen.find(one.number);
        return found == wanted_->seen.end() ? std::vector<double>() : found->second;
    }

    void compare(int number, std::span<const double> got, const std::vector<double>& wanted) {
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            const double value = Memory::load(got[i]);
            if (std::bit_cast<std::uint64_t>(value) != std::bit_cast<std::uint64_t>(wanted[i])) {
                notes_->wrong((number == none ? "at the end" : "step #" + std::to_string(number)) + ": element " +
                              std::to_string(i) + " is " + std::to_string(value) + ", not " +
                              std::to_string(wanted[i]));
                return;
            }
        }
    }

private:
    void wrong(int number, const char* what, int reason, int wanted) {
        const auto text = [](int step) { return step == none ? std::string("nothing") : "#" + std::to_string(step); };
        notes_->wrong("step #" + std::to_string(number) + " " + what + " " + text(reason) + ", not " + text(wanted));
    }

    const expectation* wanted_;
    ledger* notes_;
};

}  // namespace random_programs
