// Shared by all functions of the fake driver: the lock, the devices, injected faults, and the tables of handles.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "cuda.hpp"
#include "stream.hpp"

namespace weir_fake {

/// The object that a handle names. A slot is never given back to the C++ library, so that an invalid handle is
/// detected. A freed slot is the next one taken: handles are recycled at once, as the real driver's are.
template <class Slot>
class slots {
public:
    Slot* take() {
        if (free_.empty()) {
            all_.push_back(std::make_unique<Slot>());
            free_.push_back(all_.back().get());
        }
        Slot* const slot = free_.back();
        free_.pop_back();
        live_.insert(slot);
        return slot;
    }
    void give_back(Slot* slot) {
        live_.erase(slot);
        *slot = Slot{};
        free_.push_back(slot);
    }
    [[nodiscard]] bool contains(Slot* slot) const { return live_.count(slot) != 0; }
    [[nodiscard]] std::size_t live() const { return live_.size(); }

private:
    std::vector<std::unique_ptr<Slot>> all_;
    std::vector<Slot*> free_;
    std::unordered_set<Slot*> live_;
};

struct stream_slot {
    std::shared_ptr<stream> is;
};

struct event_slot {
    context* in = nullptr;
    unsigned flags = 0;
    std::shared_ptr<recording> last;  ///< null: never recorded, or in a capture
    std::shared_ptr<capture> captured;
};

enum class memory_kind { device, managed, pinned };

/// An allocation of the driver's.
struct allocation {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    memory_kind kind = memory_kind::device;
    context* in = nullptr;
    bool from_pool = false;
    bool is_mapped = false;
    std::set<int> reached_by{};  ///< devices that may use the mapped memory
};

/// Memory of cuMemAllocAsync that was freed and is kept for the next allocation. It cannot be touched.
struct pool {
    context* of = nullptr;
    std::uint64_t release_threshold = 0;
    std::uint64_t used = 0;
    std::uint64_t reserved = 0;
    std::deque<allocation> kept;
};

/// Memory of cuMemCreate.
struct created_memory {
    context* in = nullptr;
    std::size_t bytes = 0;
    int references = 0;  ///< the handle, and mappings
};

/// The primary context of a device.
struct context {
    int device = 0;
    int references = 0;
    std::shared_ptr<stream> legacy;
    std::shared_ptr<stream> recorder;  ///< records events behind everything that was enqueued
    std::vector<std::shared_ptr<stream>>
        streams;  ///< of the program and of threads; destroyed ones until they are done
    std::set<int> peers;
    std::size_t used = 0;  ///< bytes of cuMemAlloc, cuMemAllocManaged and cuMemCreate
    pool memory_pool;
};

/// The state of the whole driver. It lives until the process ends, like the threads of the streams.
struct driver_state {
    std::mutex lock;  ///< guards everything reachable from here; never held while work of a stream runs
    bool initialized = false;
    std::deque<context> contexts;  ///< one for each device
    slots<stream_slot> streams;
    slots<event_slot> events;
    std::map<std::uintptr_t, allocation> memory;      ///< by address
    std::map<std::uint64_t, created_memory> created;  ///< by handle
    std::uint64_t next_created = 1;                   ///< handle
    std::map<std::uintptr_t, std::size_t> reserved;   ///< ranges of addresses, and their bytes
    std::map<std::uintptr_t, std::uint64_t> mapped;   ///< the memory mapped there; `memory` has it as well
    std::map<int, int> attributes;                    ///< of devices, where tests override them
    std::size_t total_memory = std::size_t{1} << 32;
    unsigned long long next_stream_id = 1;
    std::vector<std::shared_ptr<capture>> captures;  ///< that have not ended
    bool all_held = false;
    /// A sticky error: every later call returns it, in every context. CUDA documents this ("this leaves the process
    /// in an inconsistent state and any further CUDA work will return the same error"), and driver 580 with two H100s does so,
    /// within the same call of a program that polls: a stream that waits for another device's never counts as done.
    CUresult error = success;
    bool loading_waits = false;     ///< loading a module waits for what was enqueued in its context
    std::size_t waiting_loads = 0;  ///< threads that wait there
    std::array<unsigned, 4>
        last_special_launch{};     ///< of the last launch with attributes: its cluster, and whether it was cooperative
    bool ignores_handles = false;  ///< of streams: the stream's context must be current
};
driver_state& driver();

/// Counts a call. Returns the error with which a test makes it fail; success for none. Without the lock.
CUresult enter(const char* name);
/// The same for calls that do not fail in practice: they fail only if a test names them.
CUresult enter_safe(const char* name);
/// For calls that are neither counted nor fail: the calling thread waits if a test stops it there (weir_fake_stop).
void stop_if_told(const char* name);

/// The calling thread's context.
context*& current_context();

/// Begins a function that needs a context: `in` is that context, with the lock held. It is the context of the stream that the function
/// names, if that is no default stream, else the current one.
class call {
public:
    explicit call(const char* name, CUstream named = nullptr);
    [[nodiscard]] bool failed() const { return error_ != success; }
    [[nodiscard]] CUresult error() const { return error_; }
    [[nodiscard]] context& in() const { return *in_; }
    std::unique_lock<std::mutex>& lock() { return lock_; }
    /// The stream that a handle names in the current context; null with error() set if there is none, or if a capture forbids the call.
    /// `captured`: also a stream whose own capture has become invalid.
    std::shared_ptr<stream> stream_of(CUstream handle, bool captured = false);
    /// The sticky error after waiting.
    [[nodiscard]] CUresult outcome() const { return driver().error; }

private:
    std::unique_lock<std::mutex> lock_;
    context* in_ = nullptr;
    CUresult error_ = success;
};

/// Handle 0 or 1: the legacy default stream; 2: the calling thread's. With the lock.
std::shared_ptr<stream> default_stream(context& in, std::uintptr_t handle);

/// Of the device's memory. With the lock.
std::size_t free_bytes(const context& in);

/// Waits until all that was enqueued in the context so far is done. The lock is released meanwhile.
void drain(std::unique_lock<std::mutex>& held, context& in);

/// The memory that a host that waited gives back: what the pool keeps above its threshold. With the lock.
void trim_on_wait(context& in);

/// The stream gets no more work: its thread ends when it is done. With the lock.
void end(const std::shared_ptr<stream>& what);

/// The allocation that contains [address, address + bytes); null if there is none. With the lock.
allocation* allocation_at(std::uintptr_t address, std::size_t bytes = 1);

/// Whether the context's device may touch the memory. With the lock.
bool reaches(const context& in, const allocation& what);

}  // namespace weir_fake
