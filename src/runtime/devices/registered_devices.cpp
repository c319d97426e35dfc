#include "runtime/devices/registered_devices.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>

#include "backend/fork_part.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

namespace weir::runtime {

namespace {

struct known_kind {
    registered_kind what;
    int first_id = 0;                 ///< number of its first device among all registered ones
    std::vector<device_state*> made;  ///< by their numbers; null: not made yet
};

struct registry {
    detail::mutex mutex;  ///< guards what follows; held while a driver is made
    std::deque<known_kind> kinds;
    int devices = 0;
};

registry& all_kinds() {
    static auto* const one = new registry;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

/// Registered devices stay with the parent of a fork, like all devices except the CPU.
class registered_part final : public backend::fork_part {
    void begin_child() noexcept override {
        for (const known_kind& each : all_kinds().kinds) {
            for (device_state* const one : each.made) {
                if (one != nullptr) {
                    one->begin_child();
                }
            }
        }
    }
};
registered_part registered_at_fork;

// At static initialization, so that no fork finds it half constructed.
[[maybe_unused]] const registry& registry_at_start = all_kinds();

}  // namespace

void register_kind(registered_kind what) {
    constexpr std::array own = {"cpu", "cuda", "sim"};
    registry& in = all_kinds();
    const std::lock_guard lock(in.mutex);
    const auto is_taken = [&](const known_kind& one) { return one.what.name == what.name; };
    if (std::find(own.begin(), own.end(), what.name) != own.end() ||
        std::any_of(in.kinds.begin(), in.kinds.end(), is_taken)) {
        throw argument_error("there are devices \"" + what.name + "\" already: register them under another name");
    }
    known_kind added{std::move(what), in.devices, {}};
    added.made.resize(static_cast<std::size_t>(added.what.count));
    in.devices += added.what.count;
    in.kinds.push_back(std::move(added));
}

device_state* find_registered(std::string_view name) {
    registry& in = all_kinds();
    const std::lock_guard lock(in.mutex);
    for (known_kind& each : in.kinds) {
        for (std::size_t number = 0; number < each.made.size(); ++number) {
            if (name != each.what.name + ":" + std::to_string(number)) {
                continue;
            }
            device_state*& one = each.made[number];
            if (one == nullptr) {
                const auto id = static_cast<int>(number);
                one = new device_state(device_kind::registered, each.first_id + id, each.what.make(id));
            }
            return one;
        }
    }
    return nullptr;
}

std::vector<device_state*> registered_devices() {
    registry& in = all_kinds();
    const std::lock_guard lock(in.mutex);
    std::vector<device_state*> found;
    for (const known_kind& each : in.kinds) {
        std::copy_if(each.made.begin(), each.made.end(), std::back_inserter(found),
                     [](const device_state* one) { return one != nullptr; });
    }
    return found;
}

}  // namespace weir::runtime
