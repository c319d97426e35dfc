// Rule O5: the steps of one call are ordered in every mode, and the stream that the call names is behind all of them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <complex>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/streams/side_stream.hpp"
#include "runtime/streams/stream_state.hpp"
#include "support/devices.hpp"
#include "weir/check.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::find_device;
using test::here;
using testing::gate;

constexpr std::int64_t n = 32;
using numbers = std::vector<double>;

/// The results of a call: an array that holds them, and its end.
struct outcome {
    array result;
    completion end;
};

/// The devices of a call's source, target and stream.
struct places {
    device from;
    device to;
    device of_stream;
};

using layout = array (*)(const device&);
using caller = outcome (*)(const on&, const array& source, array& target, const places&);

/// A public call, with operands for which it may take several steps.
struct row {
    const char* name;
    layout source;
    layout target;  ///< null: the call makes its result
    caller call;
    numbers right;  ///< the results for a source whose elements are all 3
    bool blocks = false;
    bool (*is_for)(const places&) = [](const places&) { return true; };
};

array packed(const device& where, dtype type, std::int64_t count = n) {
    return full(count, 0.0, type, current_stream(where));
}

array whole(const device& where) { return packed(where, dtype::float32); }
array wider(const device& where) { return packed(where, dtype::float64); }
array single(const device& where) { return packed(where, dtype::float32, 1); }
array complex_numbers(const device& where) { return packed(where, dtype::complex64); }
array every_second(const device& where) { return packed(where, dtype::float32, 2 * n)[slice{{}, {}, 2}]; }
array every_second_wider(const device& where) { return packed(where, dtype::float64, 2 * n)[slice{{}, {}, 2}]; }
array every_second_complex(const device& where) { return packed(where, dtype::complex64, 2 * n)[slice{{}, {}, 2}]; }

outcome by_copy(const on& where, const array& source, array& target, const places& /*at*/) {
    return {target, copy(where, target, source)};
}
outcome by_to(const on& where, const array& source, array& /*target*/, const places& at) {
    array made = to(where, source, at.to);
    return {made, where.stream().record().recorded()};
}
outcome by_to_wider(const on& where, const array& source, array& /*target*/, const places& at) {
    array made = to(where, source, at.to, dtype::float64);
    return {made, where.stream().record().recorded()};
}
outcome by_copy_from_host(const on& where, const array& /*source*/, array& target, const places& /*at*/) {
    const std::vector<float> threes(n, 3);
    return {target, copy_from_host(where, target, std::as_bytes(std::span(threes)))};
}
outcome by_fft(const on& where, const array& source, array& /*target*/, const places& at) {
    array made = fft::fft(where, source, {.execution = at.of_stream});
    return {made, where.stream().record().recorded()};
}
outcome by_fft_into(const on& where, const array& source, array& target, const places& at) {
    return {target, fft::fft(where, source, target, {.execution = at.of_stream})};
}
outcome by_plan(const on& where, const array& source, array& /*target*/, const places& at) {
    fft_plan plan(source, {.execution = at.of_stream});
    plan.plan(where);
    array made = plan.execute(where, fft_direction::forward);
    return {made, where.stream().record().recorded()};
}

/// The sum of all elements, once for each.
outcome by_sum(const on& where, const array& source, array& /*target*/, const places& /*at*/) {
    array made = sum(where, source);
    return {made.broadcast_to({n}), where.stream().record().recorded()};
}

/// A transform on another device than its operand's; its results go back.
bool is_fft(const places& at) { return at.of_stream != at.from; }
bool is_fft_into(const places& at) { return is_fft(at) && at.from == at.to; }
bool is_at_source(const places& at) { return at.of_stream == at.from; }
bool is_from_host(const places& at) { return at.of_stream == at.to || at.of_stream == cpu(); }

numbers all(double value) { return numbers(n, value); }
numbers transformed() {
    numbers right(n, 0);
    right[0] = 3.0 * n;
    return right;
}

