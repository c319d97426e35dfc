#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "check/detector.hpp"
#include "observer_script.hpp"

namespace weir::check {

/// A detector, and a made-up program with three streams that is reported to it.
class Detector : public ::testing::Test {
public:
    /// `first`: as of observer_script.
    explicit Detector(frontiers::timeline_id first = 0) : program_(detector_, first) {}

protected:
    /// The races found, as "RAW 1->2" with the lines of the two accesses.
    [[nodiscard]] std::vector<std::string> found() const {
        std::vector<std::string> all;
        for (const race& one : detector_.report()) {
            all.push_back(one.kind + " " + std::to_string(one.first.line) + "->" + std::to_string(one.second.line));
        }
        return all;
    }

    detector detector_{{}};
    testing::observer_script program_;
    testing::observer_script::stream& a_ = program_.make_stream("a");
    testing::observer_script::stream& b_ = program_.make_stream("b");
    testing::observer_script::stream& c_ = program_.make_stream("c");
};

}  // namespace weir::check
