#include "backend/sim/driver.hpp"

#include <cstring>
#include <utility>

#include "backend/forwarding_queue.hpp"
#include "backend/plain_host_memory.hpp"
#include "backend/sim/memory.hpp"
#include "backend/sim/queue.hpp"
#include "weir/error.hpp"

namespace weir::backend::sim {

std::unique_ptr<memory_source> simulated_shared_memory::make_managed(memory_source& host) {
    return std::make_unique<plain_host_memory>(std::string(of_->name()) + " (managed)", host, false);
}

std::unique_ptr<memory_source> simulated_shared_memory::make_pinned(memory_source& host) {
    return std::make_unique<plain_host_memory>(std::string(host.name()) + " (pinned)", host, true);
}

sim_driver::sim_driver(std::string name) : name_(std::move(name)), memory_(testing::sim_settings().memory) {
    set({.shared_memory = &shared_memory_});
}

std::unique_ptr<queue> sim_driver::make_queue(timeline& line, queue_events& events, const queue_options& /*how*/) {
    engines_.start_threads(engines_.settings());
    return std::make_unique<forwarding_queue>(*this, std::make_unique<sim_queue>(engines_, line, events), line, events);
}

std::uint64_t sim_driver::identify(void* /*handle*/) const {
    throw argument_error(name_ +
                         " is simulated, and has no queues that are known by a handle, as CUstreams are: adopt a "
                         "weir::native_queue instead");
}

bool sim_driver::can_wait_for(const driver* whose) const noexcept {
    return whose == nullptr || dynamic_cast<const sim_driver*>(whose) != nullptr;
}

memory_chunk sim_driver::allocate(std::size_t bytes) noexcept {
    // Adds first and checks then, so that two threads cannot both get the last chunk.
    if (used_.fetch_add(bytes) + bytes <= memory_) {
        if (const memory_chunk chunk = map_twice(bytes); chunk.address != nullptr) {
            return chunk;
        }
    }
    used_ -= bytes;
    return {};
}

void sim_driver::deallocate(memory_chunk memory, std::size_t bytes) noexcept {
    unmap(memory, bytes);
    used_ -= bytes;
}

void sim_driver::fetch(std::byte* host, const std::byte* device, std::size_t bytes) {
    std::memcpy(host, device, bytes);
}

void sim_driver::store(std::byte* device, const std::byte* host, std::size_t bytes) {
    std::memcpy(device, host, bytes);
}

testing::sim_settings sim_driver::settings() const {
    testing::sim_settings settings = engines_.settings();
    settings.memory = memory_;
    return settings;
}

void sim_driver::configure(const testing::sim_settings& settings) {
    constexpr int most_engines = 1024;
    for (const int count : {settings.engines, settings.copy_engines}) {
        if (count < 1 || count > most_engines) {
            throw argument_error(std::to_string(count) + " engines for " + name_ + ": it has 1 to " +
                                 std::to_string(most_engines) + " of each kind");
        }
    }
    testing::sim_settings wanted = settings;
    engines_.start_threads(wanted);
    restore(std::move(wanted));
}

void sim_driver::restore(testing::sim_settings settings) noexcept {
    memory_ = settings.memory;
    engines_.configure(std::move(settings));
}

}  // namespace weir::backend::sim