const std::vector<row>& rows() {
    static const std::vector<row> table = {
        {"copy", whole, whole, by_copy, all(3)},
        {"copy of a strided source", every_second, whole, by_copy, all(3)},
        {"copy to a strided target", whole, every_second, by_copy, all(3)},
        {"copy of a strided source to a strided target", every_second, every_second, by_copy, all(3)},
        {"copy that converts", whole, wider, by_copy, all(3)},
        {"copy that converts a strided source", every_second, wider, by_copy, all(3)},
        {"copy that converts to a strided target", whole, every_second_wider, by_copy, all(3)},
        {"copy that broadcasts", single, whole, by_copy, all(3)},
        {"to", whole, nullptr, by_to, all(3)},
        {"to of a strided source", every_second, nullptr, by_to, all(3)},
        {"to that converts a strided source", every_second, nullptr, by_to_wider, all(3)},
        {"copy_from_host to a strided target", whole, every_second, by_copy_from_host, all(3), false, is_from_host},
        {"sum", whole, nullptr, by_sum, all(3.0 * n), false, is_at_source},
        {"sum of a strided source", every_second, nullptr, by_sum, all(3.0 * n), false, is_at_source},
        {"fft elsewhere", complex_numbers, nullptr, by_fft, transformed(), true, is_fft},
        {"fft of a strided operand elsewhere", every_second_complex, nullptr, by_fft, transformed(), true, is_fft},
        {"fft elsewhere into a strided result", every_second_complex, every_second_complex, by_fft_into, transformed(),
         true, is_fft_into},
        {"plan executed elsewhere", every_second_complex, nullptr, by_plan, transformed(), true, is_fft},
    };
    return table;
}

numbers values(const array& a) {
    const auto real = [](const auto& view) {
        numbers found;
        for (const auto& one : view) {
            found.push_back(static_cast<double>(std::real(one)));
        }
        return found;
    };
    switch (a.dtype().key()) {
        case dtype::float32.key():
            return real(a.read<float>());
        case dtype::float64.key():
            return real(a.read<double>());
        default:
            return real(a.read<std::complex<float>>());
    }
}

/// The devices with which the device under test exchanges elements: each has memory of its own.
std::vector<device> others() {
    std::vector<device> found;
    for (const char* const name : {"cpu", "sim:4", "cuda:1"}) {
        std::string why_not;
        const std::optional<device> one = find_device(name, why_not);
        if (one && *one != here()) {
            found.push_back(*one);
        }
    }
    return found;
}

/// All routes between the device under test and another, and, for results that come back, from each to itself through the other.
std::vector<places> all_places() {
    std::vector<places> found;
    for (const device& other : others()) {
        for (const device& of_stream : {here(), other}) {
            found.push_back({here(), other, of_stream});
            found.push_back({other, here(), of_stream});
        }
        found.push_back({here(), here(), other});
        found.push_back({other, other, here()});
    }
    return found;
}

/// A call between what the program orders before it and what it orders after it.
class trial {
public:
    trial(const row& what, const places& at)
        : what_(what),
          at_(at),
          source_(what.source(at.from)),
          target_(what.target == nullptr ? array() : what.target(at.to)),
          fills_source_(at.from, {0, "fills the source"}),
          fills_target_(at.to, {0, "fills the target"}),
          s_(at.of_stream, {0, "call"}) {
        // Packed, of the type of the result, on the device of the call's stream.
        seen_ = full(n, 0.0,
                     what.blocks          ? dtype::complex64
                     : target_.size() > 0 ? target_.dtype()
                                          : source_.dtype(),
                     current_stream(at.of_stream));
        for (const device& each : {at.from, at.to, at.of_stream}) {
            each.synchronize();
        }
    }

    [[nodiscard]] const stream& s() const { return s_; }
    [[nodiscard]] const array& seen() const { return seen_; }

