// Counted objects and their owners.
#include "weir/detail/intrusive.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace weir::detail {
namespace {

/// Counts how many of them there are.
class thing final : public counted<thing> {
public:
    explicit thing(int& alive) noexcept : alive_(alive) { ++alive_; }
    void last_owner_gone() noexcept {
        --alive_;
        delete this;
    }

private:
    int& alive_;
};

// In a template, as in code that takes the caller's function: compilers have miscompiled `one = {}` only there.
template <class Call>
void replace_by_nothing(owner<thing>& one, const Call call) {
    if (one) {
        one = {};
    }
    call();
}

TEST(Owner, AnAssignmentOfNothingLetsGoAlsoInATemplate) {
    int alive = 0;
    owner<thing> one(new thing(alive));
    int seen = -1;
    replace_by_nothing(one, [&] { seen = alive; });
    EXPECT_EQ(seen, 0);
    EXPECT_FALSE(one);
}

TEST(Owner, AnAssignmentLetsGoOfWhatWasOwnedAndKeepsTheOther) {
    int alive = 0;
    owner<thing> one(new thing(alive));
    owner<thing> other(new thing(alive));
    one = other;
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(one, other);
    other = owner<thing>();
    EXPECT_EQ(alive, 1);
    other = std::move(one);
    EXPECT_EQ(alive, 1);
    EXPECT_FALSE(one);
    other = {};
    EXPECT_EQ(alive, 0);
}

TEST(Owner, AnAssignmentToItselfChangesNothing) {
    int alive = 0;
    owner<thing> one(new thing(alive));
    owner<thing>& same = one;
    one = same;
    EXPECT_EQ(alive, 1);
    one = std::move(same);
    EXPECT_EQ(alive, 1);
    EXPECT_TRUE(one);
    one = owner<thing>();
    EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace weir::detail
