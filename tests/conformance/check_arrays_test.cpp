// Scenarios F7 and F8: parts of one array that overlap or do not, and copies whose source or target is touched too early. check
// reports the right pair of lines of the faulty program, and nothing of the corrected one.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "check_support.hpp"
#include "support/devices.hpp"

namespace weir {
namespace {

using test::duplicate;
using test::here;
using test::last;
using test::scenario_run;
using test::set;
using test::size;
using test::zeroed;

constexpr std::int64_t side = 8;

/// A matrix of zeros, which all streams may use.
array matrix(const scenario_run& run) {
    array made = zeros({side, side}, dtype::float64, run.s1);
    run.s1.synchronize();
    return made;
}
array column(const array& of, std::int64_t number) { return of[{ellipsis, number}]; }

/// The element in a row and a column, once everything is complete.
double element(const array& of, std::int64_t row, std::int64_t col) {
    return of.read<double>()[static_cast<std::size_t>(row * side + col)];
}

/// The report of check if `use` follows an unordered write of the same array.
template <class Use>
std::vector<race> races_of(Use&& use) {
    const stream first(here());
    const stream second(here());
    array x = zeros({size}, dtype::float64, first);
    array y = zeros({size}, dtype::float64, first);
    first.synchronize();
    std::vector<race> found;
    {
        const check_scope watched({.assume_manual = true});
        set(first, x, 1);
        use(on(second), x, y);
        found = watched.report().races();
    }
    here().synchronize();
    return found;
}

WEIR_CONFORMANCE(CheckAccesses, V1AnOperationThatReadsAnArrayTwiceIsOnePair) {
    const auto found = races_of([](const on& where, const array& x, array& y) {
        parallel_for(
            where, size, [](auto i, auto a, auto b, auto to) { to[i] = a[i] * b[i]; }, in(x.view<double>()),
            in(x.view<double>()), out(y.view<double>()));
    });
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].times, 1U);
    EXPECT_EQ(found[0].second.mode, order::access_mode::read);
}

WEIR_CONFORMANCE(CheckAccesses, V1AnOperationThatReadsAndWritesTheSameElementsIsOnePair) {
    const auto found = races_of([](const on& where, array& x, const array&) {
        parallel_for(
            where, size, [](auto i, auto a, auto to) { to[i] = a[i] + 1; }, in(x.view<double>()),
            out(x.view<double>()));
    });
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].times, 1U);
    EXPECT_EQ(found[0].second.mode, order::access_mode::write);
}

WEIR_CONFORMANCE(CheckAccesses, V1AnOperationThatReadsTwoRangesIsTwoPairs) {
    const auto found = races_of([](const on& where, const array& x, array& y) {
        array low = x.slice(0, size / 2 + 1);
        array high = x.slice(size / 2 - 1, size);
        parallel_for(
            where, size / 2, [](auto i, auto a, auto b, auto to) { to[i] = a[i] + b[i]; }, in(low.view<double>()),
            in(high.view<double>()), out(y.view<double>()));
    });
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].times, 2U);
}

struct CheckArrays : test::check_scenario {};

WEIR_CONFORMANCE_F(CheckArrays, F7_columns_of_one_matrix_and_a_row_across_them) {
    prove(
        {1, 2, 3}, {{"a column", "a row", "WAW"}},
        [](scenario_run& run) {
            array x = matrix(run);
            run.hold(run.s1);
            fill(run.at(run.s1, "a column"), column(x, 3), 2);
            fill(run.at(run.s2, "the next column"), column(x, 4), 3);  // shares no element with it
            run.by_hand(run.s2, run.s1);
            run.finish({fill(run.at(run.s2, "a row"), x[5], 1)});
            return std::vector{element(x, 5, 3), element(x, 4, 3), element(x, 4, 4)};
        },
        __FILE__);
}

WEIR_CONFORMANCE_F(CheckArrays, F7_transposed_views) {
    prove(
        {1, 2, 4}, {{"a row of the transposed", "the same column", "WAW"}},
        [](scenario_run& run) {
            array x = matrix(run);
            run.hold(run.s1);
            fill(run.at(run.s1, "a row of the transposed"), x.t()[3], 2);
            fill(run.at(run.s1, "its diagonal neighbour"), x.t()[{slice{4, 6}, slice{4, 6}}], 4);
            fill(run.at(run.s2, "another row of the transposed"), x.t()[7], 2);
            run.by_hand(run.s2, run.s1);
            run.finish({fill(run.at(run.s2, "the same column"), column(x, 3), 1)});
            return std::vector{element(x, 5, 3), element(x, 3, 7), element(x, 5, 4)};
        },
        __FILE__);
}

WEIR_CONFORMANCE_F(CheckArrays, F7_the_two_halves_of_a_matrix_by_rows_and_by_columns) {
    prove(
        {2, 3, 1}, {{"the left half", "the upper half", "WAW"}},
        [](scenario_run& run) {
            array x = matrix(run);
            array left = x[{ellipsis, slice{0, side / 2}}];
            array right = x[{ellipsis, slice{side / 2, side}}];
            array upper = x[{slice{0, side / 2}, ellipsis}];
            run.hold(run.s1);
            fill(run.at(run.s1, "the left half"), left, 1);
            fill(run.at(run.s2, "the right half"), right, 3);
            run.by_hand(run.s2, run.s1);
            run.finish({fill(run.at(run.s2, "the upper half"), upper, 2)});
            return std::vector{element(x, 0, 0), element(x, side - 1, side - 1), element(x, side - 1, 0)};
        },
        __FILE__);
}

