#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "weir/detail/footprint.hpp"
#include "weir/package.hpp"

namespace weir::runtime {

class device_state;

/// What Weir may do with memory that a package shares.
enum class tie_rights : std::uint8_t { writing, reading };

/// A package that shares a part of a resource: a live import or export.
struct package_tie {
    std::shared_ptr<package> with;
    order::footprint where;
    order::access_mode mode = order::access_mode::write;  ///< the strongest access that the package makes there
    device_state* device = nullptr;                       ///< whose memory it is
    tie_rights rights = tie_rights::writing;
    bool exported = false;       ///< the memory is Weir's: a live export
    std::uintptr_t address = 0;  ///< the device's address of the resource's first byte; 0: it has no memory
    std::size_t times = 1;       ///< how many exports this stands for: consumers on the CPU may have many of one array

    /// Whether both say the same; how often they do does not matter.
    [[nodiscard]] bool says_what(const package_tie& other) const noexcept {
        return with == other.with && where == other.where && mode == other.mode && device == other.device &&
               rights == other.rights && exported == other.exported;
    }
};

/// The packages that share one resource. Guarded by the resource's lock, except `any`.
class package_ties {
public:
    /// The only question on the hot path. Needs no lock: the thread that shares memory and the thread that uses it must agree in
    /// any case on which comes first.
    [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_relaxed); }

    /// Adds a tie. May throw std::bad_alloc; nothing is added then.
    void add(package_tie one) {
        if (const auto known = find(one); known != ties_.end()) {
            ++known->times;
            return;
        }
        ties_.push_back(std::move(one));
        any_.store(true, std::memory_order_relaxed);
    }
    [[nodiscard]] bool contains(const package_tie& one) const noexcept {
        return std::any_of(ties_.begin(), ties_.end(), [&](const package_tie& each) { return each.says_what(one); });
    }
    /// Removes a tie. This may be the last reference to the package, so the caller must release the result under no lock.
    [[nodiscard]] std::shared_ptr<package> remove(const package_tie& one) noexcept {
        const auto found = find(one);
        if (found == ties_.end() || --found->times != 0) {
            return nullptr;
        }
        std::shared_ptr<package> with = std::move(found->with);
        ties_.erase(found);
        any_.store(!ties_.empty(), std::memory_order_relaxed);
        return with;
    }
    /// Removes all live exports; the result may hold the last references to their packages.
    [[nodiscard]] std::vector<package_tie> remove_exports() {
        std::vector<package_tie> ended;
        std::copy_if(ties_.begin(), ties_.end(), std::back_inserter(ended),
                     [](const package_tie& one) { return one.exported; });
        ties_.erase(std::remove_if(ties_.begin(), ties_.end(), [](const package_tie& one) { return one.exported; }),
                    ties_.end());
        any_.store(!ties_.empty(), std::memory_order_relaxed);
        return ended;
    }
    /// Removes all ties; the result may hold the last references to their packages.
    [[nodiscard]] std::vector<package_tie> remove_all() noexcept {
        any_.store(false, std::memory_order_relaxed);
        return std::exchange(ties_, {});
    }
    [[nodiscard]] std::span<const package_tie> all() const noexcept { return ties_; }
    /// One of them that has an address; null if there is none.
    [[nodiscard]] const package_tie* with_memory() const noexcept {
        const auto found =
            std::find_if(ties_.begin(), ties_.end(), [](const package_tie& one) { return one.address != 0; });
        return found == ties_.end() ? nullptr : &*found;
    }

private:
    [[nodiscard]] std::vector<package_tie>::iterator find(const package_tie& one) noexcept {
        return std::find_if(ties_.begin(), ties_.end(), [&](const package_tie& each) { return each.says_what(one); });
    }

    std::atomic<bool> any_{false};
    std::vector<package_tie> ties_;
};

}  // namespace weir::runtime
