#include "weir/memory.hpp"

#include <utility>

#include "memory/device_memory.hpp"

namespace weir::memory {

statistics stats(device of) { return pool_of(of.state()).stats(); }

void limit(device of, std::size_t bytes) { pool_of(of.state()).set_limit(bytes); }

void trim(device of) { pool_of(of.state()).trim(); }

bool& frees_on_allocating_stream() noexcept {
    thread_local bool active = false;
    return active;
}

allocating_stream::allocating_stream() noexcept : previous_(std::exchange(frees_on_allocating_stream(), true)) {}

allocating_stream::~allocating_stream() { frees_on_allocating_stream() = previous_; }

}  // namespace weir::memory