WEIR_CONFORMANCE_F(CheckArrays, F7_every_second_element_and_those_between) {
    prove(
        {1, 5}, {{"even elements", "a few of both", "WAW"}},
        [](scenario_run& run) {
            array x = zeroed(run);
            run.hold(run.s1);
            fill(run.at(run.s1, "even elements"), x[slice{0, {}, 2}], 2);
            fill(run.at(run.s2, "odd elements"), x[slice{1, {}, 2}], 5);
            run.by_hand(run.s2, run.s1);
            run.finish({fill(run.at(run.s2, "a few of both"), x[slice{4, 8}], 1)});
            const auto all = x.read<double>();
            return std::vector{all[4], all[9]};
        },
        __FILE__);
}

/// Memory of the host that the program owns and wraps, like pinned memory of another library.
class owned_memory {
public:
    explicit owned_memory(double value)
        : numbers_(std::make_shared<std::vector<double>>(static_cast<std::size_t>(size), value)) {}
    [[nodiscard]] array wrapped() const {
        return {buffer::wrap(numbers_->data(), size * sizeof(double), cpu(), numbers_), dtype::float64, {size}};
    }

private:
    std::shared_ptr<std::vector<double>> numbers_;
};

/// A stream of the CPU, on which operations change the host's memory.
stream stream_of_the_cpu() { return stream(cpu(), {0, "cpu"}); }

/// An array of the host's, of one value: made on `c`, a stream of the CPU.
using host_array = array(const stream& c, double value);

array wrapped_array(const stream& /*c*/, double value) { return owned_memory(value).wrapped(); }

array pinned_array(const stream& c, double value) {
    const memory::use scope(memory::pinned());
    array made = full({size}, value, dtype::float64, c);
    c.synchronize();
    return made;
}

/// The source of a copy to the device is changed.
auto changing_the_source(host_array& make_source) {
    return [&make_source](scenario_run& run) {
        const stream c = stream_of_the_cpu();
        array source = make_source(c, 1);
        array target = zeroed(run);
        run.hold(run.s1);
        copy(run.at(run.s1, "copy"), target, source);
        run.by_hand(c, run.s1);
        run.finish({set(run.at(c, "change"), source, 7)});
        c.synchronize();
        return std::vector{last(target), last(source)};
    };
}

/// The target of a copy from the device is read.
auto reading_the_target(host_array& make_target) {
    return [&make_target](scenario_run& run) {
        const stream c = stream_of_the_cpu();
        array target = make_target(c, 0);
        array source = full({size}, 1, dtype::float64, run.s1);
        array seen = zeros({size}, dtype::float64, c);
        c.synchronize();
        run.s1.synchronize();
        run.hold(run.s1);
        copy(run.at(run.s1, "copy"), target, source);
        run.by_hand(c, run.s1);
        run.finish({duplicate(run.at(c, "read"), target, seen)});
        c.synchronize();
        return std::vector{last(seen)};
    };
}

WEIR_CONFORMANCE_F(CheckArrays, F8_wrapped_memory_is_changed_before_it_was_copied_to_the_device) {
    prove({1, 7}, {{"copy", "change", "WAR"}}, changing_the_source(wrapped_array), __FILE__);
}

WEIR_CONFORMANCE_F(CheckArrays, F8_pinned_memory_is_changed_before_it_was_copied_to_the_device) {
    prove({1, 7}, {{"copy", "change", "WAR"}}, changing_the_source(pinned_array), __FILE__);
}

WEIR_CONFORMANCE_F(CheckArrays, F8_wrapped_memory_is_read_before_the_copy_from_the_device_has_come) {
    prove({1}, {{"copy", "read", "RAW"}}, reading_the_target(wrapped_array), __FILE__);
}

WEIR_CONFORMANCE_F(CheckArrays, F8_pinned_memory_is_read_before_the_copy_from_the_device_has_come) {
    prove({1}, {{"copy", "read", "RAW"}}, reading_the_target(pinned_array), __FILE__);
}

WEIR_CONFORMANCE_F(CheckArrays, F8_the_source_is_freed_before_it_was_copied_to_the_device) {
    prove(
        {1}, {{"copy", "source", "use-after-free"}},
        [](scenario_run& run) {
            const stream c = stream_of_the_cpu();
            const auto pool = run.free_on_allocating_stream(cpu());
            array target = zeroed(run);
            array source = full({size}, 1, dtype::float64, c, run.note("source"));
            c.synchronize();
            run.hold(run.s1);
            copy(run.at(run.s1, "copy"), target, source);
            run.by_hand(c, run.s1);
            source = {};
            array next = empty({size}, dtype::float64, c);
            run.finish({set(run.at(c, "next"), next, 5)});
            c.synchronize();
            return std::vector{last(target)};
        },
        __FILE__);
}

// The owner of wrapped memory is released after the last access, so no drop is too early (rule L4).
WEIR_CONFORMANCE_F(CheckArrays, F8_wrapped_memory_may_be_dropped_at_once) {
    const check_scope check;
    const ordering_scope manual(ordering_mode::manual);
    const stream s(here(), {0, "s"});
    array target = zeros({size}, dtype::float64, s);
    testing::gate gate;
    gate.hold(s);
    {
        const owned_memory memory(1);
        copy(s, target, memory.wrapped());
    }
    gate.open();
    s.synchronize();
    EXPECT_EQ(last(target), 1);
    EXPECT_TRUE(check.report().empty()) << check.report().to_string();
}

}  // namespace
}  // namespace weir
