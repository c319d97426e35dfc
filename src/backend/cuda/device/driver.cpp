#include "backend/cuda/device/driver.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "backend/cuda/memory/transfer.hpp"
#include "backend/cuda/streams/queue.hpp"
#include "backend/cuda/streams/submission_queues.hpp"
#include "backend/cuda/streams/watcher.hpp"
#include "backend/spin.hpp"
#include "weir/detail/interruption.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/error.hpp"

namespace weir::backend::cuda {

namespace {

/// How long a waiting thread itself looks for completion before it sleeps and leaves that to the watcher. About as long as the
/// driver's own waits spin: a sleep and a wake cost tens of microseconds.
constexpr std::chrono::milliseconds looks_itself{20};
/// After this number of looks it yields the processor before each further one: another thread may need the processor for the awaited
/// work. To sleep instead would end the wait a tenth of a millisecond later.
constexpr int looks_at_full_speed = 256;

std::size_t memory_of(const context& device) {
    std::size_t bytes = 0;
    device.expect(device.api().device_total_memory(&bytes, device.device()), "cuDeviceTotalMem");
    return bytes;
}

/// Whether the driver may read there. It does not check handles before it uses them as addresses: of a small or a negative number, passed
/// by mistake, the process would end.
bool can_be_object(const void* handle) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(handle);
    return address >= 4096 && address >> 56U == 0;
}

}  // namespace

cuda_driver::cuda_driver(const driver_api& api, int id)
    : name_("cuda:" + std::to_string(id)),
      context_(api, id),
      chunks_(context_),
      async_(context_),
      kernels_(context_),
      copies_(context_),
      libraries_(context_),
      shared_memory_(context_, *this),
      total_memory_(memory_of(context_)),
      end_(context_, *this) {
    set({&kernels_, &copies_, &libraries_, &shared_memory_, async_.is_there() ? &async_ : nullptr});
    watcher::instance();
}

std::unique_ptr<queue> cuda_driver::make_queue(timeline& line, queue_events& events, const queue_options& how) {
    int least = 0;
    int greatest = 0;
    {
        const in_context here(context_);
        context_.expect(context_.api().context_priority_range(&least, &greatest), "cuCtxGetStreamPriorityRange");
    }
    const int known = std::clamp(how.priority, greatest, least);  // smaller is more urgent
    return std::make_unique<cuda_queue>(std::make_shared<submission_queue>(
        context_, line, events, known, how.blocking ? stream_default : stream_non_blocking, bodies_.load()));
}

std::unique_ptr<queue> cuda_driver::adopt_queue(void* handle, timeline& line, queue_events& events) {
    return std::make_unique<cuda_queue>(
        std::make_shared<submission_queue>(context_, line, events, static_cast<stream_handle>(handle), bodies_.load()));
}

std::optional<int> cuda_driver::device_of(const void* address) const noexcept {
    int ordinal = 0;
    const bool is_known = context_.api().pointer_get_attribute(&ordinal, pointer_attribute::device_ordinal,
                                                               address_of(address)) == success;
    return is_known ? std::optional(ordinal) : std::nullopt;
}

std::uint64_t cuda_driver::identify(void* handle) const {
    auto* const stream = static_cast<stream_handle>(handle);
    const driver_api& api = context_.api();
    const in_relaxed_context here(context_);
    const bool has_context = stream != nullptr && stream != legacy_stream() && stream != per_thread_stream();
    if (has_context && !can_be_object(handle)) {
        throw argument_error("there is no stream of " + name_ + " with the handle " +
                             std::to_string(reinterpret_cast<std::uintptr_t>(handle)) +
                             ": a CUstream is an address, and this number is none");
    }
    context_handle theirs = nullptr;
    if (const result answer = has_context ? api.stream_context(stream, &theirs) : success; answer != success) {
        context_.note_error(answer);
        context_.expect_sound();
        if (answer == error_capture_invalidated) {
            expect_no_capture(context_, stream);
        }
        throw argument_error(
            "there is no stream of " + name_ + " with the handle " +
            std::to_string(reinterpret_cast<std::uintptr_t>(handle)) +
            ": it is no CUstream, or it was destroyed (cuStreamGetCtx failed: " + describe(api, answer) + ")");
    }
    if (has_context && theirs != context_.handle()) {
        throw argument_error("the stream is not one of the primary context of " + name_ +
                             ": adopt it for the device on which it was made; other contexts are not supported");
    }
    // The driver ends a capture if its stream is asked for its number.
    expect_no_capture(context_, stream);
    if (api.stream_id == nullptr) {
        return reinterpret_cast<std::uintptr_t>(handle);  // before driver 12.0 there is no unique number
    }
    unsigned long long id = 0;
    context_.expect(api.stream_id(stream, &id), "cuStreamGetId");
    return id;
}

memory_chunk cuda_driver::allocate(std::size_t bytes) noexcept {
    const in_relaxed_context here(context_);
    if (bodies_.load() != nullptr) {
        void* pinned = nullptr;
        context_.note_error(context_.api().host_alloc(&pinned, bytes, host_alloc_portable | host_alloc_mapped));
        return {static_cast<std::byte*>(pinned), 0};
    }
    device_pointer made = 0;
    context_.note_error(here.entered() == success ? chunks_.allocate(made, bytes) : here.entered());
    return {reinterpret_cast<std::byte*>(made), 0};
}

