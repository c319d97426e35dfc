// Negative controls: with a planted fault, the oracle must object soon. A check that cannot fail shows nothing.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "order_driver.hpp"
#include "order_oracle.hpp"

namespace order_test {
namespace {

constexpr std::uint64_t within = 20'000;  // programs

// How many programs it takes until the oracle objects; 0 if `within` are not enough.
std::uint64_t caught_after(fault planted, std::string& objection) {
    const bool packages = planted == fault::stale_entry || planted == fault::no_entry || planted == fault::no_exit;
    const bool completion = planted == fault::watermark_ahead;
    for (std::uint64_t tried = 1; tried <= within; ++tried) {
        const program p = random_program({.packages = packages}, tried);
        const outcome done = drive(p, {.planted = planted, .completion = completion, .seed = tried});
        const oracle judge{p};
        const verdict v = packages || completion ? judge.sufficient(done) : judge.exact(done);
        if (!v.wrong.empty()) {
            objection = v.wrong;
            return tried;
        }
    }
    return 0;
}

std::vector<fault> all_faults() {
    std::vector<fault> all;
    for (int i = 1; i < static_cast<int>(fault::last); ++i) {
        all.push_back(static_cast<fault>(i));
    }
    return all;
}

class Fault : public ::testing::TestWithParam<fault> {};

TEST_P(Fault, IsCaught) {
    std::string objection;
    const std::uint64_t tried = caught_after(GetParam(), objection);
    std::printf("%s: caught by program %llu: %s\n", name(GetParam()), static_cast<unsigned long long>(tried),
                objection.c_str());
    EXPECT_GT(tried, 0U);
}

INSTANTIATE_TEST_SUITE_P(O10, Fault, ::testing::ValuesIn(all_faults()),
                         [](const auto& given) { return std::string{name(given.param)}; });

}  // namespace
}  // namespace order_test
