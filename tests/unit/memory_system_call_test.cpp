// Taking and giving back memory on one stream makes no system call. The kernel checks it: it ends the process at
// the first call that the test's thread makes.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <vector>

#include "weir/weir.hpp"

namespace weir {
namespace {

/// From now on the calling thread may end the process, and make no other system call. False if the system does not support this.
bool forbid_system_calls() {
    std::array<sock_filter, 4> program{{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    }};
    const sock_fprog filter{program.size(), program.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

constexpr int all_went_well = 0;
constexpr int no_filter = 3;

/// Runs `work` a few times, so that everything that is kept exists, and then without system calls. Ends the process.
template <class Work>
[[noreturn]] void run_without_the_system(Work&& work) {
    for (int i = 0; i < 100; ++i) {
        work();
    }
    if (!forbid_system_calls()) {
        _exit(no_filter);
    }
    for (int i = 0; i < 10000; ++i) {
        work();
    }
    _exit(all_went_well);
}

class L1SystemCallsDeathTest : public ::testing::Test {
protected:
    L1SystemCallsDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(L1SystemCallsDeathTest, TakingAndGivingBackMakesNone) {
    EXPECT_EXIT(
        {
            const stream on(cpu());
            run_without_the_system([&] { const buffer memory(4096, on); });
        },
        ::testing::ExitedWithCode(all_went_well), "");
}

TEST_F(L1SystemCallsDeathTest, NeitherDoArraysThatComeAndGo) {
    EXPECT_EXIT(
        {
            const stream on(cpu());
            run_without_the_system([&] { array x = empty({64, 8}, dtype::float64, on); });
        },
        ::testing::ExitedWithCode(all_went_well), "");
}

TEST_F(L1SystemCallsDeathTest, ControlMemoryThatMustComeFromTheSystemMakesOne) {
    EXPECT_EXIT(
        {
            const stream on(cpu());
            std::vector<buffer> kept;
            run_without_the_system([&] { kept.emplace_back(std::size_t{1} << 20, on); });
        },
        ::testing::KilledBySignal(SIGSYS), "");
}

}  // namespace
}  // namespace weir
