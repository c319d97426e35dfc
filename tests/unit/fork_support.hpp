// Children that are made by fork, and their answers.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>

#include "weir/weir.hpp"

namespace weir::test {

/// The exit status of a child if everything it checked was right; other statuses are the sum of what was wrong.
inline constexpr int right = 0;
inline constexpr int threw = 99;

enum class ending { at_once, as_programs_do };

/// The status with which the exit handlers of a child end it, before a leak checker counts objects that belonged to the parent's threads.
inline int status_of_this_child = -1;
inline const bool ends_before_leak_checker = std::atexit([] {
                                                 if (status_of_this_child >= 0) {
                                                     ::_exit(status_of_this_child);
                                                 }
                                             }) == 0;

/// Starts `body` in a forked child, which exits with what it returns. A child that hangs is killed.
inline pid_t start_child(const std::function<int()>& body, ending how = ending::at_once) {
    const pid_t child = ::fork();
    if (child != 0) {
        return child;
    }
    ::alarm(10);
    int result = threw;
    try {
        result = body();
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "the child threw: %s\n", failed.what());
    }
    if (how == ending::at_once) {
        ::_exit(result);
    }
    status_of_this_child = result;
    std::exit(result);
}

/// The exit status of the child; -1 if it did not exit by itself.
inline int status_of(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline int in_child(const std::function<int()>& body, ending how = ending::at_once) {
    return status_of(start_child(body, how));
}

/// Whether `call` throws a state_error that says `what`.
inline bool refuses(const std::function<void()>& call, const std::string& what) {
    try {
        call();
    } catch (const state_error& refused) {
        const bool says = std::string(refused.what()).find(what) != std::string::npos;
        if (!says) {
            std::fprintf(stderr, "it says: %s\n", refused.what());
        }
        return says;
    }
    return false;
}

/// Checks that the device computes: a new stream, a new array, a host task, an event. Returns the sum of what fails.
inline int wrong_on(const device& on) {
    int wrong = 0;
    const stream s(on);
    array x = full(64, 3.0, dtype::float64, s);
    array y = add(s, x, x);
    wrong += y.read<double>()[63] == 6.0 ? 0 : 1;
    bool ran = false;
    const completion task = host_task(s, [&ran] { ran = true; });
    task.synchronize();
    wrong += ran ? 0 : 2;
    const event e = s.record();
    e.wait();
    wrong += e.done() ? 0 : 4;
    return wrong;
}

}  // namespace weir::test