    void hold_what_comes_before(gate& by) const {
        by.hold(fills_source_);
        by.hold(fills_target_);
    }
    /// What the program orders before the call.
    void before(bool in_order = true) {
        fill(fills_source_, source_, 3.0);
        if (target_.size() > 0) {
            fill(fills_target_, target_, 7.0);
        }
        if (in_order) {
            s_.wait(fills_source_);
            s_.wait(fills_target_);
        }
    }
    void await_what_comes_before() const {
        fills_source_.synchronize();
        fills_target_.synchronize();
    }
    outcome call() { return what_.call(on(s_).label("call"), source_, target_, at_); }
    /// What the program orders after it.
    completion after(const array& result) { return copy(on(s_).label("after"), seen_, result); }

    /// The streams of Weir's own on which the call does steps that belong on other devices than its stream's.
    [[nodiscard]] std::vector<stream> side_streams() const {
        std::vector<stream> found;
        for (const device& each : {at_.from, at_.to}) {
            const device home = each.kind() == device_kind::cpu_inline ? cpu() : each;
            if (home != at_.of_stream && (found.empty() || found.front().device() != home)) {
                found.push_back(runtime::side_streams::take(s_, home, "steps"));
            }
        }
        for (const stream& each : found) {
            runtime::side_streams::give_back(s_, each);
        }
        return found;
    }
    [[nodiscard]] std::vector<stream> current_streams() const {
        std::vector<stream> found;
        for (const device& each : {at_.from, at_.to, at_.of_stream}) {
            found.push_back(current_stream(each));
        }
        return found;
    }

private:
    const row& what_;
    places at_;
    array source_;
    array target_;
    stream fills_source_;
    stream fills_target_;
    stream s_;
    array seen_;
};

std::string text_of(const row& what, const places& at) {
    return std::string(what.name) + " from " + at.from.name() + " to " + at.to.name() + " on a stream of " +
           at.of_stream.name();
}

template <class Body>
void for_each_row(Body&& body) {
    std::size_t count = 0;
    for (const row& what : rows()) {
        for (const places& at : all_places()) {
            // The stream of a plain copy is of one of the two devices; only a result goes from a device to itself.
            const bool is_way_back = at.from == at.to;
            if (is_way_back ? what.call != by_fft_into : what.call == by_fft_into) {
                continue;
            }
            if (what.is_for(at)) {
                SCOPED_TRACE(text_of(what, at));
                body(what, at);
                if (::testing::Test::HasFailure()) {
                    return;  // each further row could wait as long
                }
                ++count;
            }
        }
    }
    EXPECT_GE(count, 20U);
}

// Order is proved here, not tried: check reports accesses that only chance orders, in any timing.
WEIR_CONFORMANCE(O5Steps, UnderManualEachStepIsBehindWhatTheProgramOrderedAndBeforeWhatItOrdersNext) {
    for_each_row([](const row& what, const places& at) {
        for (const bool ends_by_event : {false, true}) {
            const ordering_scope ordering(ordering_mode::manual);
            trial one(what, at);
            const check_scope check;
            one.before();
            const outcome made = one.call();
            if (ends_by_event) {
                made.end.synchronize();
                EXPECT_EQ(values(made.result), what.right);
            } else {
                one.after(made.result);
                one.s().synchronize();
                EXPECT_EQ(values(one.seen()), what.right);
            }
            EXPECT_TRUE(check.report().empty()) << check.report().to_string();
        }
    });
}

WEIR_CONFORMANCE(O5Steps, WhatOnlyWeirKnowsIsNeverTheProgramsToOrder) {
    for_each_row([](const row& what, const places& at) {
        trial one(what, at);
        const check_scope check({.assume_manual = true});
        one.before();
        const outcome made = one.call();
        one.after(made.result);
        one.s().synchronize();
        EXPECT_EQ(values(one.seen()), what.right);
        EXPECT_TRUE(check.report().empty()) << check.report().to_string();
    });
}

WEIR_CONFORMANCE(O5Steps, ControlWithoutTheProgramsWaitsTheStepsRace) {
    for_each_row([](const row& what, const places& at) {
        const ordering_scope ordering(ordering_mode::manual);
        trial one(what, at);
        const check_scope check;
        one.before(false);
        const outcome made = one.call();
        one.after(made.result);
        one.s().synchronize();
        EXPECT_FALSE(check.report().empty());
    });
}

