// The verifier's results on small random logs, compared with reachability found by brute force.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "verify_support.hpp"

namespace weir_verify::testing {
namespace {

constexpr std::uint64_t streams = 4;

/// A random log, and everything that is reachable in it, computed anew after each record.
class random_log {
public:
    explicit random_log(unsigned seed) : random_(seed) {
        for (std::uint64_t id = 1; id <= streams; ++id) {
            told_.stream(id);
        }
        const std::size_t wanted = 6 + below(14);
        while (nodes_.size() < wanted) {
            step();
        }
    }

    /// A moment of a stream (or what the host knows at some time), and all operations it comes after, itself included.
    struct node {
        moment at;
        bool is_operation = false;
        bool has_run = false;
        std::vector<access> accesses;
        std::set<std::size_t> past;  ///< by streams, waits, and the host's waits
        std::set<std::size_t> over;  ///< what was complete when it was reported
        std::set<std::size_t> host;  ///< what the host knew when it was reported
    };

    [[nodiscard]] const story& told() const noexcept { return told_; }
    [[nodiscard]] const std::vector<node>& nodes() const noexcept { return nodes_; }
    /// The moments of operations with claims that are wrong, once for each claim.
    [[nodiscard]] const std::multiset<std::uint64_t>& wrong_claims() const noexcept { return wrong_claims_; }

    [[nodiscard]] static bool conflict(const node& a, const node& b) {
        return std::any_of(a.accesses.begin(), a.accesses.end(), [&](const access& x) {
            return std::any_of(b.accesses.begin(), b.accesses.end(), [&](const access& y) { return conflict(x, y); });
        });
    }
    [[nodiscard]] static bool conflict(const access& x, const access& y) {
        return x.resource == y.resource && (x.writes || y.writes) && x.where.begin < y.where.end &&
               y.where.begin < x.where.end;
    }

private:
    std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

    [[nodiscard]] std::optional<std::size_t> last_of(std::uint64_t stream) const {
        for (std::size_t i = nodes_.size(); i > 0; --i) {
            if (nodes_[i - 1].at.stream == stream) {
                return i - 1;
            }
        }
        return std::nullopt;
    }
    [[nodiscard]] moment next_of(std::uint64_t stream) const {
        const auto last = last_of(stream);
        return {stream, last ? nodes_[*last].at.epoch + 1 : 1};
    }
    /// Any moment of another stream; nothing if there is none.
    std::optional<std::size_t> any_other(std::uint64_t stream) {
        std::vector<std::size_t> others;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            if (nodes_[i].at.stream != stream) {
                others.push_back(i);
            }
        }
        return others.empty() ? std::nullopt : std::optional(others[below(others.size())]);
    }
    [[nodiscard]] static bool contains(const std::set<std::size_t>& all, const std::set<std::size_t>& some) {
        return std::includes(all.begin(), all.end(), some.begin(), some.end());
    }
    [[nodiscard]] std::set<std::size_t> ran() const {
        std::set<std::size_t> all;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            if (nodes_[i].has_run) {
                all.insert(i);
            }
        }
        return all;
    }

    void step() {
        switch (below(8)) {
            case 0:
            case 1:
                return run_some();
            case 2:
                return wait();
            case 3:
                return host_wait();
            default:
                return operation();
        }
    }

    /// The operations that the stream comes after already.
    [[nodiscard]] std::set<std::size_t> before(std::uint64_t stream) const {
        const auto last = last_of(stream);
        return last ? nodes_[*last].past : std::set<std::size_t>();
    }

    void operation() {
        const moment at = next_of(1 + below(streams));
        const std::set<std::size_t> known = before(at.stream);
        node made{at, true, false, {}, known, ran(), host_};
        made.past.insert(host_.begin(), host_.end());
        std::vector<moment> waits;
        std::vector<std::size_t> targets;
        for (std::size_t i = below(3); i > 0; --i) {
            if (const auto target = any_other(at.stream)) {
                waits.push_back(nodes_[*target].at);
                targets.push_back(*target);
                made.past.insert(nodes_[*target].past.begin(), nodes_[*target].past.end());
            }
        }
        std::vector<elision> claims;
        for (std::size_t i = below(3); i > 0 && !nodes_.empty(); --i) {
            claims.push_back(claim(at, known, made.over, targets));
        }
        for (std::size_t i = below(3); i > 0; --i) {
            const std::uint64_t begin = 16 * below(4);
            access one = below(2) == 0 ? reads(1 + below(2), begin, 64) : writes(1 + below(2), 0, 64 - begin);
            made.accesses.push_back(one);
        }
        told_.operation(at, made.accesses, waits, claims);
        made.past.insert(nodes_.size());
        nodes_.push_back(std::move(made));
    }

    /// An elision with a witness that may be wrong.
    elision claim(const moment& at, const std::set<std::size_t>& known, const std::set<std::size_t>& over,
                  const std::vector<std::size_t>& targets) {
        const node& target = nodes_[below(nodes_.size())];
        const moment tail{at.stream, at.epoch - 1};
        std::set<std::size_t> over_or_known = over;
        over_or_known.insert(host_.begin(), host_.end());
        elision one{target.at, static_cast<witness_kind>(below(4)), tail, false};
        // A wait also covers what the host knew: whether the stream must learn that again may be judged either way.
        std::set<std::size_t> without_host = known;
        without_host.insert(target.host.begin(), target.host.end());
        if (one.because == witness_kind::known && contains(known, target.past) != contains(without_host, target.past)) {
            one.because = witness_kind::complete;
        }
        bool valid = false;
        switch (one.because) {
            case witness_kind::same_stream:
                valid = target.at.stream == at.stream;
                break;
            case witness_kind::known:
                valid = contains(known, target.past);
                break;
            case witness_kind::other_wait:
                if (!targets.empty()) {
                    const node& other = nodes_[targets[below(targets.size())]];
                    one.witness = other.at;
                    std::set<std::size_t> implied = other.past;
                    implied.insert(host_.begin(), host_.end());
                    valid = contains(implied, target.past);
                }
                break;
            case witness_kind::complete:
                one.witness = target.at;
                valid = contains(over_or_known, target.past);
                break;
        }
        if (!valid) {
            wrong_claims_.insert(100 * at.stream + at.epoch);
        }
        return one;
    }

