#include "block.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "fiber.hpp"

namespace weir_fake {

namespace {

constexpr unsigned warp_size = 32;

/// The barrier for which a thread of the block waits.
enum class waits { nothing, block, warp };

struct device_thread {
    fiber* on = nullptr;
    waits for_what = waits::nothing;
    unsigned mask = 0;  ///< the lanes that a wait for the warp concerns
    bool over = false;
    unsigned long long given = 0;
};

/// One for each thread of a stream that runs kernels.
///
/// A fiber takes the threads of the block one after the other. If one of them has to wait, it keeps the fiber, and
/// another fiber goes on with the threads that have not begun: a kernel without barriers runs on a single fiber.
class block_runner {
public:
    CUresult run(const launch& what);
    static block_runner& mine() {
        thread_local block_runner runner;
        return runner;
    }

    void wait(waits what, unsigned mask);
    unsigned long long shuffle(unsigned mask, unsigned long long value, unsigned lane);
    void pause();
    [[noreturn]] void stop(CUresult error);

private:
    void run_block();
    void run_threads(fiber& on);
    static void begin(fiber& me);
    fiber& idle_fiber();
    void place(std::size_t thread);
    void wake(std::size_t thread);
    void wake_those_who_may();
    bool may_go_on(std::size_t thread) const;
    /// Lets other threads of the block run, until one of them resumes the calling thread's fiber.
    void leave();

