// All programs of a few steps: small enough to be complete, so nothing depends on chance.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "order_driver.hpp"
#include "order_oracle.hpp"
#include "order_settings.hpp"

namespace order_test {
namespace {

constexpr int streams = 3;
constexpr int cells = 2;

// Two bytes of memory that change owners when `reborn` says so, one event, three streams.
class enumeration {
public:
    enumeration() {
        base_.streams.assign(streams, order_by::silent);
        base_.events = 1;
        base_.buffers.push_back({0, cells, order_by::silent, {}, 0});
    }

    // Visits all programs of exactly `length` steps, up to renaming of the streams.
    template <class Visit>
    void all(int length, Visit&& visit) {
        extend(base_, 0, length, visit);
    }

private:
    template <class Visit>
    void extend(const program& so_far, int used, int left, Visit&& visit) {
        if (left == 0) {
            visit(so_far);
            return;
        }
        // Streams are named in the order in which they appear: other programs differ only in names.
        const int known = std::min(used + 1, streams);
        const int owner = static_cast<int>(so_far.buffers.size()) - 1;
        for (int s = 0; s < known; ++s) {
            const int now = std::max(used, s + 1);
            for (const bool write : {false, true}) {
                for (int begin = 0; begin < cells; ++begin) {
                    for (int end = begin + 1; end <= cells; ++end) {
                        step launch;
                        launch.stream = s;
                        launch.touches = {{owner, begin, end, write}};
                        with(so_far, std::move(launch), now, left, visit);
                    }
                }
            }
            if (so_far.steps.empty()) {
                continue;  // an event or a wait has no effect yet
            }
            step event;
            event.stream = s;
            event.object = 0;
            event.what = action::record;
            with(so_far, event, now, left, visit);
            event.what = action::wait_event;
            with(so_far, event, now, left, visit);
            for (int other = 0; other < used; ++other) {
                step join;
                join.what = action::wait_stream;
                join.stream = s;
                join.object = other;
                if (other != s) {
                    with(so_far, std::move(join), now, left, visit);
                }
            }
        }
        if (!so_far.steps.empty()) {
            program reborn = so_far;
            reborn.buffers.push_back({0, cells, order_by::silent, {owner}, 0});
            step change;
            change.what = action::drop;
            change.object = owner;
            reborn.steps.push_back(change);
            change.what = action::make;
            change.object = owner + 1;
            reborn.steps.push_back(change);
            extend(reborn, used, left - 1, visit);
        }
    }

    template <class Visit>
    void with(const program& so_far, step next, int used, int left, Visit&& visit) {
        program longer = so_far;
        longer.steps.push_back(std::move(next));
        extend(longer, used, left - 1, visit);
    }

    program base_;
};

TEST(O10, WaitsAreTheMinimumInAllTinyPrograms) {
    const int longest = number_from("WEIR_TEST_PROGRAMS", 0) < 200'000 ? 4 : 5;
    for (const order_by mode : {order_by::weir, order_by::program}) {
        int programs = 0;
        int crossing = 0;
        bool right = true;
        for (int length = 1; length <= longest; ++length) {
            enumeration{}.all(length, [&](program p) {
                if (!right) {
                    return;
                }
                // Under manual ordering the last step is automatic again: it must find everything that was left unordered.
                p.process = mode;
                p.steps.back().scope = order_by::weir;
                const outcome done = drive(p);
                const verdict v = oracle{p}.exact(done);
                ++programs;
                crossing += v.cross != 0 ? 1 : 0;
                right = v.wrong.empty();
                EXPECT_EQ(v.wrong, "") << describe(p) << describe(done);
            });
        }
        std::printf("%s: all %d programs, %d need order between streams\n",
                    mode == order_by::weir ? "automatic" : "manual but for the last step", programs, crossing);
    }
}

}  // namespace
}  // namespace order_test
