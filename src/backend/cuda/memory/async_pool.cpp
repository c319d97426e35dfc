#include "backend/cuda/memory/async_pool.hpp"

#include <memory>

#include "backend/cuda/streams/queue.hpp"
#include "backend/cuda/streams/submission_queues.hpp"
#include "weir/detail/intrusive.hpp"

namespace weir::backend::cuda {

async_pool::async_pool(device_context& of) noexcept
    : of_(&of), is_there_(of.attribute_or_zero(device_attribute::memory_pools_supported) != 0) {}

std::byte* async_pool::allocate(std::size_t bytes, detail::queue_handle in) {
    auto* const stream = static_cast<stream_handle>(in.value);
    const in_relaxed_context here(*of_);
    expect_no_capture(*of_, stream);  // otherwise the memory would belong to the graph
    of_->expect_sound();
    device_pointer made = 0;
    const result answer = of_->api().memory_alloc_async(&made, bytes, stream);
    if (answer == error_out_of_memory) {
        return nullptr;
    }
    of_->note_error(answer);
    of_->expect_sound();
    of_->expect(answer, "cuMemAllocAsync");
    used_.store(true, std::memory_order_relaxed);
    return reinterpret_cast<std::byte*>(made);
}

void async_pool::give_back(std::byte* memory) noexcept {
    const in_relaxed_context here(*of_);
    of_->note_error(of_->api().memory_free_async(address_of(memory), of_->own_stream()));
}

bool async_pool::give_back_behind(point last, std::byte* memory) noexcept {
    const std::shared_ptr<submission_queue> theirs = submission_queues::find(last.timeline);
    if (!theirs || theirs->is_shared() || &theirs->of()->in() != of_ || theirs->of()->submitted() < last.at ||
        !theirs->of()->surely_has_room()) {
        return false;
    }
    const in_relaxed_context here(*of_);
    return of_->api().memory_free_async(address_of(memory), theirs->of()->stream()) == success;
}

std::uint64_t async_pool::ask(pool_handle pool, pool_attribute what) const noexcept {
    std::uint64_t bytes = 0;
    return of_->api().pool_get_attribute(pool, what, &bytes) == success ? bytes : 0;
}

std::string async_pool::about_use() const {
    pool_handle pool = nullptr;
    if (!used_.load(std::memory_order_relaxed) || of_->api().device_default_pool(&pool, of_->device()) != success) {
        return {};
    }
    return "The driver's pool holds " + std::to_string(ask(pool, pool_attribute::reserved_now)) + " bytes, of which " +
           std::to_string(ask(pool, pool_attribute::used_now)) + " are in use. ";
}

void async_pool::trim() noexcept {
    if (!used_.load(std::memory_order_relaxed)) {
        return;  // whatever the pool holds belongs to other libraries
    }
    const in_relaxed_context here(*of_);
    pool_handle pool = nullptr;
    if (of_->api().device_default_pool(&pool, of_->device()) == success) {
        of_->api().pool_trim(pool, 0);
    }
}

}  // namespace weir::backend::cuda
