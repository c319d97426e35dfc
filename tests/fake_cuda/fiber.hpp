// Stacks that take turns on one thread, so that the threads of a block can wait for each other.
#pragma once

#include <ucontext.h>

#include <cstddef>

namespace weir_fake {

class fiber {
public:
    using body = void (*)(fiber& me);

    /// The calling thread's own fiber: the first one to switch from.
    fiber();
    /// A fiber that calls `what`, which must never return, when it is switched to for the first time.
    explicit fiber(body what);
    ~fiber();
    fiber(const fiber&) = delete;
    fiber& operator=(const fiber&) = delete;

    /// Continues `to`, until another fiber switches back.
    void switch_to(fiber& to);

private:
    static void start(unsigned low, unsigned high);
    void arrive();

    ucontext_t place_{};
    body what_ = nullptr;
    void* stack_ = nullptr;  ///< with a page before it that cannot be touched
    const void* bottom_ = nullptr;
    [[maybe_unused]] std::size_t bytes_ = 0;
    // What the sanitizers need to know about it.
    [[maybe_unused]] void* fake_stack_ = nullptr;
    [[maybe_unused]] void* thread_fiber_ = nullptr;
    fiber* from_ = nullptr;
};

}  // namespace weir_fake
