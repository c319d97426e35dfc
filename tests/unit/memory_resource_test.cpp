// Memory resources (rule L6): the promises of each one and of each stack of two, and the purpose of each.
#include "weir/memory_resource.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/lifetime/reaper.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using memory::resource_ptr;
using testing::gate;

constexpr std::size_t mib = std::size_t{1} << 20;

void let_all_go() { runtime::reaper::wait_until_empty(); }

/// A resource as a program may write one: memory of the C++ heap.
class heap final : public memory_resource {
public:
    explicit heap(std::atomic<int>& drops) : drops_(&drops) {}

private:
    buffer make(std::size_t bytes, std::size_t alignment, const stream_ref& on, const source_location& where) override {
        const std::align_val_t aligned{alignment};
        void* const memory = ::operator new(bytes, aligned);
        return buffer::wrap(
            memory, bytes, on.device(), [memory, aligned] { ::operator delete(memory, aligned); }, where);
    }
    void dropped(std::uint64_t /*id*/, std::size_t /*bytes*/) noexcept override { ++*drops_; }

    std::atomic<int>* drops_;
};

// --- every resource -----------------------------------------------------------------------------------------------

std::atomic<int> heap_drops{0};

struct maker {
    const char* name;
    resource_ptr (*make)(resource_ptr upstream);
    bool is_adaptor;
};
const maker makers[] = {
    {"pool", [](resource_ptr) { return resource_ptr(); }, false},
    {"driver", [](resource_ptr) { return memory::driver_pool(); }, false},
    {"heap", [](resource_ptr) { return resource_ptr(std::make_shared<heap>(heap_drops)); }, false},
    {"limiting", [](resource_ptr up) { return memory::limiting(256 * mib, std::move(up)); }, true},
    {"logging", [](resource_ptr up) { return memory::logging([](std::string_view) {}, std::move(up)); }, true},
    {"counting", [](resource_ptr up) { return resource_ptr(memory::counting(std::move(up))); }, true},
    {"failing", [](resource_ptr up) { return resource_ptr(memory::failing({.at = 1'000'000}, std::move(up))); }, true},
    {"allocating_stream", [](resource_ptr up) { return memory::allocating_stream(std::move(up)); }, true},
};

struct stack {
    const maker* outer;
    const maker* inner;  ///< null: the outer one alone
};
std::string name_of(const stack& of) {
    return of.inner == nullptr ? of.outer->name : std::string(of.outer->name) + "_over_" + of.inner->name;
}
std::vector<stack> all_stacks() {
    std::vector<stack> all;
    for (const maker& outer : makers) {
        all.push_back({&outer, nullptr});
        for (const maker& inner : makers) {
            if (outer.is_adaptor) {
                all.push_back({&outer, &inner});
            }
        }
    }
    return all;
}

class L6Resource : public ::testing::TestWithParam<stack> {
protected:
    resource_ptr make() const {
        const stack& of = GetParam();
        return of.outer->make(of.inner == nullptr ? resource_ptr() : of.inner->make({}));
    }
    /// Frees early on purpose.
    bool forgets() const {
        const std::string name = name_of(GetParam());
        return name.find("allocating_stream") != std::string::npos;
    }
    const stream s;
};
INSTANTIATE_TEST_SUITE_P(Every, L6Resource, ::testing::ValuesIn(all_stacks()),
                         [](const auto& tested) { return name_of(tested.param); });

TEST_P(L6Resource, GivesMemoryThatWorks) {
    const memory::use scope(make());
    std::vector<array> arrays;
    for (std::int64_t i = 0; i < 20; ++i) {
        arrays.push_back(full(1000 * i, static_cast<double>(i), dtype::float64, s));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arrays.back().data()) % 256, 0U);
    }
    for (std::int64_t i = 1; i < 20; ++i) {
        const auto elements = arrays[static_cast<std::size_t>(i)].read<double>();
        EXPECT_EQ(elements[0], static_cast<double>(i));
        EXPECT_EQ(elements[elements.size() - 1], static_cast<double>(i));
    }
}

