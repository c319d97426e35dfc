#include "support/devices.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "weir/error.hpp"

extern char** environ;

namespace weir::test {

namespace {

std::optional<device> under_test;

/// Set in the child that tries whether an excluded test passes by now.
constexpr const char* trying = "WEIR_TRYING_AN_EXCLUDED_TEST";
/// A test that has not ended by then hangs, and has not passed in any case.
constexpr int patience_in_milliseconds = 2000;

/// Whether the test passes in a process of its own.
bool passes_alone(const std::string& test) {
    const std::string filter = "--gtest_filter=" + test;
    std::string program = "/proc/self/exe";
    std::string mark = std::string(trying) + "=1";
    std::vector<char*> arguments = {program.data(), const_cast<char*>(filter.c_str()), nullptr};
    std::vector<char*> environment;
    for (char** one = environ; *one != nullptr; ++one) {
        // The filter of a sharded run, and the file for results, must not apply to the child.
        if (std::strncmp(*one, "GTEST_", 6) != 0) {
            environment.push_back(*one);
        }
    }
    environment.push_back(mark.data());
    environment.push_back(nullptr);
    posix_spawn_file_actions_t quiet;
    ::posix_spawn_file_actions_init(&quiet);
    ::posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = 0;
    const int failed = ::posix_spawn(&child, program.c_str(), &quiet, nullptr, arguments.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&quiet);
    if (failed != 0) {
        ADD_FAILURE() << "cannot start " << program << ": " << std::strerror(failed);
        return false;
    }
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
    pollfd ended{handle, POLLIN, 0};
    if (handle < 0 || ::poll(&ended, 1, patience_in_milliseconds) != 1) {
        ::kill(child, SIGKILL);
    }
    ::close(handle);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class on_backend : public ::testing::Test {
public:
    on_backend(const tested_backend& backend, std::string test, void (*body)())
        : backend_(&backend), test_(std::move(test)), body_(body) {}

    void TestBody() override {
        const auto* const excluded = std::find_if(exclusions.begin(), exclusions.end(), [&](const exclusion& one) {
            return one.test == test_ && one.backend == backend_->name;
        });
        if (excluded != exclusions.end() && std::getenv(trying) == nullptr) {
            expect_not_to_pass(*excluded);
            return;
        }
        std::string why_not;
        under_test = find_device(backend_->where, why_not);
        if (!under_test) {
            GTEST_SKIP() << why_not;
        }
        std::optional<testing::simulated> behaviour;
        if (backend_->settings) {
            under_test->synchronize();  // an earlier test of this program may have used it as its second device
            behaviour.emplace(*under_test, *backend_->settings);
        }
        body_();
    }

private:
    const tested_backend* backend_;
    std::string test_;
    void (*body_)();
};

struct registered_test {
    std::string file;
    std::string name;  ///< "suite.name"
};
std::vector<registered_test>& registered_tests() {
    static std::vector<registered_test> all;
    return all;
}

/// Fails each run of the program while the exclusions have a dead entry.
class living_exclusions : public ::testing::Environment {
public:
    void SetUp() override {
        for (const exclusion& one : exclusions) {
            EXPECT_EQ(reason_why_dead(one), "") << "the exclusion of " << one.test << " on " << one.backend;
        }
    }
};

}  // namespace

void expect_not_to_pass(const exclusion& one) {
    EXPECT_FALSE(passes_alone(std::string(one.test) + "/" + std::string(one.backend)))
        << "it passes: take it out of the exclusions. It was excluded because " << one.reason;
}

std::string reason_why_dead(const exclusion& one) {
    const std::vector<tested_backend>& backends = tested_backends();
    if (std::none_of(backends.begin(), backends.end(),
                     [&](const tested_backend& each) { return each.name == one.backend; })) {
        return "there is no such backend";
    }
    const std::filesystem::path folder = WEIR_TESTS;
    if (std::filesystem::exists(folder) && !std::filesystem::exists(folder / one.file)) {
        return "there is no such file";
    }
    const std::vector<registered_test>& all = registered_tests();
    const auto is_here = [&](const registered_test& each) { return each.file.ends_with("/" + std::string(one.file)); };
    const auto is_meant = [&](const registered_test& each) { return is_here(each) && each.name == one.test; };
    if (std::any_of(all.begin(), all.end(), is_here) && std::none_of(all.begin(), all.end(), is_meant)) {
        return "there is no such test in its file";
    }
    return "";
}

std::optional<device> find_device(const char* name, std::string& why_not) {
    if (register_own_device != nullptr) {
        register_own_device();
    }
    try {
        const device found = device::from_name(name);
        if (found.kind() == device_kind::cuda) {
            testing::run_host_code_on(found);
        }
        return found;
    } catch (const device_error& why) {  // the driver cannot be used
        why_not = why.what();
    } catch (const argument_error& why) {  // or it has fewer devices
        why_not = why.what();
    }
    return std::nullopt;
}

device here() { return *under_test; }

bool register_everywhere(const char* suite, const char* name, const char* file, int line, void (*body)()) {
    if (registered_tests().empty()) {
        ::testing::AddGlobalTestEnvironment(new living_exclusions);  // NOLINT: GoogleTest owns it
    }
    std::string test = name;
    if (test.ends_with('_')) {
        test.pop_back();
    }
    const std::string full = std::string(suite) + "." + test;
    registered_tests().push_back({file, full});
    for (const tested_backend& each : tested_backends()) {
        if (each.is_own != (register_own_device != nullptr)) {
            continue;
        }
        const std::string shown = test + "/" + each.name;
        // Registered like a plain test, so that it may share its suite with tests of TEST.
        ::testing::RegisterTest(
            suite, shown.c_str(), nullptr, nullptr, file, line, [&each, full, body]() -> ::testing::Test* {
                return new on_backend(each, full, body);  // NOLINT(cppcoreguidelines-owning-memory): GoogleTest owns it
            });
    }
    return true;
}

}  // namespace weir::test
