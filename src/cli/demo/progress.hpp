#pragma once

#include <string>

namespace weir::demo {

/// One line of output that shows progress: rewritten in place on a terminal, otherwise printed once when it
/// is done.
class progress_line {
public:
    explicit progress_line(std::string what);

    /// `done` from 0 to 1.
    void show(double done);
    /// Ends the line with its outcome.
    void finish(const std::string& outcome);

private:
    std::string what_;
    int shown_ = -1;  ///< the percentage on display
    bool terminal_;
};

}  // namespace weir::demo
