#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backend/cuda/context.hpp"
#include "calls/cufft_layout.hpp"
#include "calls/cufft_library.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::calls {

/// A plan of cuFFT in one context, without memory of its own. Any number of threads may execute it at the same time, on any
/// streams: what cuFFT calls a plan holds one stream and one workspace at a time, so each thread that executes takes one of
/// several for itself, and no lock is held while the driver takes the work.
class cufft_plan {
public:
    /// Throws missing_library, device_error, out_of_memory. May wait for the device: cuFFT loads kernels.
    cufft_plan(const backend::cuda::context& in, const cufft_layout& layout);
    /// Nothing that was executed may be pending.
    ~cufft_plan();
    cufft_plan(const cufft_plan&) = delete;
    cufft_plan& operator=(const cufft_plan&) = delete;

    /// What an execution needs.
    [[nodiscard]] std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }

    /// One execution: what is read and what is written.
    struct execution {
        const std::byte* in = nullptr;
        std::byte* out = nullptr;
    };
    /// Puts executions, one after the other, into submitting_to::current(). Inside a native task, the context current. All
    /// use the workspace. Throws device_error, out_of_memory.
    void execute(const std::vector<execution>& all, int direction, std::byte* workspace) const;

private:
    /// One of the library's plans, and what it was set to last: setting it again would take as long as a launch.
    struct prepared {
        cufft_handle handle = 0;
        std::optional<void*> stream;
        std::optional<std::byte*> work_area;
    };
    class lent;
    /// One more of the library's plans.
    [[nodiscard]] cufft_handle make(std::size_t* workspace) const;
    [[nodiscard]] cufft_handle make_once(std::size_t* workspace) const;
    void run(cufft_handle handle, const execution& one, int direction) const;

    const backend::cuda::context* in_;
    const cufft_functions* library_;
    cufft_layout layout_;
    std::size_t workspace_bytes_ = 0;
    mutable detail::mutex mutex_;  ///< guards idle_ and made_; a leaf in the lock order
    mutable std::vector<prepared> idle_;
    mutable std::size_t made_ = 0;
};

/// The plans of one context. Keeps what it has made.
class cufft_provider {
public:
    explicit cufft_provider(const backend::cuda::context& in) noexcept : in_(&in) {}

    /// Throws as cufft_plan does.
    [[nodiscard]] std::shared_ptr<const cufft_plan> prepare(const cufft_layout& layout);

    /// That of a context; kept for ever.
    [[nodiscard]] static cufft_provider& of(const backend::cuda::context& in);

private:
    /// How many plans are kept. Each has tables on the device, and destroying one may wait for the device: when there are
    /// more, all are let go of at once, which is rare then.
    static constexpr std::size_t most_kept = 256;

    const backend::cuda::context* in_;
    detail::mutex mutex_;  ///< guards kept_; a leaf in the lock order
    std::map<cufft_layout, std::shared_ptr<const cufft_plan>> kept_;
};

}  // namespace weir::calls
