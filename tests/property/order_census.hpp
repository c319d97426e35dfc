// What the programs of a property test contained.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "order_oracle.hpp"
#include "order_settings.hpp"

namespace order_test {

constexpr unsigned own_kinds = hazards | reuse | dependency;

/// Counts what the programs of a test contained, prints it, and asserts that they were worth running.
class census {
public:
    explicit census(const char* what) : what_(what) {}

    void count(const verdict& v) {
        ++programs_;
        crossed_ += (v.cross & (hazards | reuse | entry | exit)) != 0 ? 1 : 0;
        compared_ += v.compared ? 1 : 0;
        schedules_ += v.schedules;
        waits_ += v.waits;
        for (int k = 0; k < kinds; ++k) {
            of_kind_[static_cast<std::size_t>(k)] += static_cast<int>(v.cross >> k & 1U);
        }
    }

    void report(unsigned expected) const {
        std::printf("%s: %d programs from seed %llu, %d with a hazard between streams", what_, programs_,
                    static_cast<unsigned long long>(first_seed()), crossed_);
        for (int k = 0; k < kinds; ++k) {
            std::printf(", %d %s", of_kind_[static_cast<std::size_t>(k)], name_of_kind(k));
        }
        std::printf("; %d compared by contents, %.3g schedules, %d waits\n", compared_, schedules_, waits_);
        if (programs_ < 100) {
            return;  // a replay
        }
        EXPECT_GE(crossed_ * 100, programs_ * 30);
        EXPECT_GE(compared_ * 100, programs_ * 30);
        for (int k = 0; k < kinds; ++k) {
            if ((expected >> k & 1U) != 0) {
                EXPECT_GT(of_kind_[static_cast<std::size_t>(k)], 0) << name_of_kind(k);
            }
        }
    }

private:
    const char* what_;
    int programs_ = 0;
    int crossed_ = 0;
    int compared_ = 0;
    double schedules_ = 0;
    int waits_ = 0;
    std::array<int, kinds> of_kind_{};
};

}  // namespace order_test
