// Packages whose accesses are all known, and kept in order: operations on memory that they share are ordered by these accesses, and not
// with the package's current stream (rules O1, X6).
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "support/devices.hpp"
#include "support/sharing_versions.hpp"
#include "support/time_limit.hpp"
#include "weir/detail/package_order.hpp"

namespace weir {
namespace {

using namespace test::sharing;  // NOLINT(google-build-using-namespace): the words of these tests
using test::here;
using test::producer;

/// Says of a library what the test wants, and notes what it is asked for.
class known_library final : public package, public detail::package_order {
public:
    using accesses = std::vector<detail::shared_access>;
    struct begun {
        stream on;
        accesses all;
    };

    [[nodiscard]] std::string_view name() const noexcept override { return "known"; }
    [[nodiscard]] std::optional<stream> current_stream(device of) override {
        ++asked;
        return library->current_stream(of);
    }
    [[nodiscard]] detail::package_order* order() noexcept override { return this; }

    [[nodiscard]] std::unique_ptr<operation> begin(const stream& on,
                                                   std::span<const detail::shared_access> all) override {
        if (fails) {
            throw std::runtime_error("no event");
        }
        if (!orders) {
            return nullptr;
        }
        operations.push_back({on, accesses(all.begin(), all.end())});
        return std::make_unique<until_it_is_there>(*this);
    }
    [[nodiscard]] bool host_waits(std::span<const detail::shared_access> all) override {
        by_host.assign(all.begin(), all.end());
        return orders;
    }
    [[nodiscard]] std::optional<bool> is_over(std::span<const detail::shared_access> all) override {
        by_host.assign(all.begin(), all.end());
        return orders ? std::optional(over) : std::nullopt;
    }

    const std::shared_ptr<producer> library = std::make_shared<producer>(here());
    [[nodiscard]] bool sees_all() const noexcept override { return all_is_seen; }

    bool orders = true;
    bool all_is_seen = true;
    bool fails = false;
    bool over = true;
    int asked = 0;      ///< for the current stream
    int under_way = 0;  ///< operations that have begun, and are not in their streams yet
    std::vector<begun> operations;
    accesses by_host;

private:
    struct until_it_is_there final : operation {
        explicit until_it_is_there(known_library& by) : of(by) { ++of.under_way; }
        ~until_it_is_there() override { --of.under_way; }
        known_library& of;
    };
};

array import(const std::shared_ptr<known_library>& from, const producer::array& x) {
    return {import_live(x.data(), x.bytes(), here(), from, x.owner()), dtype::float64, {n}};
}

void expect_one(const known_library::accesses& found, const array& in, std::uint64_t begin, std::uint64_t end,
                access_mode mode) {
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].address, reinterpret_cast<std::uintptr_t>(in.buffer().device_data()));
    EXPECT_EQ(found[0].bytes, in.buffer().bytes());
    EXPECT_EQ(found[0].where, (order::footprint{begin, end}));
    EXPECT_EQ(found[0].mode, mode);
}

WEIR_CONFORMANCE(X6, AnOperationIsOrderedByKnownAccessesAndNotWithTheCurrentStream) {
    const auto known = std::make_shared<known_library>();
    const stream s(here());
    const producer::array t = theirs(known->library, 1);
    const auto held = make_latch();
    known->library->current()->hold(held);
    array a = import(known, t);
    array part = a.slice(8, 16);
    const completion done = copy(s, part, full({8}, 5.0, dtype::float64, s));
    EXPECT_EQ(known->asked, 0);
    if (known->asked == 0) {
        done.synchronize();  // while the library's queue is held
    }
    EXPECT_TRUE(done.done());
    EXPECT_EQ(known->under_way, 0);
    held->open();
    ASSERT_EQ(known->operations.size(), 1U);
    EXPECT_EQ(known->operations[0].on, s);
    expect_one(known->operations[0].all, a, 8 * sizeof(double), 16 * sizeof(double), access_mode::write);
    const numbers found = known->library->values(t);
    EXPECT_EQ(found[7], 1);
    EXPECT_EQ(found[8], 5);
}

WEIR_CONFORMANCE(X6, AnOperationThatIsNotOrderedByAccessesIsOrderedWithTheCurrentStream) {
    const auto known = std::make_shared<known_library>();
    const stream s(here());
    const producer::array t = theirs(known->library, 0);
    array a = import(known, t);
    known->orders = false;
    const auto held = make_latch();
    known->library->current()->hold(held);
    known->library->fill(t, 5);
    add(s, a, 1);
    known->library->add(t, 10);
    EXPECT_GT(known->asked, 0);
    held->open();
    EXPECT_EQ(known->library->values(t), all(16));
}

WEIR_CONFORMANCE(X6, WhereAPartOfWhatAPackageDoesIsNotSeenItsCurrentStreamCountsToo) {
    const auto known = std::make_shared<known_library>();
    known->all_is_seen = false;
    const stream s(here());
    const producer::array t = theirs(known->library, 0);
    array a = import(known, t);
    const auto held = make_latch();
    known->library->current()->hold(held);
    known->library->fill(t, 5);
    EXPECT_FALSE(a.ready());
    add(s, a, 1);
    EXPECT_EQ(known->operations.size(), 1U);
    EXPECT_EQ(known->under_way, 0);
    known->library->add(t, 10);
    held->open();
    EXPECT_EQ(known->library->values(t), all(16));
    known->by_host.clear();
    EXPECT_EQ(values(a), all(16));
    EXPECT_EQ(known->by_host.size(), 1U);
}

WEIR_CONFORMANCE(O6, TheHostWaitsForKnownAccessesAndNotForTheCurrentStream) {
    const test::time_limit limit(20, "a read of the host, for a library's queue that is held");
    const auto known = std::make_shared<known_library>();
    const producer::array t = theirs(known->library, 3);
    const auto held = make_latch();
    known->library->current()->hold(held);
    const array a = import(known, t);
    known->over = false;
    EXPECT_FALSE(a.ready());
    known->over = true;
    EXPECT_TRUE(a.ready());
    known->by_host.clear();
    EXPECT_EQ(values(a), all(3));
    expect_one(known->by_host, a, 0, n * sizeof(double), access_mode::read);
    EXPECT_EQ(known->asked, 0);
    known->orders = false;
    EXPECT_FALSE(a.ready()) << "the current stream counts";
    held->open();
    EXPECT_EQ(values(a), all(3));
    EXPECT_GT(known->asked, 0);
}

WEIR_CONFORMANCE(X7, TheEndOfAnExportComesAfterTheKnownAccessesOfAllStreams) {
    const auto known = std::make_shared<known_library>();
    const array x = ours(1);
    live_export shared(x.buffer(), known);
    shared.end();
    ASSERT_EQ(known->operations.size(), 1U);
    EXPECT_EQ(known->operations[0].on, *known->library->current_stream(here()));
    expect_one(known->operations[0].all, x, 0, n * sizeof(double), access_mode::write);
    EXPECT_EQ(known->under_way, 0);
}

WEIR_CONFORMANCE(X6, AnOrderThatFailsMakesTheCallFailAndNothingIsEnqueued) {
    const auto known = std::make_shared<known_library>();
    const stream s(here());
    const producer::array t = theirs(known->library, 1);
    array a = import(known, t);
    known->fails = true;
    EXPECT_THROW(add(s, a, 1), std::runtime_error);
    EXPECT_EQ(known->under_way, 0);
    known->fails = false;
    add(s, a, 1).synchronize();
    EXPECT_EQ(known->library->values(t), all(2));
}

}  // namespace
}  // namespace weir
