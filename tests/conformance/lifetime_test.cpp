// Memory is not reused before every access to it is complete or ordered before the reuse (rule L1; scenarios A6, A7, C11).
// Each case runs twice: with Weir's pool, and as a control with memory that is freed on the stream that allocated it, as in
// other pools. Gates make the race certain: the old owner's work starts after the new owner's is enqueued, or complete.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "support/devices.hpp"
#include "support/one_piece.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;
using test::one_piece;

using testing::gate;

constexpr std::int64_t count = 4096;
constexpr std::size_t mib = std::size_t{1} << 20;

enum class pool_kind { weir, control };

/// The negative control, if a case runs as one.
class control_scope {
public:
    explicit control_scope(pool_kind kind) {
        if (kind == pool_kind::control) {
            scope_.emplace(memory::allocating_stream());
        }
    }

private:
    std::optional<memory::use> scope_;
};

array doubles(std::size_t bytes, const stream& on) {
    return empty(static_cast<std::int64_t>(bytes / sizeof(double)), dtype::float64, on);
}

/// out = x + 2
void add_two(const stream& s, array& out_array, const array& x) {
    parallel_for(
        s, out_array.size(), [](auto i, auto to, auto from) { to[i] = from[i] + 2; }, out(out_array.view<double>()),
        in(x.view<double>()));
}

bool all_are(const array& x, double value) {
    const auto elements = x.read<double>();
    return std::all_of(elements.begin(), elements.end(), [&](double one) { return one == value; });
}

/// A7: `del arr; view + 2; del view; producer goes on`. Returns the sum, which should be 3.
double view_plus_two(pool_kind kind) {
    const stream producer{here()};
    const stream consumer{here()};
    gate held;
    array sum = zeros(count, dtype::float64, consumer);
    consumer.synchronize();
    const control_scope scope(kind);
    array arr = full(count, 1, dtype::float64, producer);
    array view = arr.slice(0, count);
    held.hold(consumer);
    arr = {};
    add_two(consumer, sum, view);
    view = {};
    array next = full(count, 5, dtype::float64, producer);
    producer.synchronize();  // waits neither for the drop nor for the allocation: the gate is still closed
    held.open();
    EXPECT_TRUE(all_are(next, 5));
    return sum.read<double>()[count - 1];
}

WEIR_CONFORMANCE(L1A7, TheProducerGoesOnWhileAViewIsStillRead) { EXPECT_EQ(view_plus_two(pool_kind::weir), 3); }

WEIR_CONFORMANCE(L1A7, ControlFreedOnTheAllocatingStreamTheViewSeesTheNextArray) {
    EXPECT_EQ(view_plus_two(pool_kind::control), 7);
}

/// C11, A6: an array is dropped while a stream that did not allocate it still writes it. Returns the final contents of the next
/// array of the allocating stream; it was filled with 5.
double next_after_a_late_write(pool_kind kind) {
    const stream home{here()};
    const stream writer{here()};
    gate held;
    const control_scope scope(kind);
    array arr = full(count, 1, dtype::float64, home);
    held.hold(writer);
    fill(writer, arr, 9);
    arr = {};
    array next = full(count, 5, dtype::float64, home);
    home.synchronize();
    held.open();
    writer.synchronize();
    return next.read<double>()[0];
}

WEIR_CONFORMANCE(L1C11, ALateWriteDoesNotReachTheNextArray) { EXPECT_EQ(next_after_a_late_write(pool_kind::weir), 5); }

WEIR_CONFORMANCE(L1C11, ControlFreedOnTheAllocatingStreamTheLateWriteCorruptsTheNextArray) {
    EXPECT_EQ(next_after_a_late_write(pool_kind::control), 9);
}

/// The same if no other memory is left: the next array gets the same bytes, and its first use waits on the device,
/// with `manual` ordering too. Returns what the late reader saw of the dropped array; it was filled with 1.
double late_read_of_reused_memory(pool_kind kind, ordering_mode mode) {
    const stream home{here()};
    const stream reader{here()};
    gate held;
    array seen = zeros(count, dtype::float64, reader);
    reader.synchronize();
    const one_piece only(4 * mib, home);
    const control_scope scope(kind);
    const ordering_scope ordering(mode);
    array arr = doubles(4 * mib, home);
    std::byte* const address = arr.data();
    fill(home, arr, 1).synchronize();
    held.hold(reader);
    add_two(reader, seen, arr.slice(0, count));
    arr = {};
    array next = doubles(4 * mib, home);
    EXPECT_EQ(next.data(), address);
    const completion filled = fill(home, next, 5);
    if (kind == pool_kind::weir) {
        EXPECT_FALSE(filled.done());
    } else {
        filled.synchronize();
    }
    held.open();
    reader.synchronize();
    home.synchronize();
    EXPECT_TRUE(all_are(next, 5));
    return seen.read<double>()[0] - 2;
}

