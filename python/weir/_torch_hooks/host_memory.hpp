// Memory of the host that streams use.
#pragma once

#include "hooks.h"
#include "state.hpp"

#include <c10/core/Storage.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace weir_torch {

/// Memory of the host that streams have used. torch does not report when it is freed; so whether it is the same memory still is seen by
/// its storage.
class host_memory {
public:
    static host_memory& instance() {
        static auto* const one = new host_memory;
        return *one;
    }
    void add(const c10::Storage& storage) {
        const std::lock_guard lock(mutex_);
        auto* const impl = storage.unsafeGetStorageImpl();
        const auto at = reinterpret_cast<std::uint64_t>(storage.data());
        const auto found = known_.find(at);
        if (found != known_.end() && (found->second.first != impl || found->second.second.expired())) {
            freed(at);
            known_.erase(found);
        }
        known_.try_emplace(at, impl, storage.getWeakStorageImpl());
        knows_host_memory.store(true, std::memory_order_relaxed);
    }
    bool has(const c10::Storage& storage) {
        const std::lock_guard lock(mutex_);
        const auto at = reinterpret_cast<std::uint64_t>(storage.data());
        const auto found = known_.find(at);
        if (found == known_.end()) {
            return false;
        }
        if (found->second.first == storage.unsafeGetStorageImpl() && !found->second.second.expired()) {
            return true;
        }
        freed(at);
        known_.erase(found);
        return false;
    }
    void clear() {
        const std::lock_guard lock(mutex_);
        known_.clear();
        knows_host_memory.store(false, std::memory_order_relaxed);
    }

private:
    static void freed(std::uint64_t at) {
        calls->freed(at);
        ordering->freed(at);
    }

    std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::pair<c10::StorageImpl*, c10::weak_intrusive_ptr<c10::StorageImpl>>> known_;
};

}  // namespace weir_torch
