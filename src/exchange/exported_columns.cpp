#include "exchange/exported_columns.hpp"

#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "weir/detail/mutex.hpp"

namespace weir::exchange {

namespace {

/// Buffers by their address on the device.
struct held_buffers {
    struct held {
        buffer memory;
        std::size_t times = 0;
    };
    detail::mutex mutex;
    std::map<std::uintptr_t, held> all;
};

held_buffers& held() {
    static auto* const one = new held_buffers;  // NOLINT(cppcoreguidelines-owning-memory): never destroyed
    return *one;
}

// Constructed at start, so that no fork finds it half constructed.
[[maybe_unused]] const auto& held_made_at_start = held();

}  // namespace

exported_column_memory::exported_column_memory(const array& x)
    : at_(reinterpret_cast<std::uintptr_t>(x.buffer().device_data())) {
    if (at_ == 0) {
        return;
    }
    const std::lock_guard lock(held().mutex);
    held_buffers::held& one = held().all[at_];
    one.memory = x.buffer();
    ++one.times;
}

exported_column_memory::~exported_column_memory() {
    if (at_ == 0) {
        return;
    }
    buffer last;  // dropped under no lock
    const std::lock_guard lock(held().mutex);
    const auto one = held().all.find(at_);
    if (--one->second.times == 0) {
        last = std::move(one->second.memory);
        held().all.erase(one);
    }
}

buffer exported_column_memory::found_at(const std::byte* first, std::size_t bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(first);
    const std::lock_guard lock(held().mutex);
    const auto behind = held().all.upper_bound(at);
    if (behind == held().all.begin()) {
        return {};
    }
    const auto& [begin, one] = *std::prev(behind);
    const std::size_t offset = at - begin;
    return offset <= one.memory.bytes() && bytes <= one.memory.bytes() - offset ? one.memory : buffer();
}

}  // namespace weir::exchange
