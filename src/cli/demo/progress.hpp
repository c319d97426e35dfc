#pragma once

#include <string>

namespace weir::demo {

/// One line of the output that tells how far something is: rewritten in place on a terminal, else printed once when it
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
    int shown_ = -1;  ///< the percentage that stands there
    bool terminal_;
};

}  // namespace weir::demo
