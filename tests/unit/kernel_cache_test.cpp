// The folder of compiled kernels.
#include "backend/kernel_cache.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "support/scratch_folder.hpp"

namespace weir::backend {
namespace {

namespace fs = std::filesystem;

class kernel_cache_test : public ::testing::Test {
protected:
    [[nodiscard]] std::size_t files() const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
    }
    static void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }
    static std::string read(const fs::path& file) {
        std::ifstream from(file, std::ios::binary);
        return {std::istreambuf_iterator<char>(from), {}};
    }

    test::scratch_folder scratch;
    const fs::path folder = scratch.path();
    const compiled_program program{std::string("\x7f"
                                               "ELF\0code",
                                               9),
                                   "axpy"};
};

TEST_F(kernel_cache_test, WhatIsKeptIsFound) {
    const kernel_cache cache(folder / "made" / "when needed");
    EXPECT_FALSE(cache.find("key"));
    EXPECT_TRUE(cache.keep("key", program));
    const auto found = cache.find("key");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->image, program.image);
    EXPECT_EQ(found->symbol, "axpy");
    EXPECT_FALSE(cache.find("key 2"));
    EXPECT_EQ(fs::status(folder / "made" / "when needed").permissions(), fs::perms::owner_all);
}

TEST_F(kernel_cache_test, TheLastOneKeptCounts) {
    const kernel_cache cache(folder);
    EXPECT_TRUE(cache.keep("key", program));
    EXPECT_TRUE(cache.keep("key", {"new code", "other"}));
    EXPECT_EQ(cache.find("key")->image, "new code");
    EXPECT_EQ(files(), 1U);
}

TEST_F(kernel_cache_test, AnyDamageIsAMissAndIsReplaced) {
    const kernel_cache cache(folder);
    EXPECT_TRUE(cache.keep("key", program));
    const fs::path file = cache.file_of("key");
    const std::string whole = read(file);
    ASSERT_GT(whole.size(), 50U);
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 4);
        write(file, damaged);
        EXPECT_FALSE(cache.find("key")) << "byte " << at;
        write(file, whole.substr(0, at));
        EXPECT_FALSE(cache.find("key")) << "cut at " << at;
    }
    write(file, whole + "x");
    EXPECT_FALSE(cache.find("key"));
    write(file, whole);
    EXPECT_TRUE(cache.find("key")) << "the file itself is good";
    write(file, "rubbish");
    EXPECT_TRUE(cache.keep("key", program));
    EXPECT_TRUE(cache.find("key"));
}

TEST_F(kernel_cache_test, TheFileOfAnotherKeyIsAMiss) {
    const kernel_cache cache(folder);
    EXPECT_TRUE(cache.keep("key", program));
    fs::copy_file(cache.file_of("key"), cache.file_of("another key"));  // as if two keys had one hash
    EXPECT_FALSE(cache.find("another key"));
    EXPECT_TRUE(cache.find("key"));
}

TEST_F(kernel_cache_test, WhatIsNoFileIsAMiss) {
    const kernel_cache cache(folder);
    EXPECT_TRUE(cache.keep("key", program));
    const fs::path file = cache.file_of("key");
    fs::rename(file, folder / "elsewhere");
    fs::create_symlink(folder / "elsewhere", file);
    EXPECT_FALSE(cache.find("key")) << "a link may lead to another user's file";
    fs::remove(file);
    fs::create_directory(file);
    EXPECT_FALSE(cache.find("key"));
    EXPECT_FALSE(cache.keep("key", program)) << "it cannot replace a folder";
    EXPECT_FALSE(cache.find("key"));
}

TEST_F(kernel_cache_test, AFolderThatCannotBeIsNoError) {
    for (const fs::path& where : {fs::path("/dev/null/weir"), fs::path("/proc/weir"), fs::path()}) {
        const kernel_cache cache(where);
        EXPECT_EQ(cache.keep("key", program), where.empty()) << where << ", empty: nothing is to be kept";
        EXPECT_FALSE(cache.find("key")) << where;
    }
}