TEST_P(L6Resource, NoBytesAreNoMemory) {
    const memory::use scope(make());
    EXPECT_FALSE(buffer(0, s));
}

TEST_P(L6Resource, MemoryOutlivesScopeAndHandle) {
    buffer kept;
    std::weak_ptr<memory_resource> watched;
    {
        const resource_ptr made = make();
        watched = made;
        const memory::use scope(made);
        kept = buffer(4096, s);
    }
    const bool is_pool = GetParam().outer->make == makers[0].make;
    EXPECT_EQ(watched.expired(), is_pool) << "the buffer keeps it alive";
    kept = {};
    EXPECT_TRUE(watched.expired());
}

TEST_P(L6Resource, DroppingPendingMemoryNeitherBlocksNorLetsItGoTooEarly) {
    if (forgets()) {
        // That is its purpose: see L1C11 and the others in the conformance tests.
        GTEST_SUCCEED();
        return;
    }
    const stream reader;
    gate held;
    array seen = zeros(1024, dtype::float64, reader);
    const memory::use scope(make());
    array x = full(1024, 3, dtype::float64, s);
    held.hold(reader);
    copy(reader, seen, x);
    x = {};
    std::vector<array> others;
    for (int i = 0; i < 100; ++i) {
        others.push_back(full(1024, 5, dtype::float64, s));
    }
    s.synchronize();
    held.open();
    EXPECT_EQ(seen.read<double>()[1023], 3);
}

TEST_P(L6Resource, TellsOfEachDropExactlyOnceOnAnyThread) {
    const auto counted = memory::counting(make());
    const std::size_t live = memory::stats().live;
    std::vector<array> given(64);
    std::mutex mutex;  // guards given
    std::vector<std::thread> threads;
    for (unsigned id = 0; id < 4; ++id) {
        threads.emplace_back([&, id] {
            const memory::use scope(counted);
            std::mt19937 random(id);
            const stream own;
            for (int i = 0; i < 100; ++i) {
                array x = full(1 + static_cast<std::int64_t>(random() % 5000), 1, dtype::float32, own);
                const std::lock_guard lock(mutex);
                std::swap(given[random() % given.size()], x);  // drops what another thread may have made
            }
            own.synchronize();
        });
    }
    for (std::thread& one : threads) {
        one.join();
    }
    given.clear();
    const auto now = counted->counts();
    EXPECT_EQ(now.live.count, 0U);
    EXPECT_EQ(now.live.bytes, 0U);
    EXPECT_EQ(now.total.count, 400U);
    EXPECT_GE(now.peak.count, 1U);
    EXPECT_EQ(now.failed.count, 0U);
    let_all_go();
    EXPECT_EQ(memory::stats().live, live);
}

TEST_P(L6Resource, AFailureBelowLeavesItInBalance) {
    const auto failing = memory::failing({.at = 2}, make());
    const auto counted = memory::counting(failing);
    const memory::use scope(counted);
    const buffer first(1000, s);
    EXPECT_THROW(buffer(1000, s), out_of_memory);
    const buffer third(1000, s);
    const auto now = counted->counts();
    EXPECT_EQ(now.live.count, 2U);
    EXPECT_EQ(now.live.bytes, 2000U);
    EXPECT_EQ(now.failed.count, 1U);
    EXPECT_EQ(failing->asked(), 3U);
    EXPECT_EQ(failing->failed(), 1U);
}

// --- scopes -------------------------------------------------------------------------------------------------------

/// The number of buffers that came through it.
std::uint64_t total(const std::shared_ptr<memory::counting_resource>& of) { return of->counts().total.count; }

TEST(L6Use, NestsAndRestoresExactly) {
    const stream s;
    const auto a = memory::counting();
    const auto b = memory::counting();
    {
        const memory::use outer(a);
        (void)buffer(64, s);
        try {
            const memory::use inner(b);
            (void)buffer(64, s);
            {
                const memory::use pool(nullptr);
                (void)buffer(64, s);
            }
            (void)buffer(64, s);
            throw 1;
        } catch (int) {
        }
        (void)buffer(64, s);
    }
    (void)buffer(64, s);
    EXPECT_EQ(total(a), 2U);
    EXPECT_EQ(total(b), 2U);
}

