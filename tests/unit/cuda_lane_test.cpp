// When a CUDA stream's owner is told to stay and may go (backend::queue_events::busy and idle).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>

#include "backend/cuda/lane.hpp"
#include "backend/cuda/submissions.hpp"
#include "backend/timeline.hpp"
#include "unit/cuda_support.hpp"

namespace weir::test {
namespace {

/// Counts, as a stream does, and goes for ever when there is nothing left.
class counting_owner final : public backend::queue_events {
public:
    void failed(backend::epoch, const runtime::site&, std::exception_ptr) noexcept override {}
    void lost(backend::epoch, backend::epoch, std::exception_ptr) noexcept override {}
    void executed(backend::epoch, std::chrono::steady_clock::time_point,
                  std::chrono::steady_clock::time_point) noexcept override {}
    [[nodiscard]] bool comes_after(backend::point, backend::point) noexcept override { return false; }
    void busy() noexcept override {
        meanwhile();
        ++owners;
    }
    void idle() noexcept override { was_gone = --owners < 0 || was_gone; }

    std::function<void()> meanwhile = [] {};  ///< what another thread does while the owner is being told to stay
    int owners = 0;
    bool was_gone = false;

private:
    bool examine(backend::epoch) noexcept override { return true; }
    void heal(backend::epoch) noexcept override {}
};

TEST(CudaLane, L1WhoFindsAnOperationOverLetsTheOwnerGoOnlyOnceItIsTold) {
    const gpu::device_context& known = cuda_context();
    auto& in = const_cast<gpu::device_context&>(known);
    backend::timeline_table& table = backend::timeline_table::instance();
    const backend::timeline_id id = table.acquire(&cuda().state().driver());
    backend::timeline& line = table.at(id);
    counting_owner owner;
    {
        const detail::owner<gpu::lane> lane(
            new gpu::lane(in, line, owner, gpu::submissions::lock_of(id), 0, gpu::stream_non_blocking));
        const backend::epoch first = line.completed() + 1;
        for (backend::epoch at = first; at != first + 3; ++at) {
            lane->enters(at);
            owner.meanwhile = [&] { lane->finished(at); };  // as the watcher may find at any time
            lane->submitted(at);
            EXPECT_FALSE(owner.was_gone);
            EXPECT_EQ(owner.owners, 0) << "all is over";
        }
    }
    cuda().synchronize();
    table.release(id);
}

}  // namespace
}  // namespace weir::test
