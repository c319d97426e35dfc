#include "random_programs/census.hpp"

#include <algorithm>

#include "random_programs/order_model.hpp"

namespace random_programs {

namespace {

/// The order that the program itself asks for.
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

flags hazards_of(const order_model& model, const std::vector<unordered_pair>& pairs) {
    flags found{};
    for (const unordered_pair& pair : pairs) {
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

bool crosses_devices(const order_model& model, const std::vector<unordered_pair>& pairs) {
    return std::any_of(pairs.begin(), pairs.end(), [&](const unordered_pair& pair) {
        const int second = model.find(pair.second)->device;
        return second != none && model.find(pair.first)->device != second;
    });
}

/// All features but the hazards.
std::array<bool, features> features_of(const program& completed, const expectation& wanted) {
    std::array<bool, features> has{};
    const auto set = [&](feature kind, bool value) { has[static_cast<std::size_t>(kind)] |= value; };
    for (const auto& phase : completed.phases) {
        for (const auto& thread : phase) {
            for (const step& one : thread) {
                const auto failed = wanted.failed.find(one.number);
                const bool rests = failed != wanted.failed.end();
                set(feature::failing, rests && failed->second == one.number);
                set(feature::resting, rests && is_operation(one.kind) && failed->second != one.number);
                set(feature::refusing, rests && is_host_access(one.kind));
                const auto told = wanted.told.find(one.number);
                set(feature::telling, told != wanted.told.end() && !told->second.due.empty());
                if (one.kind == step_kind::copy && one.touches[0].device != one.touches[1].device) {
                    set(feature::copy_to_host, one.touches[1].device == 0);
                    set(feature::copy_to_accelerator, one.touches[0].device == 0);
                    set(feature::copy_between_accelerators, one.touches[0].device * one.touches[1].device != 0);
                }
            }
        }
    }
    set(feature::healing, wanted.healings > 0);
    return has;
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

const char* name_of(feature kind) noexcept {
    constexpr std::array names{"hazard between devices",
                               "copy to accelerator",
                               "copy to host",
                               "copy between accelerators",
                               "failing",
                               "resting",
                               "refusing",
                               "telling",
                               "healing"};
    return names[static_cast<std::size_t>(kind)];
}

bool leaves_streams_unordered(const program& completed) {
    const order_model own = own_order(completed);
    const flags found = hazards_of(own, unordered_pairs(own));
    return found[0] || found[1] || found[2];
}

void census::count(const program& completed, const expectation& wanted, int reuses) {
    ++programs_;
    steps_ += completed.steps();
    ++shapes_[static_cast<std::size_t>(shape_of(completed.seed))];
    const order_model own = own_order(completed);
    const std::vector<unordered_pair> pairs = unordered_pairs(own);
    flags found = hazards_of(own, pairs);
    std::array<bool, features> has = features_of(completed, wanted);
    has[static_cast<std::size_t>(feature::hazard_between_devices)] = crosses_devices(own, pairs);
    for (std::size_t kind = 0; kind < features_.size(); ++kind) {
        features_[kind] += has[kind] ? 1 : 0;
    }
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

std::string census::rare_features() const {
    std::string names;
    for (int kind = 0; kind < features && programs_ >= 500; ++kind) {
        if (with(static_cast<feature>(kind)) * 100 < programs_) {
            names += std::string(name_of(static_cast<feature>(kind))) + "; ";
        }
    }
    return names;
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
    text += "\n  features:";
    for (int kind = 0; kind < features; ++kind) {
        text += std::string(" ") + name_of(static_cast<feature>(kind)) + " " +
                std::to_string(with(static_cast<feature>(kind)));
    }
    text += "\n  steps:";
    for (std::size_t kind = 0; kind < step_kinds; ++kind) {
        text += " " + std::string(name_of(static_cast<step_kind>(kind))) + " " + std::to_string(kinds_[kind]);
    }
    return text + "\n";
}

}  // namespace random_programs
