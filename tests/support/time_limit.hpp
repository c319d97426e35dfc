// A test that would hang reports where, and ends.
#pragma once

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

namespace weir::test {

/// Ends the process, and reports what hangs, if this still lives after `seconds`. One at a time.
class time_limit {
public:
    time_limit(unsigned seconds, const std::string& what) : text_(what + " hangs\n") {
        said_ = &text_;
        std::signal(SIGALRM, [](int) {
            if (::write(STDERR_FILENO, said_->data(), said_->size()) >= 0) {
                std::abort();
            }
            ::_exit(EXIT_FAILURE);
        });
        ::alarm(seconds);
    }
    ~time_limit() {
        ::alarm(0);
        std::signal(SIGALRM, SIG_DFL);
    }
    time_limit(const time_limit&) = delete;
    time_limit& operator=(const time_limit&) = delete;

private:
    static inline const std::string* said_ = nullptr;
    std::string text_;
};

}  // namespace weir::test
