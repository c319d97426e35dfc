// Vector clocks: a position for each stream, indexed by the streams' dense numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir_verify {

/// A stream's number within the audit: dense, in the order of first sight.
using agent = std::uint32_t;

struct position {
    agent who = 0;
    std::uint64_t epoch = 0;
};

/// A clock with few entries, sorted. A missing entry counts as 0.
class clock {
public:
    [[nodiscard]] std::uint64_t at(agent who) const noexcept {
        const auto found = find(who);
        return found != entries_.end() && found->who == who ? found->epoch : 0;
    }
    [[nodiscard]] const std::vector<position>& entries() const noexcept { return entries_; }
    [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }

    void merge(position one) {
        const auto found = entries_.begin() + (find(one.who) - entries_.cbegin());
        if (found != entries_.end() && found->who == one.who) {
            found->epoch = std::max(found->epoch, one.epoch);
        } else {
            entries_.insert(found, one);
        }
    }

    void merge(const clock& other) {
        std::vector<position> both;
        both.reserve(entries_.size() + other.entries_.size());
        auto mine = entries_.begin();
        for (const position& theirs : other.entries_) {
            while (mine != entries_.end() && mine->who < theirs.who) {
                both.push_back(*mine++);
            }
            if (mine != entries_.end() && mine->who == theirs.who) {
                both.push_back({theirs.who, std::max(mine->epoch, theirs.epoch)});
                ++mine;
            } else {
                both.push_back(theirs);
            }
        }
        both.insert(both.end(), mine, entries_.end());
        entries_ = std::move(both);
    }

    /// Drops the entries for which `is_useless(position)`.
    template <class Useless>
    void forget(Useless&& is_useless) {
        std::erase_if(entries_, is_useless);
    }

private:
    [[nodiscard]] std::vector<position>::const_iterator find(agent who) const noexcept {
        return std::lower_bound(entries_.begin(), entries_.end(), who,
                                [](const position& one, agent wanted) { return one.who < wanted; });
    }

    std::vector<position> entries_;
};

/// A clock with an entry for each stream: for what is complete, or known to the host.
class full_clock {
public:
    [[nodiscard]] std::uint64_t at(agent who) const noexcept { return who < epochs_.size() ? epochs_[who] : 0; }
    [[nodiscard]] bool covers(position one) const noexcept { return one.epoch <= at(one.who); }
    [[nodiscard]] bool covers(const clock& all) const noexcept {
        return std::all_of(all.entries().begin(), all.entries().end(), [&](position one) { return covers(one); });
    }
    void merge(position one) {
        if (one.who >= epochs_.size()) {
            epochs_.resize(std::size_t{one.who} + 1);
        }
        epochs_[one.who] = std::max(epochs_[one.who], one.epoch);
    }
    void merge(const clock& other) {
        for (const position& one : other.entries()) {
            merge(one);
        }
    }

private:
    std::vector<std::uint64_t> epochs_;
};

}  // namespace weir_verify
