// Rule V1 against brute force, on random programs: the pairs that are reported are exactly those that the transitive
// closure of the program's own order leaves open.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "check/detector.hpp"
#include "observer_script.hpp"

namespace weir::check {
namespace {

using testing::observer_script;
using testing::reads;
using testing::writes;

/// The order as a relation between all actions: operations, waits of streams, waits of the host.
class brute_force {
public:
    /// An action of stream `who` (or of the host), after the actions `after`.
    std::size_t add(std::size_t who, const std::vector<std::size_t>& after) {
        const std::size_t self = past_.size();
        past_.emplace_back(self);
        // Whatever is enqueued comes after what the host has waited for before.
        for (const std::size_t earlier : {last(who), last(host)}) {
            join(self, earlier);
        }
        for (const std::size_t earlier : after) {
            join(self, earlier);
        }
        last_.resize(std::max(last_.size(), who + 1), nothing);
        last_[who] = self;
        return self;
    }
    [[nodiscard]] bool ordered(std::size_t earlier, std::size_t later) const { return past_[later][earlier]; }

    static constexpr std::size_t host = 0;

private:
    static constexpr std::size_t nothing = ~std::size_t{0};
    [[nodiscard]] std::size_t last(std::size_t who) const { return who < last_.size() ? last_[who] : nothing; }
    void join(std::size_t self, std::size_t earlier) {
        if (earlier == nothing) {
            return;
        }
        past_[self][earlier] = true;
        for (std::size_t i = 0; i < earlier; ++i) {
            past_[self][i] = past_[self][i] || past_[earlier][i];
        }
    }
    std::vector<std::vector<bool>> past_;
    std::vector<std::size_t> last_;
};

/// An access to one byte.
struct touch {
    std::size_t node;
    std::uint32_t line;
    bool is_write;
};

class model {
public:
    explicit model(const brute_force& order) : order_(&order) {}

    void access(std::uint64_t byte, const touch& one) {
        std::vector<touch>& all = bytes_[byte];
        for (const touch& past : all) {
            if (past.node != one.node && (past.is_write || one.is_write) && !order_->ordered(past.node, one.node)) {
                races.emplace(past.line, one.line);
            }
        }
    }
    /// An access that is ordered before `one` and covered by it is represented by it.
    void keep(std::uint64_t byte, const touch& one) {
        std::vector<touch>& all = bytes_[byte];
        std::erase_if(all, [&](const touch& past) {
            return (one.is_write || !past.is_write) && (past.node == one.node || order_->ordered(past.node, one.node));
        });
        all.push_back(one);
    }

    std::set<std::pair<std::uint32_t, std::uint32_t>> races;

private:
    const brute_force* order_;
    std::map<std::uint64_t, std::vector<touch>> bytes_;
};

TEST(DetectorRandom, V1_agrees_with_brute_force) {
    std::mt19937 random(11);  // NOLINT: the same programs every time
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    std::size_t found = 0;
    for (int program = 0; program < 500; ++program) {
        detector checking({});
        observer_script script(checking);
        brute_force order;
        model expected(order);
        std::vector<observer_script::stream*> streams;
        const std::size_t width = 2 + below(4);
        for (std::size_t i = 0; i < width; ++i) {
            streams.push_back(&script.make_stream("s"));
        }
        std::vector<std::pair<frontiers::point, std::size_t>> done;  // points and their nodes
        const std::size_t length = 1 + below(40);
        for (std::uint32_t line = 1; line <= length; ++line) {
            const std::size_t stream = below(width);
            const bool has_target = !done.empty();
            const auto target = has_target ? done[below(done.size())] : std::pair(frontiers::point{}, std::size_t{0});
            const std::size_t what = below(10);
            if (what == 0 && has_target) {
                script.host_waits(target.first);
                order.add(brute_force::host, {target.second});
            } else if (what < 4 && has_target) {
                script.wait(*streams[stream], target.first);
                done.emplace_back(streams[stream]->at(), order.add(stream + 1, {target.second}));
            } else {
                std::vector<std::size_t> after;
                std::vector<frontiers::point> after_points;
                if (what == 4 && has_target) {
                    after.push_back(target.second);
                    after_points.push_back(target.first);
                }
                const std::size_t node = order.add(stream + 1, after);
                std::vector<observer_script::access> accesses;
                for (std::size_t k = 1 + below(2); k > 0; --k) {
                    const std::uint64_t begin = below(6);
                    const order::footprint where{begin, begin + 1 + below(4)};
                    accesses.push_back(below(3) == 0 ? writes(1, where) : reads(1, where));
                }
                done.emplace_back(script.enqueue(*streams[stream], line, accesses, after_points), node);
                const auto touches = [&](auto&& use) {
                    for (const auto& one : accesses) {
                        for (std::uint64_t byte = one.where.begin; byte < one.where.end; ++byte) {
                            use(byte, touch{node, line, one.mode == order::access_mode::write});
                        }
                    }
                };
                touches([&](std::uint64_t byte, const touch& one) { expected.access(byte, one); });
                touches([&](std::uint64_t byte, const touch& one) { expected.keep(byte, one); });
            }
        }
        std::set<std::pair<std::uint32_t, std::uint32_t>> reported;
        for (const race& one : checking.report()) {
            EXPECT_TRUE(reported.emplace(one.first.line, one.second.line).second) << "reported twice";
        }
        ASSERT_EQ(reported, expected.races) << "program " << program;
        found += reported.size();
    }
    EXPECT_GT(found, 1000U) << "the programs must race often enough to prove something";
}

}  // namespace
}  // namespace weir::check
