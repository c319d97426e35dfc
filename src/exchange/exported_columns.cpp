#include "exchange/exported_columns.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "weir/detail/mutex.hpp"

namespace weir::exchange {

namespace {

/// Whether both devices have the same memory: the CPU with and without queues.
bool share_memory(const device& a, const device& b) {
    const auto is_host = [](const device& one) {
        return one.kind() == device_kind::cpu || one.kind() == device_kind::cpu_inline;
    };
    return a == b || (is_host(a) && is_host(b));
}

/// Buffers by their address on the device. Several may have the same address: two wraps of the same memory, memory of different devices, and
/// one buffer that went out as memory of different devices.
struct held_buffers {
    struct held {
        buffer memory;
        device on;  ///< as whose memory it went out
        std::size_t times = 0;
    };
    detail::mutex mutex;
    std::multimap<std::uintptr_t, held> all;

    [[nodiscard]] std::multimap<std::uintptr_t, held>::iterator find(std::uintptr_t at, std::uint64_t id,
                                                                     const device& on) {
        const auto [first, last] = all.equal_range(at);
        const auto one = std::find_if(first, last, [&](const auto& each) {
            return each.second.memory.unique_id() == id && each.second.on == on;
        });
        return one == last ? all.end() : one;
    }
};

held_buffers& held() {
    static auto* const one = new held_buffers;  // NOLINT(cppcoreguidelines-owning-memory): never destroyed
    return *one;
}

// Constructed at start, so that no fork finds it half constructed.
[[maybe_unused]] const auto& held_made_at_start = held();

}  // namespace

exported_column_memory::exported_column_memory(const array& x)
    : at_(reinterpret_cast<std::uintptr_t>(x.buffer().device_data())), id_(x.buffer().unique_id()), on_(x.device()) {
    if (at_ == 0) {
        return;
    }
    const std::lock_guard lock(held().mutex);
    auto one = held().find(at_, id_, on_);
    if (one == held().all.end()) {
        one = held().all.emplace(at_, held_buffers::held{x.buffer(), on_, 0});
    }
    ++one->second.times;
}

exported_column_memory::~exported_column_memory() {
    if (at_ == 0) {
        return;
    }
    buffer last;  // dropped under no lock
    const std::lock_guard lock(held().mutex);
    const auto one = held().find(at_, id_, on_);
    if (--one->second.times == 0) {
        last = std::move(one->second.memory);
        held().all.erase(one);
    }
}

buffer exported_column_memory::found_at(const device& on, const std::byte* first, std::size_t bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(first);
    const std::lock_guard lock(held().mutex);
    // A buffer that begins further down may be the one that reaches far enough.
    for (auto one = held().all.upper_bound(at); one != held().all.begin();) {
        --one;
        const buffer& memory = one->second.memory;
        const std::size_t offset = at - one->first;
        if (share_memory(one->second.on, on) && offset <= memory.bytes() && bytes <= memory.bytes() - offset) {
            return memory;
        }
    }
    return {};
}

}  // namespace weir::exchange
