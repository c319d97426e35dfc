#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backend/capability/libraries.hpp"
#include "calls/fft/cufft_layout.hpp"
#include "calls/fft/cufft_library.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/device.hpp"

namespace weir::calls {

/// A cuFFT plan on one device, without memory of its own. Any number of threads may execute it at the same time, on any
/// streams. A plan of the library holds one stream and one workspace at a time, so each executing thread borrows one of
/// several library plans, and no lock is held while the driver accepts the work.
class cufft_plan {
public:
    /// Throws missing_library, device_error, out_of_memory. May wait for the device: cuFFT loads kernels.
    cufft_plan(const backend::capability::libraries& in, const cufft_layout& layout);
    /// Requires that no execution is pending.
    ~cufft_plan();
    cufft_plan(const cufft_plan&) = delete;
    cufft_plan& operator=(const cufft_plan&) = delete;

    /// The workspace that an execution needs.
    [[nodiscard]] std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }

    /// The addresses that one execution reads and writes.
    struct execution {
        const std::byte* in = nullptr;
        std::byte* out = nullptr;
    };
    /// How far an execution's addresses are moved, in bytes.
    struct shift {
        std::ptrdiff_t in = 0;
        std::ptrdiff_t out = 0;
    };
    /// Puts executions, one after the other, into submitting_to::current(). Call it inside a native task, with the context current. All
    /// use the same workspace. Throws device_error, out_of_memory.
    void execute(const std::vector<execution>& all, const shift& by, int direction, std::byte* workspace) const;

private:
    /// One of the library's plans, and its last settings: setting them again would take as long as a launch.
    struct prepared {
        cufft_handle handle = 0;
        std::optional<void*> stream;
        std::optional<std::byte*> work_area;
    };
    class lent;
    /// Makes one more library plan.
    [[nodiscard]] prepared* make(std::size_t* workspace) const;
    [[nodiscard]] cufft_handle make_once(std::size_t* workspace) const;
    void run(cufft_handle handle, const execution& one, int direction) const;

    const backend::capability::libraries* in_;
    const cufft_functions* library_;
    cufft_layout layout_;
    std::size_t workspace_bytes_ = 0;
    /// The plan that was returned last: nearly all executions take it and return it without the lock. Null while it is on loan. Pairs
    /// with itself: the thread that takes a plan sees the settings of the one that returned it.
    mutable std::atomic<prepared*> last_{nullptr};
    mutable detail::mutex mutex_;  ///< guards the others; a leaf in the lock order
    mutable std::vector<prepared*> idle_;
    mutable std::vector<std::unique_ptr<prepared>> all_;
};

/// The plans of one device, which are kept for reuse.
class cufft_provider {
public:
    explicit cufft_provider(const backend::capability::libraries& in) noexcept : in_(&in) {}

    /// Throws as cufft_plan does.
    [[nodiscard]] std::shared_ptr<const cufft_plan> prepare(const cufft_layout& layout);

    /// The provider of a device where `has_cufft`; never destroyed.
    [[nodiscard]] static cufft_provider& of(const device& where);

private:
    /// Number of plans that are kept. Each has tables on the device, and destroying one may wait for the device: when the limit is
    /// exceeded, all are dropped at once, so that this happens rarely.
    static constexpr std::size_t most_kept = 256;

    const backend::capability::libraries* in_;
    detail::mutex mutex_;  ///< guards kept_; a leaf in the lock order
    std::map<cufft_layout, std::shared_ptr<const cufft_plan>> kept_;
};

}  // namespace weir::calls