    void wait() {
        const moment at = next_of(1 + below(streams));
        const auto target = any_other(at.stream);
        if (!target) {
            return;
        }
        node made{at, false, false, {}, before(at.stream), {}, host_};
        made.past.insert(host_.begin(), host_.end());
        made.past.insert(nodes_[*target].past.begin(), nodes_[*target].past.end());
        told_.wait(at, nodes_[*target].at);
        nodes_.push_back(std::move(made));
    }

    /// Runs some operations for which everything before them has run.
    void run_some() {
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            node& one = nodes_[i];
            if (one.is_operation && !one.has_run && below(2) == 0) {
                std::set<std::size_t> needed = one.past;
                needed.erase(i);
                if (contains(ran(), needed)) {
                    one.has_run = true;
                    told_.ran(one.at);
                }
            }
        }
    }

    void host_wait() {
        if (nodes_.empty()) {
            return;
        }
        const node& target = nodes_[below(nodes_.size())];
        if (contains(ran(), target.past)) {
            told_.host_wait(target.at);
            host_.insert(target.past.begin(), target.past.end());
        }
    }

    std::mt19937 random_;  // NOLINT: the same logs every time
    story told_;
    std::vector<node> nodes_;
    std::set<std::size_t> host_;
    std::multiset<std::uint64_t> wrong_claims_;  ///< by place
};

using pair_set = std::set<std::pair<std::size_t, std::size_t>>;

/// All pairs of conflicting operations that nothing orders.
pair_set unordered(const random_log& log, bool completion_counts) {
    pair_set pairs;
    const auto& nodes = log.nodes();
    for (std::size_t second = 0; second < nodes.size(); ++second) {
        for (std::size_t first = 0; first < second; ++first) {
            const bool ordered =
                nodes[second].past.contains(first) || (completion_counts && nodes[second].over.contains(first));
            if (random_log::conflict(nodes[first], nodes[second]) && !ordered) {
                pairs.emplace(first, second);
            }
        }
    }
    return pairs;
}

class VerifyRandom : public ::testing::TestWithParam<bool> {};

TEST_P(VerifyRandom, V4_finds_what_brute_force_finds) {
    const bool completion_counts = GetParam();
    std::size_t racing = 0;
    std::size_t wrong_claims = 0;
    for (unsigned seed = 0; seed < 4000; ++seed) {
        const random_log log(seed);
        auditor one({.trust_completion = completion_counts, .window = 1 + seed % 30});
        if (!completion_counts) {
            one = auditor({.trust_completion = false});
        }
        for (const record& each : log.told().records()) {
            one.take(each);
        }
        const auto index_of = [&](const party& of) {
            const auto found = std::find_if(log.nodes().begin(), log.nodes().end(),
                                            [&](const auto& node) { return node.at == of.at; });
            return static_cast<std::size_t>(found - log.nodes().begin());
        };
        pair_set found;
        std::multiset<std::uint64_t> claims;
        for (const finding& each : one.found().all()) {
            if (std::string(each.kind) == "unordered") {
                found.emplace(index_of(*each.other), index_of(each.here));
            } else if (std::string(each.kind) == "witness") {
                for (std::uint64_t i = 0; i < each.times; ++i) {
                    claims.insert(each.here.from.line);
                }
            } else {
                ASSERT_STREQ(each.kind, "redundant-wait") << "seed " << seed << ": " << to_string(each, "log");
            }
        }
        const pair_set expected = unordered(log, completion_counts);
        for (const auto& pair : found) {
            ASSERT_TRUE(expected.contains(pair)) << "seed " << seed << ": " << pair.first << "-" << pair.second;
        }
        for (const auto& missed : expected) {
            const auto first = missed.first;
            const auto second = missed.second;
            // A pair that is not named is found all the same, with an operation in between that comes after the first.
            const bool named =
                found.contains({first, second}) || std::any_of(found.begin(), found.end(), [&](const auto& pair) {
                    return pair.second == second && pair.first > first &&
                           (log.nodes()[pair.first].past.contains(first) ||
                            (completion_counts && log.nodes()[pair.first].over.contains(first)));
                });
            ASSERT_TRUE(named) << "seed " << seed << ": " << first << "-" << second;
        }
        // Forgotten operations are complete: then only the way in which that is known may be another.
        if (!completion_counts) {
            ASSERT_EQ(claims, log.wrong_claims()) << "seed " << seed;
        }
        racing += expected.empty() ? 0U : 1U;
        wrong_claims += claims.size();
    }
    std::printf("%zu logs with races, %zu wrong claims\n", racing, wrong_claims);
    EXPECT_GT(racing, 1000U);
    EXPECT_GT(wrong_claims, 1000U);
}

INSTANTIATE_TEST_SUITE_P(, VerifyRandom, ::testing::Bool(),
                         [](const auto& of) { return of.param ? "completion_counts" : "only_order_counts"; });

}  // namespace
}  // namespace weir_verify::testing
