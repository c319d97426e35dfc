#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "weir/array.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

/// Runs `body` in a forked child; its exit status, -1 if it did not exit by itself.
int in_child(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(20);  // a child that hangs is killed, and the test fails
        ::_exit(body());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool refuses(const std::function<void()>& call) {
    try {
        call();
    } catch (const state_error& refused) {
        return std::string(refused.what()).find("forked") != std::string::npos;
    }
    return false;
}

TEST(Fork, PendingWorkIsAnErrorInTheChildAndUnharmedInTheParent) {
    testing::gate held;
    const stream s;
    const array x = zeros(16, dtype::float64, s);
    held.hold(s);
    fill(s, x, 2.0);
    const int failed = in_child([&] {
        int wrong = 0;
        wrong += refuses([&] { s.synchronize(); }) ? 0 : 1;
        wrong += refuses([&] { fill(s, x, 3.0); }) ? 0 : 2;
        wrong += refuses([&] { (void)empty(16, dtype::float64, s); }) ? 0 : 4;
        wrong += refuses([&] { const stream another; }) ? 0 : 8;
        wrong += refuses([&] { (void)s.record(); }) ? 0 : 16;
        return wrong;
    });
    EXPECT_EQ(failed, 0);
    held.open();
    EXPECT_EQ(x.read<double>()[15], 2.0);
}

}  // namespace
}  // namespace weir
