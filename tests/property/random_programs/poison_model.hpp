#pragma once

#include <map>
#include <vector>

#include "random_programs/program.hpp"

namespace random_programs {

/// Which operations of a program do not do their work, because they fail or use what a failed one was to
/// write, and which elements hold nothing valid (rule K4). Steps are added in the order in which they take effect.
class poison_model {
public:
    /// Adds a step. Returns the failing step that keeps it from its work, or the host from what it asks for; `none` if nothing
    /// does.
    int add(const step& one);

    /// By steps, operations only: the failing step, perhaps itself, because of which it did not do its work.
    [[nodiscard]] const std::map<int, int>& failed() const noexcept { return failed_; }
    /// The failing step because of which the first invalid element is invalid; `none` if all are valid.
    [[nodiscard]] int reason_in(const touch& part) const;
    /// The same for each element.
    [[nodiscard]] std::vector<int> reasons_in(const touch& part) const;
    /// How often invalid elements got new valid values.
    [[nodiscard]] int healings() const noexcept { return healings_; }

private:
    void set(const touch& part, int reason);

    std::map<int, std::vector<int>> memories_;  ///< by memory: for each element why it is not valid
    std::map<int, int> failed_;
    int healings_ = 0;
};

}  // namespace random_programs