WEIR_CONFORMANCE(L1, ReusedMemoryIsWrittenAfterItsFormerOwnersAccesses) {
    EXPECT_EQ(late_read_of_reused_memory(pool_kind::weir, ordering_mode::automatic), 1);
}

WEIR_CONFORMANCE(L1, ManualOrderingDoesNotLetReuseComeTooEarly) {
    EXPECT_EQ(late_read_of_reused_memory(pool_kind::weir, ordering_mode::manual), 1);
}

WEIR_CONFORMANCE(L1, ControlFreedOnTheAllocatingStreamReuseComesTooEarly) {
    EXPECT_EQ(late_read_of_reused_memory(pool_kind::control, ordering_mode::automatic), 5);
}

/// Three streams: A frees what it still reads, B merges it with its own memory and frees both, C allocates the whole. Returns what
/// A saw; its array was filled with 1.
double three_streams(pool_kind kind) {
    const stream a{here()};
    const stream b{here()};
    const stream c{here()};
    gate held;
    array seen = zeros(count, dtype::float64, a);
    a.synchronize();
    const one_piece only(8 * mib, b);
    const control_scope scope(kind);
    array of_a = doubles(4 * mib, a);
    array of_b = doubles(4 * mib, b);
    fill(a, of_a, 1).synchronize();
    held.hold(a);
    add_two(a, seen, of_a.slice(0, count));
    of_a = {};
    of_b = {};
    array merged = doubles(8 * mib, b);
    merged = {};
    array of_c = doubles(8 * mib, c);
    const completion filled = fill(c, of_c, 5);
    if (kind == pool_kind::weir) {
        EXPECT_FALSE(filled.done()) << "A is held, and still reads it";
    } else {
        filled.synchronize();
    }
    held.open();
    a.synchronize();
    EXPECT_TRUE(all_are(of_c, 5));
    return seen.read<double>()[0] - 2;
}

WEIR_CONFORMANCE(L1ThreeStreams, MergedAndFreedByAnotherTheMemoryStillRemembersTheFirst) {
    EXPECT_EQ(three_streams(pool_kind::weir), 1);
}

WEIR_CONFORMANCE(L1ThreeStreams, ControlTheFirstIsForgotten) { EXPECT_EQ(three_streams(pool_kind::control), 5); }

WEIR_CONFORMANCE(L1, DroppingAndAllocatingDoNotBlockWhileEverythingIsHeldBack) {
    gate held;
    const stream s{here()};
    const stream other{here()};
    held.hold(s);
    for (int i = 0; i < 100; ++i) {
        array x = full(count, i, dtype::float64, s);
        x = {};
        array y = full(count, i, dtype::float64, other);
        fill(s, y, 1);
    }
    other.synchronize();
    EXPECT_FALSE(s.done());
    held.open();
    s.synchronize();
}

WEIR_CONFORMANCE(L1, AHostThatMustWaitForMemoryWaitsForTheOldestOnly) {
    const stream s{here()};
    const stream other{here()};
    gate closed;
    array x = doubles(mib, other);  // of an independent stream
    const one_piece only(4 * mib, s);
    array low = doubles(2 * mib, s);
    array high = doubles(2 * mib, other);
    fill(s, low, 1);
    fill(other, high, 1);
    low = {};
    high = {};
    closed.hold(s);
    closed.hold(other);
    array both = doubles(4 * mib, s);  // the two cannot be compared: the host has to wait for one of them
    EXPECT_EQ(both.nbytes(), 4 * mib);
}

WEIR_CONFORMANCE(L6, OutOfMemoryNamesTheSizesAndLosesNothing) {
    const stream s{here()};
    const one_piece only(4 * mib, s);
    array most = doubles(3 * mib, s);
    try {
        doubles(2 * mib, s);
        FAIL() << "there is no memory for this";
    } catch (const out_of_memory& error) {
        EXPECT_NE(std::string(error.what()).find("2097152 bytes wanted"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("weir::memory::limit"), std::string::npos) << error.what();
    }
    most = {};
    EXPECT_EQ(doubles(4 * mib, s).nbytes(), 4 * mib);
}

}  // namespace
}  // namespace weir