TEST(L6Use, IsOfItsThreadAndItsDevice) {
    const stream on_cpu;
    const stream on_sim(sim(0));
    const auto a = memory::counting();
    const auto b = memory::counting();
    const memory::use all(a);
    const memory::use one(b, sim(0));
    array x = full(100, 7, dtype::float64, on_sim);
    array y = empty(100, dtype::float64, on_cpu);
    std::thread([] {
        const stream s;
        (void)buffer(64, s);
    }).join();
    EXPECT_EQ(total(a), 1U);
    EXPECT_EQ(total(b), 1U);
    copy(on_cpu, y, x);
    EXPECT_EQ(y.read<double>()[99], 7);
}

TEST(L6Use, ScopesInContainersMayEndInAnyOrder) {
    const stream s;
    const auto a = memory::counting();
    const auto b = memory::counting();
    std::optional<memory::use> first(std::in_place, a);
    std::optional<memory::use> second(std::in_place, b);
    first.reset();
    (void)buffer(64, s);
    second.reset();
    (void)buffer(64, s);
    EXPECT_EQ(total(a), 0U);
    EXPECT_EQ(total(b), 1U);
}

TEST(L6Use, AResourceMayUseBuffersItself) {
    const stream s;
    std::shared_ptr<memory::counting_resource> counted;
    int lines = 0;
    const resource_ptr logged = memory::logging([&](std::string_view) {
        ++lines;
        (void)buffer(64, s);  // the pool's: not through the resource under test
    });
    const memory::use scope(logged);
    (void)buffer(64, s);
    EXPECT_EQ(lines, 2);
}

TEST(L6Use, AResourceOnTheStackIsRefused) {
    const stream s;
    std::atomic<int> drops{0};
    heap on_stack(drops);
    EXPECT_THROW((void)on_stack.allocate(64, s), state_error);
}

TEST(L6Use, AResourceThatGivesTooLittleIsRefused) {
    struct stingy final : memory_resource {
        buffer make(std::size_t bytes, std::size_t /*alignment*/, const stream_ref& on,
                    const source_location& where) override {
            return buffer(bytes / 2, on, where);
        }
    };
    const stream s;
    EXPECT_THROW((void)std::make_shared<stingy>()->allocate(4096, s), state_error);
}

// --- each ---------------------------------------------------------------------------------------------------------

