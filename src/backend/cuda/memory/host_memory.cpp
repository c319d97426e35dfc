#include "backend/cuda/memory/host_memory.hpp"

#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "backend/task_threads.hpp"
#include "backend/waiting_host.hpp"

namespace weir::backend::cuda {

namespace {

result free_pinned(const driver_api& api, std::byte* memory) noexcept { return api.host_free(memory); }
result free_managed(const driver_api& api, std::byte* memory) noexcept {
    return api.memory_free(reinterpret_cast<device_pointer>(memory));
}

}  // namespace

/// Memory that is being given back to the driver. Owns itself.
class host_memory::returned final : blocking_work {
public:
    static void start(std::unique_ptr<returned> one) noexcept {
        task_threads::instance().schedule_surely(*one.release());
    }
    returned(host_memory& from, std::byte* memory) noexcept : from_(&from), memory_(memory) {}
    ~returned() = default;
    returned(const returned&) = delete;
    returned& operator=(const returned&) = delete;

private:
    void run_blocking() noexcept override {
        const std::unique_ptr<returned> self(this);
        from_->free_now(memory_);
        const std::lock_guard lock(from_->mutex_);
        --from_->on_their_way_;
        from_->is_back_.notify_all();
    }

    host_memory* from_;
    std::byte* memory_;
};

host_memory::host_memory(device_context& in, std::string name, free_function free)
    : in_(&in), name_(std::move(name)), free_(free) {
    task_threads::instance().keep_one();
}

void host_memory::deallocate(memory_chunk memory, std::size_t /*bytes*/) noexcept {
    if (auto* const one = new (std::nothrow) returned(*this, memory.address)) {
        {
            const std::lock_guard lock(mutex_);
            ++on_their_way_;
        }
        returned::start(std::unique_ptr<returned>(one));
        return;
    }
    free_now(memory.address);  // there is no memory for that: gives it back in this call
}

void host_memory::free_now(std::byte* memory) const noexcept {
    const in_relaxed_context here(*in_);
    free_(in_->api(), memory);
}

void host_memory::await_given_back() noexcept {
    const waiting_host self_waits;
    std::unique_lock lock(mutex_);
    is_back_.wait(lock, [this] { return on_their_way_ == 0; });
}

pinned_memory::pinned_memory(device_context& in, const memory_source& host)
    : host_memory(in, std::string(host.name()) + " (pinned)", &free_pinned), host_(&host) {}

memory_chunk pinned_memory::allocate(std::size_t bytes) noexcept {
    const in_relaxed_context here(in());
    void* made = nullptr;
    in().note_error(in().api().host_alloc(&made, bytes, host_alloc_portable | host_alloc_mapped));
    return {static_cast<std::byte*>(made), 0};
}

managed_memory::managed_memory(device_context& in, std::string_view device)
    : host_memory(in, std::string(device) + " (managed)", &free_managed) {}

memory_chunk managed_memory::allocate(std::size_t bytes) noexcept {
    const in_relaxed_context here(in());
    device_pointer made = 0;
    in().note_error(in().api().memory_alloc_managed(&made, bytes, memory_attach_global));
    return {reinterpret_cast<std::byte*>(made), 0};
}

bool managed_memory::needs_idle_device() const noexcept {
    return in().attribute_or_zero(device_attribute::concurrent_managed_access) == 0;
}

void managed_memory::await_idle_device() {
    const in_relaxed_context here(in());
    in().expect(in().api().context_synchronize(), "cuCtxSynchronize");
}

std::unique_ptr<memory_source> device_shared_memory::make_managed(memory_source& /*host*/) {
    return std::make_unique<managed_memory>(*in_, of_->name());
}

std::unique_ptr<memory_source> device_shared_memory::make_pinned(memory_source& host) {
    return std::make_unique<pinned_memory>(*in_, host);
}

}  // namespace weir::backend::cuda
