#include "random_programs/census.hpp"

#include <algorithm>

#include "random_programs/order_model.hpp"

namespace random_programs {

namespace {

/// The order that the program asks for itself.
order_model own_order(const program& completed) {
    order_model model({.automatic = false, .reuse = false});
    for (const auto& phase : completed.phases) {
        for (std::size_t thread = 0; thread < phase.size(); ++thread) {
            for (const step& one : phase[thread]) {
                model.add(one, thread);
            }
        }
        model.end_phase();
    }
    return model;
}

using flags = std::array<bool, hazards>;

flags hazards_of(const order_model& model) {
    flags found{};
    for (const unordered_pair& pair : unordered_pairs(model)) {
        const order_model::node& first = *model.find(pair.first);
        const order_model::node& second = *model.find(pair.second);
        for (const touch& before : first.touches) {
            for (const touch& after : second.touches) {
                if (!before.conflicts_with(after)) {
                    continue;
                }
                const hazard kind = second.stream == none ? hazard::host
                                    : !after.write        ? hazard::read_after_write
                                    : !before.write       ? hazard::write_after_read
                                                          : hazard::write_after_write;
                found[static_cast<std::size_t>(kind)] = true;
            }
        }
    }
    return found;
}

}  // namespace

const char* name_of(hazard kind) noexcept {
    constexpr std::array names{"read after write", "write after read", "write after write", "host", "reuse"};
    return names[static_cast<std::size_t>(kind)];
}

const char* name_of(shape kind) noexcept {
    constexpr std::array names{"one thread", "threads with slices", "threads that hand over",
                               "threads that accumulate"};
    return names[static_cast<std::size_t>(kind)];
}

bool leaves_streams_unordered(const program& completed) {
    const flags found = hazards_of(own_order(completed));
    return found[0] || found[1] || found[2];
}

void census::count(const program& completed, int reuses) {
    ++programs_;
    steps_ += completed.steps();
    ++shapes_[static_cast<std::size_t>(shape_of(completed.seed))];
    flags found = hazards_of(own_order(completed));
    crossed_ += found[0] || found[1] || found[2] ? 1 : 0;
    found[static_cast<std::size_t>(hazard::reuse)] = reuses > 0;
    for (std::size_t kind = 0; kind < hazards_.size(); ++kind) {
        hazards_[kind] += found[kind] ? 1 : 0;
    }
    std::array<bool, step_kinds> kinds{};
    for (const auto& phase : completed.phases) {
        for (const auto& thread : phase) {
            for (const step& one : thread) {
                kinds[static_cast<std::size_t>(one.kind)] = true;
            }
        }
    }
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
        kinds_[kind] += kinds[kind] ? 1 : 0;
    }
}

std::string census::to_string() const {
    std::string text = std::to_string(programs_) + " programs, " + std::to_string(steps_) + " steps; " +
                       std::to_string(crossed_) + " with a hazard between streams\n  hazards:";
    for (int kind = 0; kind < hazards; ++kind) {
        text += std::string(" ") + name_of(static_cast<hazard>(kind)) + " " +
                std::to_string(with(static_cast<hazard>(kind)));
    }
    text += "\n  threads:";
    for (int kind = 0; kind < shapes; ++kind) {
        text +=
            std::string(" ") + name_of(static_cast<shape>(kind)) + " " + std::to_string(with(static_cast<shape>(kind)));
    }
    text += "\n  steps:";
    for (std::size_t kind = 0; kind < step_kinds; ++kind) {
        text += " " + std::string(name_of(static_cast<step_kind>(kind))) + " " + std::to_string(kinds_[kind]);
    }
    return text + "\n";
}

}  // namespace random_programs