/// Whether it becomes true within seconds. Only a test that fails waits for the whole time.
template <class Condition>
bool soon(Condition&& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

enum class held : std::uint8_t { nothing, own, current, side };

/// The call, while what it comes after is late and a stream is held. The result must not depend on when the steps run. Returns whether
/// the call used a stream that was held.
bool expect_right_while_held(const row& what, const places& at, ordering_mode mode, held which) {
    trial one(what, at);
    gate late;
    gate other;
    one.hold_what_comes_before(late);
    const ordering_scope ordering(mode);
    one.before();
    const std::vector<stream> current = one.current_streams();
    const std::vector<stream> sides = which == held::side ? one.side_streams() : std::vector<stream>();
    const auto enqueued = [&] {
        std::uint64_t all = 0;
        for (const stream& each : sides) {
            all += each.state(detail::key).tail().at.at;
        }
        return all;
    };
    for (const stream& each : sides) {
        other.hold(each);
    }
    const std::uint64_t enqueued_before = enqueued();
    if (which == held::own) {
        other.hold(one.s());
    }
    if (which == held::current) {
        for (const stream& each : current) {
            other.hold(each);
            // Dropped while it is in use: what the stream would get first for an array like the result.
            for (const dtype type : {dtype::float32, dtype::float64, dtype::complex64}) {
                static_cast<void>(full(n, 0.0, type, each));
            }
        }
    }
    outcome made;
    completion after;
    const auto call = [&] {
        const ordering_scope in_this_thread(mode);
        made = one.call();
        after = one.after(made.result);
    };
    std::atomic<bool> has_returned = false;
    std::optional<std::thread> blocked;
    if (what.blocks) {
        blocked.emplace([&] {
            call();
            has_returned = true;
        });
    } else {
        call();
        has_returned = true;
    }
    if (which == held::nothing) {
        // A step there that nothing orders would run now, and read what is not written yet.
        for (const stream& each : current) {
            EXPECT_TRUE(soon([&] { return each.done(); })) << "the call leaves the streams of others alone";
        }
    }
    late.open();
    if (which == held::side) {
        one.await_what_comes_before();
    }
    if (which == held::own || which == held::side) {
        other.open();
    }
    EXPECT_TRUE(soon([&] { return has_returned && one.s().done(); }))
        << "the call uses no stream but its own: it needs none that is held";
    other.open();
    if (blocked) {
        blocked->join();
    }
    after.synchronize();
    EXPECT_EQ(values(one.seen()), what.right);
    return enqueued() != enqueued_before;
}

WEIR_CONFORMANCE(O5Steps, ResultsAreRightWhicheverStreamIsLate) {
    int on_held_side_streams = 0;
    for_each_row([&](const row& what, const places& at) {
        for (const ordering_mode mode : {ordering_mode::automatic, ordering_mode::manual}) {
            for (const held which : {held::nothing, held::own, held::current, held::side}) {
                SCOPED_TRACE(mode == ordering_mode::manual ? "manual" : "automatic");
                SCOPED_TRACE(which == held::nothing   ? "nothing held"
                             : which == held::own     ? "the call's stream held"
                             : which == held::current ? "current streams held"
                                                      : "side streams held");
                on_held_side_streams += expect_right_while_held(what, at, mode, which) ? 1 : 0;
                if (::testing::Test::HasFailure()) {
                    return;  // each further one could wait as long
                }
            }
        }
    });
    EXPECT_GT(on_held_side_streams, 0);
}

WEIR_CONFORMANCE(O5Steps, AcrossDevicesNothingIsCopiedToNothing) {
    for (const device& other : others()) {
        const stream s(here());
        array nothing = empty({0, 4}, dtype::float32, s);
        copy(s, nothing, full(1, 3.0, dtype::int8, current_stream(other))).synchronize();
        EXPECT_EQ(to(s, nothing, other).size(), 0);
    }
}

}  // namespace
}  // namespace weir
