#include "cli/demo/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace weir::demo {

progress_line::progress_line(std::string what) : what_(std::move(what)), terminal_(::isatty(STDOUT_FILENO) == 1) {
    show(0);
}

void progress_line::show(double done) {
    const int percent = static_cast<int>(done * 100);
    if (terminal_ && percent != shown_) {
        fmt::print("\r{:<44} {:>3} %", what_, percent);
        std::fflush(stdout);
    }
    shown_ = percent;
}

void progress_line::finish(const std::string& outcome) {
    fmt::print("{}{:<44} 100 %  {}\n", terminal_ ? "\r" : "", what_, outcome);
    std::fflush(stdout);
}

}  // namespace weir::demo
