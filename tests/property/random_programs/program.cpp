#include "random_programs/program.hpp"

#include <algorithm>
#include <array>

namespace random_programs {

namespace {

constexpr std::array<std::string_view, step_kinds> names{"make_stream",
                                                         "drop_stream",
                                                         "allocate",
                                                         "alias",
                                                         "drop_array",
                                                         "operate",
                                                         "copy",
                                                         "fill",
                                                         "copy_from_host",
                                                         "read_host",
                                                         "write_host",
                                                         "open_view",
                                                         "touch_view",
                                                         "close_view",
                                                         "record",
                                                         "wait_event",
                                                         "wait_stream",
                                                         "wait_operation",
                                                         "synchronize_stream",
                                                         "synchronize_event",
                                                         "synchronize_operation",
                                                         "synchronize_device",
                                                         "query",
                                                         "keep_alive",
                                                         "order_array",
                                                         "order_stream",
                                                         "order_scope",
                                                         "order_process",
                                                         "hold",
                                                         "open",
                                                         "push_current",
                                                         "pop_current"};

std::string text_of(const range& one) {
    return "a" + std::to_string(one.slot) + "[" + std::to_string(one.first) + ":" + std::to_string(one.last) + "]";
}

std::string text_of(const step& one) {
    std::string text = "#" + std::to_string(one.number) + " " + std::string(name_of(one.kind));
    const auto add = [&](const char* name, int value) {
        if (value != none) {
            text += std::string(" ") + name + std::to_string(value);
        }
    };
    add("s", one.stream);
    add("other=", one.other);
    add("a", one.array);
    if (one.size != 0) {
        text += " size=" + std::to_string(one.size);
    }
    for (const range& read : one.reads) {
        text += " in(" + text_of(read) + ")";
    }
    for (const range& write : one.writes) {
        text += " inout(" + text_of(write) + ")";
    }
    for (const int after : one.after) {
        text += " after(#" + std::to_string(after) + ")";
    }
    if (one.kind == step_kind::operate && one.how != form::parallel_for) {
        text += one.how == form::access ? " by access" : " by host_task";
    }
    if (one.adds) {
        text += " adds";
    }
    if (one.fails) {
        text += " and fails";
    }
    if (one.device != 0) {
        text += " on device " + std::to_string(one.device);
    }
    if (one.mode) {
        text += *one.mode == weir::ordering_mode::manual ? " manual" : " automatic";
    }
    return text + (one.current ? " (current stream)" : "");
}

}  // namespace

std::string_view name_of(step_kind kind) noexcept { return names[static_cast<std::size_t>(kind)]; }

std::size_t program::threads() const noexcept {
    std::size_t most = 1;
    for (const auto& phase : phases) {
        most = std::max(most, phase.size());
    }
    return most;
}

std::size_t program::steps() const noexcept {
    std::size_t count = 0;
    for (const auto& phase : phases) {
        for (const auto& thread : phase) {
            count += thread.size();
        }
    }
    return count;
}

std::string to_string(const program& of) {
    std::string text = "program of seed " + std::to_string(of.seed) +
                       (of.tight ? ", memory for " + std::to_string(*of.tight) + " arrays" : "") +
                       (of.devices > 1 ? ", " + std::to_string(of.devices) + " devices" : "") + "\n";
    for (std::size_t phase = 0; phase < of.phases.size(); ++phase) {
        for (std::size_t thread = 0; thread < of.phases[phase].size(); ++thread) {
            if (of.phases[phase][thread].empty()) {
                continue;
            }
            text += "phase " + std::to_string(phase) + ", thread " + std::to_string(thread) + ":\n";
            for (const step& one : of.phases[phase][thread]) {
                text += "    " + text_of(one) + "\n";
            }
        }
    }
    return text;
}

}  // namespace random_programs
