// What stateless calls keep for the next one (calls/kept_calls.hpp): what a key tells apart, how much is kept, and threads.
#include <gtest/gtest.h>

#include <atomic>
#include <complex>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "calls/kept_calls.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using calls::call_key;

struct numbered {
    explicit numbered(std::int64_t of) : number(of) { ++made; }
    std::int64_t number;
    static inline std::atomic<int> made = 0;
};
using kept_numbers = calls::kept_calls<numbered>;

std::shared_ptr<numbered> entry_of(kept_numbers& all, std::int64_t number) {
    call_key words;
    words.add(number);
    return all.get(words, [&] { return std::make_shared<numbered>(number); });
}

/// Whether the entry was there.
bool knows(kept_numbers& all, std::int64_t number) {
    const int before = numbered::made;
    EXPECT_EQ(entry_of(all, number)->number, number);
    return numbered::made == before;
}

template <class Value>
call_key key_of(const Value& value) {
    call_key words;
    words.add(value);
    return words;
}

TEST(KeptCalls, AKeyTellsApartWhatACallDependsOn) {
    const stream on(cpu());
    const array a = zeros({2, 3}, dtype::float64, on);
    EXPECT_EQ(key_of(a), key_of(ones({2, 3}, dtype::float64, on))) << "not the elements";
    EXPECT_EQ(key_of(a), key_of(zeros({3, 2}, dtype::float64, on).t())) << "not how they lie";
    EXPECT_NE(key_of(a), key_of(zeros({3, 2}, dtype::float64, on)));
    EXPECT_NE(key_of(a), key_of(zeros({2, 3, 1}, dtype::float64, on)));
    EXPECT_NE(key_of(a), key_of(zeros({2, 3}, dtype::int64, on)));
    EXPECT_NE(key_of(a), key_of(zeros({2, 3}, dtype::float64, stream(sim(0)))));
    EXPECT_NE(key_of(scalar(1)), key_of(scalar(1.0)));
    EXPECT_NE(key_of(scalar(1.0)), key_of(scalar(std::complex<double>(1, 0))));
    EXPECT_NE(key_of(scalar(std::complex<double>(1, 2))), key_of(scalar(std::complex<double>(2, 1))));
    const std::vector<std::int64_t> one{1, 2};
    call_key apart = key_of(std::span(one).first(1));
    apart.add(std::span(one).last(1));
    call_key joint = key_of(std::span(one));
    joint.add(std::span(one).first(0));
    EXPECT_NE(apart, joint);
}

TEST(KeptCalls, P3KeepsAtMostSoManyAndDropsTheOneUsedLongestAgo) {
    constexpr auto most = static_cast<std::int64_t>(kept_numbers::most);
    kept_numbers all;
    for (std::int64_t i = 0; i < most; ++i) {
        EXPECT_FALSE(knows(all, i));
    }
    EXPECT_TRUE(knows(all, 0)) << "used again";
    const std::shared_ptr<numbered> in_use = entry_of(all, 1);
    EXPECT_TRUE(knows(all, 2));
    EXPECT_FALSE(knows(all, most)) << "one too many";
    EXPECT_EQ(all.size(), kept_numbers::most);
    EXPECT_TRUE(knows(all, 0));
    EXPECT_FALSE(knows(all, 3)) << "the one used longest ago was dropped";
    for (std::int64_t i = 0; i < 3 * most; ++i) {
        static_cast<void>(entry_of(all, 1000 + i));
    }
    EXPECT_EQ(all.size(), kept_numbers::most);
    EXPECT_EQ(in_use.use_count(), 1) << "dropped, and alive for the call that uses it";
    all.clear();
    EXPECT_EQ(all.size(), 0U);
    EXPECT_FALSE(knows(all, 1000));
}

TEST(KeptCalls, ACallThatIsRefusedIsNotKept) {
    kept_numbers all;
    call_key words;
    words.add(std::int64_t{1});
    const auto refuse = []() -> std::shared_ptr<numbered> { throw argument_error("wrong"); };
    EXPECT_THROW(static_cast<void>(all.get(words, refuse)), argument_error);
    EXPECT_EQ(all.size(), 0U);
    EXPECT_THROW(static_cast<void>(all.get(words, refuse)), argument_error) << "and is refused again";
    EXPECT_FALSE(knows(all, 1));
}

TEST(KeptCalls, ThreadsGetTheEntriesOfTheirKeys) {
    kept_numbers all;
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (std::int64_t t = 0; t < 4; ++t) {
        threads.emplace_back([&all, &wrong, t] {
            for (std::int64_t i = 0; i < 4000; ++i) {
                const std::int64_t number = (i * 7 + t * 13) % 100;  // more than are kept
                wrong += entry_of(all, number)->number == number ? 0 : 1;
                if (i % 1000 == 999 && t == 0) {
                    all.clear();
                }
            }
        });
    }
    for (std::thread& each : threads) {
        each.join();
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_LE(all.size(), kept_numbers::most);
}

}  // namespace
}  // namespace weir
