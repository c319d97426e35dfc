// Rule V1 where Weir shares memory with another library whose hooks report what it does: what check finds between the two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unit/cuda_support.hpp"
#include "weir/check.hpp"
#include "weir/detail/package_order.hpp"
#include "weir/detail/watched_program.hpp"
#include "weir/package.hpp"
#include "weir/sharing.hpp"

namespace weir::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A library that works in one of two streams, and says so.
class library final : public package {
public:
    [[nodiscard]] std::string_view name() const noexcept override { return "torch"; }
    [[nodiscard]] std::optional<stream> current_stream(device of) override {
        return of == cuda() ? std::optional(one) : std::nullopt;
    }
    [[nodiscard]] detail::package_order* order() noexcept override { return known; }

    stream one{cuda()};
    stream two{cuda()};
    detail::package_order* known = nullptr;
};

/// Says that it orders everything.
class orders_all final : public detail::package_order {
public:
    [[nodiscard]] std::unique_ptr<operation> begin(const stream& /*on*/,
                                                   std::span<const detail::shared_access> /*all*/) override {
        return std::make_unique<operation>();
    }
    [[nodiscard]] bool host_waits(std::span<const detail::shared_access> /*all*/) override { return true; }
    [[nodiscard]] std::optional<bool> is_over(std::span<const detail::shared_access> /*all*/) override { return true; }
};

class LibrariesOnCuda : public ::testing::Test {
protected:
    static std::uint64_t address_of(const array& a) {
        return reinterpret_cast<std::uint64_t>(a.buffer().device_data());
    }
    [[nodiscard]] detail::watched_stream seen(const stream& one) const {
        return {cuda().id(), reinterpret_cast<std::uint64_t>(one.handle())};
    }
    /// What the library's hooks report of an operator on the whole of `memory`.
    void torch(const stream& on, std::uint32_t line, access_mode mode) {
        const std::uint64_t bytes = memory.buffer().bytes();
        const detail::watched_access all[] = {{address_of(memory), bytes, {0, bytes}, mode, true}};
        program.operation(seen(on), "aten::op", all, {"train.py", "step", line});
    }
    void torch_waits(const stream& waiting, const stream& for_) {
        program.event_recorded(0x77, seen(for_), {"train.py", "step", 90});
        program.stream_waits(seen(waiting), 0x77, {"train.py", "step", 91});
    }
    /// An operation of Weir's on the line: s.
    void add_one(array x, std::uint32_t line) const {
        compute(on(s, {"weir.py", "step", line}), binary_operation::add, x, 1, x);
    }
    [[nodiscard]] array imported() const {
        return {import_live(memory.buffer().device_data(), memory.buffer().bytes(), cuda(), with, keep),
                dtype::float64,
                {elements}};
    }
    [[nodiscard]] std::vector<std::string> found() const {
        std::vector<std::string> all;
        for (const race& one : scope.report().races()) {
            all.push_back(one.kind + " " + std::to_string(one.first.line) + "->" + std::to_string(one.second.line));
        }
        return all;
    }

    stream s{cuda()};
    std::shared_ptr<library> with = std::make_shared<library>();
    /// The library's.
    array memory = [&] {
        array made = make(s, 0);
        s.synchronize();
        return made;
    }();
    std::shared_ptr<const array> keep = std::make_shared<const array>(memory);
    check_scope scope;
    detail::watched_program program{"torch", "cuda"};
};

TEST_F(LibrariesOnCuda, V1OperationsOnImportedMemoryAreComparedWithTheLibrarys) {
    const array x = imported();
    torch(with->one, 1, access_mode::write);
    add_one(x, 2);
    torch(with->one, 3, access_mode::write);
    EXPECT_THAT(found(), IsEmpty()) << "the current stream";
    torch(with->two, 4, access_mode::write);
    add_one(x, 5);
    // Weir orders by its own accesses, so one that a library's covers stays, and is named, too.
    EXPECT_THAT(found(), ElementsAre("WAW 3->4", "WAW 2->4", "WAW 4->5"));
}

TEST_F(LibrariesOnCuda, V1WhatTheProgramAddsCounts) {
    const array x = imported();
    torch(with->two, 1, access_mode::write);
    torch_waits(with->one, with->two);
    add_one(x, 2);
    torch_waits(with->two, with->one);
    torch(with->two, 3, access_mode::write);
    s.wait(with->two);
    add_one(x, 4);
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(LibrariesOnCuda, V1SoAreThoseOnMemoryOfWeirsThatIsLent) {
    array w = make(s, 0);
    add_one(w, 1);
    memory = w;
    const live_export lent(w, with);
    torch(with->two, 2, access_mode::read);
    EXPECT_THAT(found(), ElementsAre("RAW 1->2"));
    add_one(w, 3);
    EXPECT_THAT(found(), ElementsAre("RAW 1->2", "WAR 2->3"));
}

TEST_F(LibrariesOnCuda, V1AndWhatTheHostReads) {
    const array x = imported();
    torch(with->one, 1, access_mode::write);
    EXPECT_EQ(x.read<double>().size(), static_cast<std::size_t>(elements));
    EXPECT_THAT(found(), IsEmpty());
    torch(with->two, 2, access_mode::read);
    EXPECT_EQ(x.read<double>().size(), static_cast<std::size_t>(elements));
    EXPECT_THAT(found(), IsEmpty()) << "both only read, and the host has waited for 1";
    torch(with->two, 3, access_mode::write);
    EXPECT_EQ(x.read<double>().size(), static_cast<std::size_t>(elements));
    ASSERT_EQ(found().size(), 1U);
    EXPECT_THAT(found().front(), ::testing::HasSubstr(" 3->"));
}

TEST_F(LibrariesOnCuda, O5WhereTheProgramOrdersTheCurrentStreamDoesNotCount) {
    const array x = imported();
    const ordering_scope manual(ordering_mode::manual);
    torch(with->one, 1, access_mode::write);
    add_one(x, 2);
    EXPECT_THAT(found(), ElementsAre("WAW 1->2"));
}

TEST_F(LibrariesOnCuda, V1TheReportIsOfTheProgramsOwnOrderWhateverKeepsItInOrder) {
    orders_all known;
    with->known = &known;
    const array x = imported();
    torch(with->one, 1, access_mode::write);
    add_one(x, 2);
    EXPECT_THAT(found(), IsEmpty()) << "without that, the current stream would order them";
    torch(with->two, 3, access_mode::write);
    EXPECT_THAT(found(), ElementsAre("WAW 2->3"));
    add_one(x, 4);
    EXPECT_THAT(found(), ElementsAre("WAW 2->3", "WAW 3->4"));
    with->known = nullptr;
}

}  // namespace
}  // namespace weir::test
