#include "stream.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "capture.hpp"
#include "driver.hpp"

namespace weir_fake {

namespace {

std::int64_t now() {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

/// Waits until an entry may begin, or until it is dropped because of a sticky error.
void wait_for_turn(std::unique_lock<std::mutex>& held, stream& of, const std::vector<point>& after) {
    for (const point& each : after) {
        while (!each.reached() && driver().error == success) {
            each.of->changed.wait(held);
        }
    }
    const auto is_held = [&] { return of.held || (driver().all_held && of.kind != stream_kind::recorder); };
    while (is_held() && driver().error == success) {
        of.to_do.wait(held);
    }
}

void forget(const std::shared_ptr<stream>& what) {
    auto& streams = what->in->streams;
    streams.erase(std::remove(streams.begin(), streams.end(), what), streams.end());
}

/// A stream's thread.
void work(std::shared_ptr<stream> me) {
    std::unique_lock held(driver().lock);
    for (;;) {
        while (me->queue.empty() && !me->destroyed) {
            me->to_do.wait(held);
        }
        if (me->queue.empty()) {
            forget(me);
            return;
        }
        wait_for_turn(held, *me, me->queue.front().after);
        // The entry keeps its place in the queue while it runs, and is destroyed without the lock: it may own a module.
        std::optional<entry> mine(std::move(me->queue.front()));
        CUresult error = driver().error;
        held.unlock();
        if (error == success && mine->work) {
            error = mine->work();
        }
        mine.reset();
        held.lock();
        me->queue.pop_front();
        ++me->progress->completed;
        if (error != success && driver().error == success) {
            driver().error = error;
            wake_all();
        }
        me->progress->changed.notify_all();
    }
}

}  // namespace

bool point::reached() const { return of->completed >= position; }

std::shared_ptr<stream> make_stream(context& in, stream_kind kind, unsigned flags, int priority) {
    auto made = std::make_shared<stream>();
    made->in = &in;
    made->kind = kind;
    made->flags = flags;
    made->priority = priority;
    made->id = driver().next_stream_id++;
    if (kind == stream_kind::user || kind == stream_kind::per_thread) {
        in.streams.push_back(made);
    }
    return made;
}

point tail(const std::shared_ptr<stream>& of) { return {of->progress, of->submitted}; }

point enqueue(std::unique_lock<std::mutex>& held, const std::shared_ptr<stream>& on, entry what) {
    if (on->captured != nullptr) {
        ++on->captured->nodes;
        return tail(on);
    }
    while (on->queue.size() >= queue_length && driver().error == success) {
        on->progress->changed.wait(held);
    }
    // The implicit ordering of the legacy default stream and the blocking ones.
    if (on->kind == stream_kind::legacy) {
        for (const auto& other : on->in->streams) {
            if (other->blocking()) {
                what.after.push_back(tail(other));
            }
        }
    } else if (on->blocking() && on->in->legacy) {
        what.after.push_back(tail(on->in->legacy));
    }
    std::erase_if(what.after, [](const point& each) { return each.reached(); });
    on->queue.push_back(std::move(what));
    ++on->submitted;
    if (!on->started) {
        on->started = true;
        std::thread(work, on).detach();
    }
    on->to_do.notify_all();
    return tail(on);
}

void wait_for(std::unique_lock<std::mutex>& held, const point& what) {
    while (!what.reached() && driver().error == success) {
        what.of->changed.wait(held);
    }
}

bool is_settled(const stream& what) {
    if (what.queue.empty()) {
        return true;
    }
    // The place of an entry that runs is empty.
    const std::vector<point>& after = what.queue.front().after;
    return std::any_of(after.begin(), after.end(), [](const point& each) { return !each.reached(); });
}

std::shared_ptr<recording> record(std::unique_lock<std::mutex>& held, const std::shared_ptr<stream>& on,
                                  std::vector<point> after) {
    auto made = std::make_shared<recording>();
    made->at = enqueue(held, on, {std::move(after), [made] {
                                      made->nanoseconds = now();
                                      return success;
                                  }});
    return made;
}

void wake_all() {
    for (auto& each : driver().contexts) {
        // A stream may wait for one of another context.
        for (const auto& other : each.streams) {
            other->to_do.notify_all();
            other->progress->changed.notify_all();
        }
        for (const auto& other : {each.legacy, each.recorder}) {
            if (other) {
                other->to_do.notify_all();
                other->progress->changed.notify_all();
            }
        }
    }
}

bool is_broken() {
    const std::lock_guard held(driver().lock);
    return driver().error != success;
}

}  // namespace weir_fake