TEST(L6Limiting, AllowsExactlyItsLimit) {
    const stream s;
    const memory::use scope(memory::limiting(10'000));
    buffer a(6'000, s);
    const buffer b(4'000, s);
    try {
        (void)buffer(1, s);
        FAIL() << "beyond the limit";
    } catch (const out_of_memory& refused) {
        for (const char* part : {"1 bytes wanted", "10000 are live", "the 10000 bytes", "weir::memory::limiting"}) {
            EXPECT_NE(std::string(refused.what()).find(part), std::string::npos) << refused.what();
        }
    }
    a = {};
    const buffer c(6'000, s);
    EXPECT_THROW((void)buffer(~std::size_t{0}, s), out_of_memory);
}

TEST(L6Logging, WritesALineOfJsonForEachEvent) {
    const stream s(cpu(), {.name = "lo\"ad\n"});
    std::vector<nlohmann::json> lines;
    const auto sink = [&](std::string_view line) { lines.push_back(nlohmann::json::parse(line)); };
    const memory::use scope(memory::logging(sink, memory::failing({.at = 2})));
    const unsigned line = __LINE__ + 1;
    std::optional<buffer> made(std::in_place, 4096, s);
    const std::uint64_t id = made->unique_id();
    EXPECT_THROW(buffer(100, s), out_of_memory);
    made.reset();
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_EQ(lines[0]["event"], "allocate");
    EXPECT_EQ(lines[0]["id"], id);
    EXPECT_EQ(lines[0]["bytes"], 4096);
    EXPECT_EQ(lines[0]["device"], "cpu");
    EXPECT_EQ(lines[0]["stream"], "lo\"ad\n");
    EXPECT_EQ(lines[1]["event"], "fail");
    EXPECT_EQ(lines[1]["bytes"], 100);
    EXPECT_EQ(lines[1]["line"], line + 2);
    EXPECT_NE(std::string(lines[1]["file"]).find("memory_resource_test.cpp"), std::string::npos);
    EXPECT_EQ(lines[2], (nlohmann::json{{"event", "drop"}, {"id", id}, {"bytes", 4096}}));
}

TEST(L6Logging, ASinkThatThrowsDisturbsNothing) {
    const stream s;
    const memory::use scope(memory::logging([](std::string_view) { throw 1; }));
    array x = full(10, 2, dtype::float64, s);
    EXPECT_EQ(x.read<double>()[9], 2);
}

TEST(L6Counting, CountsLivePeakAndTotal) {
    const stream s;
    const auto counted = memory::counting();
    const memory::use scope(counted);
    {
        const buffer a(100, s);
        const buffer b(50, s);
        const buffer same = b;
    }
    const buffer c(70, s);
    const auto now = counted->counts();
    EXPECT_EQ(now.live.count, 1U);
    EXPECT_EQ(now.live.bytes, 70U);
    EXPECT_EQ(now.peak.count, 2U);
    EXPECT_EQ(now.peak.bytes, 150U);
    EXPECT_EQ(now.total.count, 3U);
    EXPECT_EQ(now.total.bytes, 220U);
}

TEST(L6Failing, TheSameSeedFailsTheSameAllocations) {
    const stream s;
    const auto pattern = [&](std::uint64_t seed) {
        const memory::use scope(memory::failing({.probability = 0.25, .seed = seed}));
        std::string text;
        for (int i = 0; i < 400; ++i) {
            try {
                (void)buffer(64, s);
                text += '.';
            } catch (const out_of_memory&) {
                text += 'x';
            }
        }
        return text;
    };
    const std::string one = pattern(1);
    EXPECT_EQ(one, pattern(1));
    EXPECT_NE(one, pattern(2));
    const auto failed = std::count(one.begin(), one.end(), 'x');
    EXPECT_GT(failed, 50);
    EXPECT_LT(failed, 150);
    EXPECT_THROW((void)memory::failing({.probability = 1.5}), argument_error);
    EXPECT_THROW((void)memory::failing({.probability = -0.5}), argument_error);
}

// With a driver, the same holds for the driver's memory.
TEST(L6Shared, PinnedAndManagedMemoryArePlainMemoryWhereThereIsNoDriver) {
    const stream host(cpu());
    const stream s(sim(0));
    const auto make = [](const stream& on, double value, const resource_ptr& from) {
        const memory::use scope(from);
        return full(4, value, dtype::float64, on);
    };
    array pinned_memory = make(host, 3, memory::pinned());
    array managed_memory = make(s, 0, memory::managed());
    EXPECT_TRUE(managed_memory.buffer().host_reachable(detail::key));
    copy(s, managed_memory, pinned_memory).synchronize();
    const host_view<double> seen = managed_memory.write<double>();
    EXPECT_EQ(static_cast<const void*>(seen.span().data()), managed_memory.device_data()) << "the memory itself";
    EXPECT_EQ(std::vector<double>(seen.begin(), seen.end()), std::vector<double>(4, 3));
}

TEST(L6Driver, GivesBackWhenTheLastAccessIsOver) {
    const stream s;
    const std::size_t live = memory::stats().live;
    gate held;
    held.hold(s);
    const memory::use scope(memory::driver_pool());
    array x = full(100, 1, dtype::float64, s);
    EXPECT_EQ(memory::stats().live, live) << "not the pool's";
    x = {};
    EXPECT_EQ(runtime::reaper::held(), 1U);
    held.open();
    let_all_go();
    EXPECT_THROW((void)buffer(std::size_t{1} << 60, s), out_of_memory);
}

}  // namespace
}  // namespace weir