// In a process of its own, which is not root's: root may write anywhere.
TEST_F(kernel_cache_test, AReadOnlyFolderIsStillRead) {
    const kernel_cache cache(folder);
    const bool is_root = ::geteuid() == 0;
    constexpr uid_t nobody = 65534;
    ASSERT_TRUE(!is_root || ::chown(folder.c_str(), nobody, nobody) == 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        if (is_root && ::setuid(nobody) != 0) {
            ::_exit(1);
        }
        const bool is_kept = cache.keep("key", program);
        fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
        const bool is_other_kept = cache.keep("other", program);
        ::_exit(is_kept && !is_other_kept && cache.find("key") && !cache.find("other") ? 0 : 2);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    fs::permissions(folder, fs::perms::owner_all);
    if (is_root) {
        EXPECT_FALSE(cache.find("key")) << "the file is somebody else's";
    }
}

TEST_F(kernel_cache_test, WhatWasUsedLongestAgoGoes) {
    const kernel_cache cache(folder, 3500);
    const compiled_program kilobyte{std::string(1000, 'x'), "k"};
    const auto age = [&](const char* key, int hours) {
        fs::last_write_time(cache.file_of(key), fs::file_time_type::clock::now() - std::chrono::hours(hours));
    };
    EXPECT_TRUE(cache.keep("a", kilobyte));
    age("a", 3);
    EXPECT_TRUE(cache.keep("b", kilobyte));
    age("b", 2);
    EXPECT_TRUE(cache.keep("c", kilobyte));
    age("c", 1);
    ASSERT_TRUE(cache.find("a"));  // was the oldest, and is now the last used
    EXPECT_TRUE(cache.keep("d", kilobyte));
    EXPECT_TRUE(cache.find("a"));
    EXPECT_FALSE(cache.find("b"));
    EXPECT_TRUE(cache.find("c"));
    EXPECT_TRUE(cache.find("d"));
}

TEST_F(kernel_cache_test, OnlyItsOwnFilesGo) {
    const kernel_cache cache(folder, 1);
    write(folder / "notes.txt", std::string(1000, 'x'));
    write(folder / "fresh.part", "somebody writes this now");
    write(folder / "old.part", "its writer died");
    fs::last_write_time(folder / "old.part", fs::file_time_type::clock::now() - std::chrono::hours(2));
    EXPECT_TRUE(cache.keep("key", program));
    EXPECT_FALSE(cache.find("key")) << "beyond the bound by itself";
    EXPECT_TRUE(fs::exists(folder / "notes.txt"));
    EXPECT_TRUE(fs::exists(folder / "fresh.part"));
    EXPECT_FALSE(fs::exists(folder / "old.part"));
}

// Each process writes programs that are right for their keys; every program that any of them reads must be right.
TEST_F(kernel_cache_test, SeveralProcessesAtOnce) {
    const auto code_of = [](int key, int version) {
        return std::to_string(key) + ":" +
               std::string(static_cast<std::size_t>(5000 + 100 * version), static_cast<char>('a' + version));
    };
    const auto work = [&](int self) {
        const kernel_cache cache(folder, 60000);
        int found = 0;
        for (int round = 0; round < 300; ++round) {
            const int key = (round * 7 + self) % 10;
            const std::string name = "kernel " + std::to_string(key);
            if (!cache.keep(name, {code_of(key, self), std::to_string(self)})) {
                return 3;
            }
            if (const auto got = cache.find(name)) {
                ++found;
                const int writer = std::stoi(got->symbol);
                if (got->image != code_of(key, writer)) {
                    return 1;
                }
            }
        }
        return found > 0 ? 0 : 2;
    };
    std::vector<pid_t> children;
    for (int self = 0; self < 4; ++self) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            ::_exit(work(self));
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    for (const auto& each : fs::directory_iterator(folder)) {
        EXPECT_EQ(each.path().extension(), ".kernel") << "nothing is left over: " << each.path();
    }
}

/// An environment variable for one test.
class variable {
public:
    variable(const char* name, const char* value) : name_(name) {
        if (const char* const before = std::getenv(name)) {
            before_ = before;
            was_set_ = true;
        }
        value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
    }
    ~variable() { was_set_ ? ::setenv(name_, before_.c_str(), 1) : ::unsetenv(name_); }
    variable(const variable&) = delete;
    variable& operator=(const variable&) = delete;

private:
    const char* name_;
    std::string before_;
    bool was_set_ = false;
};

TEST(KernelCacheFolder, IsWhereTheEnvironmentSays) {
    const variable home("HOME", "/home/somebody");
    const variable xdg("XDG_CACHE_HOME", "/caches");
    {
        const variable own("WEIR_CACHE_DIR", "/own");
        EXPECT_EQ(kernel_cache_folder(), "/own");
    }
    const variable unset("WEIR_CACHE_DIR", nullptr);
    EXPECT_EQ(kernel_cache_folder(), "/caches/weir");
    {
        const variable relative("XDG_CACHE_HOME", "caches");  // the specification: to be ignored
        EXPECT_EQ(kernel_cache_folder(), "/home/somebody/.cache/weir");
    }
    const variable no_xdg("XDG_CACHE_HOME", nullptr);
    EXPECT_EQ(kernel_cache_folder(), "/home/somebody/.cache/weir");
    const variable no_home("HOME", nullptr);
    EXPECT_EQ(kernel_cache_folder(), "");
}

}  // namespace
}  // namespace weir::backend
