#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "weir/detail/footprint.hpp"
#include "weir/package.hpp"

namespace weir::runtime {

class device_state;

/// A package that shares a part of a resource: a live import or export.
struct package_tie {
    std::shared_ptr<package> with;
    order::footprint where;
    order::access_mode mode = order::access_mode::write;  ///< the most that the package does there
    device_state* device = nullptr;                       ///< whose memory it is

    friend bool operator==(const package_tie&, const package_tie&) = default;
};

/// The packages that share one resource. Guarded by the resource's lock, but for `any`.
class package_ties {
public:
    /// The one question on the hot path. Needs no lock: who shares memory and who uses it must agree anyway on which
    /// comes first.
    [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_relaxed); }

    /// May throw std::bad_alloc; nothing is added then.
    void add(package_tie one) {
        ties_.push_back(std::move(one));
        any_.store(true, std::memory_order_relaxed);
    }
    /// Takes out one that was added; the package may end with it, so hand it to somebody who lets go of it under no lock.
    [[nodiscard]] std::shared_ptr<package> remove(const package_tie& one) noexcept {
        const auto found = std::find(ties_.begin(), ties_.end(), one);
        if (found == ties_.end()) {
            return nullptr;
        }
        std::shared_ptr<package> with = std::move(found->with);
        ties_.erase(found);
        any_.store(!ties_.empty(), std::memory_order_relaxed);
        return with;
    }
    [[nodiscard]] std::span<const package_tie> all() const noexcept { return ties_; }

private:
    std::atomic<bool> any_{false};
    std::vector<package_tie> ties_;
};

}  // namespace weir::runtime
