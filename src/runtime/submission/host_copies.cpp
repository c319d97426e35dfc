#include "runtime/submission/host_copies.hpp"

#include <atomic>
#include <mutex>

#include "weir/detail/mutex.hpp"

namespace weir::runtime {

namespace {

struct waiting_threads {
    detail::mutex mutex;  ///< before the locks of resources
    detail::condition_variable ended;
    std::atomic<int> count{0};
};

waiting_threads& all() {
    static auto* const one = new waiting_threads();  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

}  // namespace

void host_copies::ended() noexcept {
    waiting_threads& those = all();
    // Sequentially consistent, as is the increment in `wait_while`: a waiting thread increments `count` before it sees, under the
    // resource's lock, the copy that has ended now.
    if (those.count.load(std::memory_order_seq_cst) == 0) {
        return;
    }
    const std::lock_guard lock(those.mutex);
    those.ended.notify_all();
}

void host_copies::wait_while(const std::function<bool()>& goes_on) {
    waiting_threads& those = all();
    those.count.fetch_add(1, std::memory_order_seq_cst);
    {
        std::unique_lock lock(those.mutex);
        those.ended.wait(lock, [&] { return !goes_on(); });
    }
    those.count.fetch_sub(1, std::memory_order_seq_cst);
}

int host_copies::waiting() noexcept { return all().count.load(std::memory_order_seq_cst); }

}  // namespace weir::runtime