    const launch* what_ = nullptr;
    weir_shim::view view_{};
    std::vector<std::max_align_t> shared_;
    std::vector<device_thread> threads_;
    std::size_t next_ = 0;     ///< the first thread that has not begun
    std::size_t current_ = 0;  ///< the thread that runs
    std::size_t over_ = 0;
    std::size_t at_barrier_ = 0;
    std::deque<std::size_t> ready_;
    CUresult error_ = success;
    std::unique_ptr<fiber> scheduler_;
    std::vector<std::unique_ptr<fiber>> all_;
    std::vector<fiber*> idle_;
};

CUresult block_runner::run(const launch& what) {
    what_ = &what;
    if (!scheduler_) {
        scheduler_ = std::make_unique<fiber>();
    }
    shared_.resize(what.shared_bytes / sizeof(std::max_align_t) + 1);
    view_ = {{},
             {},
             what.block,
             what.grid,
             shared_.data(),
             [] { mine().wait(waits::block, 0); },
             [](unsigned mask) { mine().wait(waits::warp, mask); },
             [](unsigned mask, unsigned long long value, unsigned lane) { return mine().shuffle(mask, value, lane); },
             [] { mine().pause(); },
             [](int error) { mine().stop(error); },
             []() -> long long { return std::chrono::steady_clock::now().time_since_epoch().count(); }};
    what.set_view(&view_);
    error_ = success;
    for (unsigned z = 0; z < what.grid.z; ++z) {
        for (unsigned y = 0; y < what.grid.y; ++y) {
            for (unsigned x = 0; x < what.grid.x; ++x) {
                view_.block = {x, y, z};
                run_block();
                if (error_ != success) {
                    // Fibers that were left in the middle of a kernel are never resumed.
                    idle_.clear();
                    all_.clear();
                    return error_;
                }
            }
        }
    }
    return success;
}

void block_runner::run_block() {
    threads_.assign(std::size_t{what_->block.x} * what_->block.y * what_->block.z, {});
    // A block finds arbitrary contents.
    std::memset(static_cast<void*>(shared_.data()), 0xa5, what_->shared_bytes);
    next_ = 0;
    over_ = 0;
    at_barrier_ = 0;
    ready_.clear();
    while (over_ < threads_.size() && error_ == success) {
        if (!ready_.empty()) {
            const std::size_t thread = ready_.front();
            ready_.pop_front();
            place(thread);
            scheduler_->switch_to(*threads_[thread].on);
        } else if (next_ < threads_.size()) {
            scheduler_->switch_to(idle_fiber());
        } else {
            error_ = launch_timeout;  // every thread waits, and no thread is left to release them
        }
    }
}

fiber& block_runner::idle_fiber() {
    if (idle_.empty()) {
        all_.push_back(std::make_unique<fiber>(&block_runner::begin));
        idle_.push_back(all_.back().get());
    }
    fiber& taken = *idle_.back();
    idle_.pop_back();
    return taken;
}

void block_runner::begin(fiber& me) {
    block_runner& runner = mine();
    for (;;) {
        runner.run_threads(me);
        runner.idle_.push_back(&me);
        me.switch_to(*runner.scheduler_);
    }
}

void block_runner::run_threads(fiber& on) {
    do {
        const std::size_t thread = next_++;
        threads_[thread].on = &on;
        place(thread);
        what_->kernel->run(what_->arguments);
        threads_[current_].over = true;
        ++over_;
        wake_those_who_may();
    } while (next_ < threads_.size() && ready_.empty());
}

void block_runner::place(std::size_t thread) {
    current_ = thread;
    const auto number = static_cast<unsigned>(thread);
    const weir_shim::dim3& of = what_->block;
    view_.thread = {number % of.x, number / of.x % of.y, number / of.x / of.y};
}

void block_runner::leave() {
    fiber& me = *threads_[current_].on;
    me.switch_to(*scheduler_);
}

void block_runner::wait(waits what, unsigned mask) {
    device_thread& me = threads_[current_];
    me.for_what = what;
    me.mask = mask;
    at_barrier_ += what == waits::block ? 1 : 0;
    const std::size_t number = current_;
    wake_those_who_may();
    if (threads_[number].for_what == waits::nothing) {
        // The last one continues at once.
        ready_.erase(std::find(ready_.begin(), ready_.end(), number));
        return;
    }
    leave();
}

bool block_runner::may_go_on(std::size_t thread) const {
    const device_thread& it = threads_[thread];
    const std::size_t first = thread / warp_size * warp_size;
    for (std::size_t lane = 0; lane < warp_size && first + lane < threads_.size(); ++lane) {
        const device_thread& other = threads_[first + lane];
        if ((it.mask >> lane & 1) != 0 && !other.over && other.for_what != waits::warp) {
            return false;
        }
    }
    return true;
}

void block_runner::wake(std::size_t thread) {
    threads_[thread].for_what = waits::nothing;
    ready_.push_back(thread);
}

void block_runner::wake_those_who_may() {
    // Threads that have ended count as arrived.
    if (at_barrier_ != 0 && at_barrier_ + over_ == threads_.size()) {
        at_barrier_ = 0;
        for (std::size_t i = 0; i < threads_.size(); ++i) {
            if (threads_[i].for_what == waits::block) {
                wake(i);
            }
        }
        return;
    }
    const std::size_t first = current_ / warp_size * warp_size;
    const std::size_t last = std::min(first + warp_size, threads_.size());
    std::vector<std::size_t> able;
    for (std::size_t i = first; i < last; ++i) {
        if (threads_[i].for_what == waits::warp && may_go_on(i)) {
            able.push_back(i);
        }
    }
    for (const std::size_t each : able) {
        wake(each);
    }
}

unsigned long long block_runner::shuffle(unsigned mask, unsigned long long value, unsigned lane) {
    const std::size_t me = current_;
    const std::size_t other = me / warp_size * warp_size + lane;
    threads_[me].given = value;
    wait(waits::warp, mask);
    const unsigned long long got = other < threads_.size() ? threads_[other].given : value;
    wait(waits::warp, mask);
    return got;
}

void block_runner::pause() {
    ::sched_yield();
    if (threads_.size() == 1) {
        return;
    }
    ready_.push_back(current_);
    // Threads that have not begun come first, or they would never begin.
    if (next_ < threads_.size()) {
        fiber& me = *threads_[current_].on;
        me.switch_to(idle_fiber());
        return;
    }
    leave();
}

void block_runner::stop(CUresult error) {
    error_ = error;
    for (;;) {
        leave();
    }
}

}  // namespace

CUresult run(const launch& what) { return block_runner::mine().run(what); }

}  // namespace weir_fake
