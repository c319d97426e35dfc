// What an operation costs from the call that enqueues it to its completion, in Weir alone: operations that do nothing.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "contest.hpp"
#include "weir/weir.hpp"

namespace weir::bench {

namespace {

/// An operation that does nothing and declares that it changes `x`.
completion touch(const stream& on, array& x) {
    return access(
        on, [](native_stream, std::span<double>) {}, inout<double>(x));
}

contestant chain() {
    struct rig {
        stream on;
        array x = empty(64, dtype::float64, on);
    };
    constexpr std::size_t count = 20000;
    const auto with = std::make_shared<rig>();
    return {"Weir", count, [with] {
                for (std::size_t i = 0; i < count; ++i) {
                    touch(with->on, with->x);
                }
                with->on.synchronize();
            }};
}

contestant ping_pong() {
    struct rig {
        stream one, other;
        array x = empty(64, dtype::float64, one);
    };
    constexpr std::size_t count = 10000;
    const auto with = std::make_shared<rig>();
    return {"Weir", count, [with] {
                for (std::size_t i = 0; i < count; ++i) {
                    touch(i % 2 == 0 ? with->one : with->other, with->x);
                }
                with->one.synchronize();
                with->other.synchronize();
            }};
}

/// The same as ping_pong, of one array or of one token.
contestant array_in_turn() {
    contestant one = ping_pong();
    one.name = "an array";
    return one;
}

contestant token_in_turn() {
    struct rig {
        stream one, other;
        token slot{"slot"};
    };
    constexpr std::size_t count = 10000;
    const auto with = std::make_shared<rig>();
    return {"a token", count, [with] {
                for (std::size_t i = 0; i < count; ++i) {
                    access(
                        i % 2 == 0 ? with->one : with->other, [](native_stream) {}, inout(with->slot));
                }
                with->one.synchronize();
                with->other.synchronize();
            }};
}

contestant fork_join() {
    constexpr std::size_t width = 8;
    constexpr std::size_t count = 500;
    struct rig {
        stream root;
        std::vector<stream> branches = std::vector<stream>(width);
        array x = empty(64, dtype::float64, root);
        std::vector<array> parts;
        rig() {
            for (std::size_t i = 0; i < width; ++i) {
                branches[i] = stream();
                parts.push_back(empty(64, dtype::float64, branches[i]));
            }
        }
    };
    const auto with = std::make_shared<rig>();
    return {"Weir", count, [with] {
                using in_span = std::span<const double>;
                using span = std::span<double>;
                const auto part = [&](std::size_t i) { return in<double>(with->parts[i]); };
                for (std::size_t i = 0; i < count; ++i) {
                    touch(with->root, with->x);
                    for (std::size_t j = 0; j < width; ++j) {
                        access(
                            with->branches[j], [](native_stream, in_span, span) {}, in<double>(with->x),
                            out<double>(with->parts[j]));
                    }
                    access(
                        with->root,
                        [](native_stream, in_span, in_span, in_span, in_span, in_span, in_span, in_span, in_span) {},
                        part(0), part(1), part(2), part(3), part(4), part(5), part(6), part(7));
                }
                with->root.synchronize();
            }};
}

contestant record_wait() {
    struct rig {
        stream one, other;
        array x = empty(64, dtype::float64, one);
        event when;
    };
    constexpr std::size_t count = 5000;
    const auto with = std::make_shared<rig>();
    return {"Weir", count, [with] {
                for (std::size_t i = 0; i < count; ++i) {
                    touch(with->one, with->x);
                    with->when.record(with->one);
                    with->other.wait(with->when);
                }
                with->one.synchronize();
                with->other.synchronize();
            }};
}

contestant host_wait() {
    struct rig {
        stream on;
        array x = empty(64, dtype::float64, on);
    };
    constexpr std::size_t count = 200;
    const auto with = std::make_shared<rig>();
    return {"Weir", count, [with] {
                for (std::size_t i = 0; i < count; ++i) {
                    touch(with->on, with->x);
                    with->on.synchronize();
                }
            }};
}

/// What all of the above is up to where two threads work on the same memory: how far apart the processors are that they run
/// on, which on a virtual machine changes from time to time.
contestant cache_line() {
    constexpr std::size_t count = 20000;
    return {"two threads", count, [] {
                std::atomic<std::size_t> line{0};
                const auto hand_over = [&line](std::size_t first) {
                    for (std::size_t i = first; i < 2 * count; i += 2) {
                        while (line.load(std::memory_order_acquire) != i) {
                        }
                        line.store(i + 1, std::memory_order_release);
                    }
                };
                std::thread other(hand_over, std::size_t{1});
                hand_over(0);
                other.join();
            }};
}

const contest chain_contest("chain", "empty operations that depend on each other, on one stream",
                            comparison::with_peers, {chain});
const contest ping_pong_contest("ping_pong", "empty operations on one array, alternately on two streams",
                                comparison::with_peers, {ping_pong});
const contest token_contest("token", "empty operations on one token instead of an array, alternately on two streams",
                            comparison::with_first, {array_in_turn, token_in_turn});
const contest fork_join_contest("fork_join", "one operation, eight on eight streams, one: ten operations in all",
                                comparison::with_peers, {fork_join});
const contest record_wait_contest("record_wait",
                                  "an empty operation, an event behind it, another stream's wait for that",
                                  comparison::with_peers, {record_wait});
const contest host_wait_contest("host_wait", "an empty operation, and the host's wait for it", comparison::with_peers,
                                {host_wait});
const contest cache_line_contest("cache_line", "a cache line to another thread and back", comparison::with_peers,
                                 {cache_line});

}  // namespace

}  // namespace weir::bench