void cuda_driver::deallocate(memory_chunk memory, std::size_t bytes) noexcept {
    const in_relaxed_context here(context_);
    if (bodies_.load() != nullptr) {
        context_.api().host_free(memory.address);
        return;
    }
    chunks_.deallocate(address_of(memory.address), bytes);
}

std::string cuda_driver::about_shortage() const {
    std::size_t free = 0;
    std::size_t total = 0;
    const in_relaxed_context here(context_);
    const result answer = context_.api().memory_info(&free, &total);
    context_.note_error(answer);
    if (answer != success) {
        return {};
    }
    return async_.about_use() + "The driver has " + std::to_string(free) + " of " + std::to_string(total) +
           " bytes left: other programs, and other libraries of this one, may hold memory that they do not use (torch: "
           "torch.cuda.empty_cache(), CuPy: cupy.get_default_memory_pool().free_all_blocks()).";
}

void cuda_driver::run_host_code() {
    if (bodies_.load() == nullptr) {
        bodies_.store(new host_bodies(context_));  // NOLINT(cppcoreguidelines-owning-memory): never destroyed
    }
}

void cuda_driver::fetch(std::byte* host, const std::byte* device, std::size_t bytes) {
    transfer::to_host(context_, host, device, bytes);
}

void cuda_driver::store(std::byte* device, const std::byte* host, std::size_t bytes) {
    transfer::to_device(context_, device, host, bytes);
}

std::chrono::steady_clock::time_point cuda_driver::now() const noexcept {
    const auto* const moment = driver_stream::moment();
    return moment != nullptr ? *moment : std::chrono::steady_clock::now();
}

/// Takes no reference to the driver stream: to release the last one calls the driver, and the caller may hold the pool's lock.
bool cuda_driver::has_own_end(point end) const noexcept {
    submission_queues::place* const here = submission_queues::find_place(end.timeline);
    if (here == nullptr) {
        return true;
    }
    const std::lock_guard lock(here->mutex);
    return !here->on || here->on->has_own_end(end.at);
}

void cuda_driver::look(point wanted) const noexcept {
    if (const auto of = submission_queues::find(wanted.timeline)) {
        of->of()->look_for(wanted.at);
    } else if (wanted.timeline == end_.number()) {
        end_.look();
    }
}

void cuda_driver::look_at_all() const noexcept {
    submission_queues::look_at_all(context_);
    end_.look();
}

bool cuda_driver::await(point wanted) const noexcept {
    const auto of = submission_queues::find(wanted.timeline);
    if (!of) {
        return timeline_table::instance().is_complete(wanted);
    }
    const detail::owner<driver_stream> theirs = of->of();
    of->flush(wanted);
    const watcher::leave here;
    const auto end = std::chrono::steady_clock::now() + looks_itself;
    for (int looks = 0; theirs->submitted() >= wanted.at; ++looks) {
        theirs->look_for(wanted.at);
        if (theirs->line().completed() >= wanted.at) {
            return true;
        }
        if (looks % 16 == 15 && std::chrono::steady_clock::now() >= end) {
            return false;
        }
        if (looks < looks_at_full_speed - 1) {
            relax();
        } else {
            std::this_thread::yield();
        }
    }
    return theirs->line().completed() >= wanted.at;
}

void cuda_driver::hurry(point wanted) const noexcept {
    if (const auto of = submission_queues::find(wanted.timeline)) {
        of->of()->prepare(wanted.at);
        watcher::instance().hurry(*of->of(), wanted.at);
    } else if (wanted.timeline == end_.number()) {
        watcher::instance().hurry(end_);
    }
}

std::shared_ptr<void> cuda_driver::native_event(point wanted) const {
    const in_relaxed_context here(context_);
    event_ref event;
    if (const auto of = submission_queues::find(wanted.timeline);
        of && !timeline_table::instance().is_complete(wanted)) {
        if (!of->await_passed_on(wanted)) {
            if (const auto* const answers = detail::interruptible::current(); answers != nullptr) {
                answers->expect_not_ended();
            }
            throw state_error(
                "the driver has no event yet for work that waits for another device, and a host task does not wait for "
                "that: ask for the handle outside of the task");
        }
        event = of->of()->event_for(wanted.at);
    }
    if (!event) {
        // `wanted` is complete: any event that is complete at once will do.
        event = context_.events.take();
        context_.expect(context_.api().event_record(event.handle(), context_.own_stream()), "cuEventRecord");
    }
    const auto held = std::make_shared<event_ref>(std::move(event));
    return {held, held->handle()};
}

void cuda_driver::wait_for_event(void* event, void* queue) const {
    const in_relaxed_context here(context_);
    context_.expect(
        context_.api().stream_wait_event(static_cast<stream_handle>(queue), static_cast<event_handle>(event), 0),
        "cuStreamWaitEvent");
}

device_context& context_of(driver& of) noexcept { return static_cast<cuda_driver&>(of).in(); }

}  // namespace weir::backend::cuda
