#include "driver.hpp"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>

#include "capture.hpp"
#include "control.hpp"

namespace weir_fake {

namespace {

struct fault {
    std::string name;  ///< empty: every name
    unsigned long long left = 0;
    CUresult error = success;
    bool for_good = false;
    std::thread::id whose;  ///< the thread whose calls it concerns; none: every thread
    bool breaks = false;    ///< all devices of the process
};

using call_counts = std::map<std::string, unsigned long long, std::less<>>;

struct call_book {
    std::mutex lock;
    call_counts counts;
    unsigned long long all = 0;
    std::vector<fault> faults;
    std::deque<call_counts>
        of_threads;  ///< never freed: static destructors make calls when their thread's variables are gone
};

call_book& calls() {
    static auto* const book = new call_book;
    return *book;
}

/// The counts of the calling thread. Without the lock.
call_counts& own_calls() {
    thread_local call_counts* const counts = [] {
        call_book& book = calls();
        const std::lock_guard held(book.lock);
        return &book.of_threads.emplace_back();
    }();
    return *counts;
}

unsigned long long count_in(const call_counts& counts, const char* name) {
    const auto found = counts.find(name);
    return found == counts.end() ? 0 : found->second;
}

/// NVIDIA's driver has undefined behaviour in the child of a fork; this one reports it.
void expect_no_child(const char* name) {
    static const pid_t opened_by = ::getpid();
    if (::getpid() != opened_by) {
        std::fprintf(stderr, "fake CUDA: %s is called in the child of a fork\n", name);
        std::abort();
    }
}

/// A place in the driver where a thread waits.
struct stop {
    std::mutex lock;
    std::condition_variable news;
    std::thread::id whose;  ///< none: any
    std::string at;         ///< the function's name; empty: nowhere
    bool is_reached = false;
};

stop& the_stop() {
    static auto* const one = new stop;
    return *one;
}

void stop_at(std::string_view name) {
    stop& here = the_stop();
    std::unique_lock held(here.lock);
    if (here.at == name && (here.whose == std::thread::id() || here.whose == std::this_thread::get_id())) {
        here.is_reached = true;
        here.news.wait(held, [&] { return !here.is_reached; });
    }
}

CUresult count(const char* name, bool by_any) {
    expect_no_child(name);
    stop_at(name);
    call_counts& own = own_calls();
    call_book& book = calls();
    std::unique_lock held(book.lock);
    ++book.counts[name];
    ++own[name];
    ++book.all;
    CUresult error = success;
    bool breaks = false;
    for (fault& each : book.faults) {
        const bool is_of_another = each.whose != std::thread::id() && each.whose != std::this_thread::get_id();
        if (is_of_another || (each.name.empty() ? !by_any : each.name != name)) {
            continue;
        }
        if (each.left > 0) {
            --each.left;
        }
        if (each.left == 0 && error == success) {
            error = each.error;
            breaks = each.breaks;
        }
    }
    std::erase_if(book.faults, [](const fault& each) { return each.left == 0 && !each.for_good; });
    held.unlock();
    if (breaks) {
        weir_fake_break(error);
    }
    return error;
}

}  // namespace

driver_state& driver() {
    static auto* const state = new driver_state;
    return *state;
}

CUresult enter(const char* name) { return count(name, true); }
CUresult enter_safe(const char* name) { return count(name, false); }
void stop_if_told(const char* name) { stop_at(name); }

context*& current_context() {
    thread_local context* current = nullptr;
    return current;
}

call::call(const char* name, CUstream named) : lock_(driver().lock, std::defer_lock) {
    error_ = enter(name);
    if (error_ != success) {
        return;
    }
    lock_.lock();
    in_ = current_context();
    const bool is_default = reinterpret_cast<std::uintptr_t>(named) <= 2;
    if (!is_default && !driver().ignores_handles && driver().streams.contains(named)) {
        in_ = named->is->in;
    }
    if (!driver().initialized) {
        error_ = not_initialized;
    } else if (in_ == nullptr || in_->references == 0) {
        error_ = invalid_context;
    } else {
        error_ = driver().error != success ? driver().error : refused_in_capture(name, in_);
    }
}

namespace {

/// The default streams of this thread, one for each context in which it used one.
struct thread_streams {
    std::map<context*, std::shared_ptr<stream>> all;
    ~thread_streams() {
        const std::lock_guard held(driver().lock);
        for (auto& [in, each] : all) {
            end(each);
        }
    }
};

}  // namespace

void end(const std::shared_ptr<stream>& what) {
    what->destroyed = true;
    what->to_do.notify_all();
    if (!what->started) {
        std::erase(what->in->streams, what);
    }
}

std::shared_ptr<stream> default_stream(context& in, std::uintptr_t handle) {
    if (handle <= 1) {
        return in.legacy;
    }
    thread_local thread_streams mine;
    auto& found = mine.all[&in];
    if (!found) {
        found = make_stream(in, stream_kind::per_thread, 0, 0);
    }
    return found;
}

std::shared_ptr<stream> call::stream_of(CUstream handle, bool captured) {
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    if (number <= 1) {
        error_ = refused_as_implicit(*in_);
        return error_ == success ? default_stream(*in_, number) : nullptr;
    }
    if (number == 2) {
        return default_stream(*in_, number);
    }
    if (!driver().streams.contains(handle)) {
        error_ = invalid_handle;
        return nullptr;
    }
    if (!captured && handle->is->captured != nullptr && handle->is->captured->is_invalid) {
        error_ = capture_invalidated;
        return nullptr;
    }
    return handle->is;
}

void drain(std::unique_lock<std::mutex>& held, context& in) {
    std::vector<point> all{tail(in.legacy), tail(in.recorder)};
    for (const auto& each : in.streams) {
        all.push_back(tail(each));
    }
    for (const point& each : all) {
        wait_for(held, each);
    }
}

allocation* allocation_at(std::uintptr_t address, std::size_t bytes) {
    auto& memory = driver().memory;
    auto after = memory.upper_bound(address);
    if (after == memory.begin()) {
        return nullptr;
    }
    allocation& found = std::prev(after)->second;
    const std::size_t before = address - found.address;
    return before < found.bytes && bytes <= found.bytes - before ? &found : nullptr;
}

bool reaches(const context& in, const allocation& what) {
    if (what.is_mapped) {
        return what.reached_by.count(in.device) != 0;
    }
    return what.kind != memory_kind::device || what.in == &in ||
           (!what.from_pool && in.peers.count(what.in->device) != 0);
}

}  // namespace weir_fake

using namespace weir_fake;

unsigned long long weir_fake_calls(const char* name) {
    call_book& book = calls();
    const std::lock_guard held(book.lock);
    if (name == nullptr) {
        return book.all;
    }
    return count_in(book.counts, name);
}

unsigned long long weir_fake_own_calls(const char* name) {
    const call_counts& own = own_calls();
    if (name != nullptr) {
        return count_in(own, name);
    }
    return std::accumulate(own.begin(), own.end(), 0ULL,
                           [](unsigned long long sum, const auto& each) { return sum + each.second; });
}

const char* weir_fake_called(std::size_t index) {
    call_book& book = calls();
    const std::lock_guard held(book.lock);
    return index < book.counts.size()
               ? std::next(book.counts.begin(), static_cast<std::ptrdiff_t>(index))->first.c_str()
               : nullptr;
}

void weir_fake_forget_calls() {
    own_calls().clear();
    call_book& book = calls();
    const std::lock_guard held(book.lock);
    book.counts.clear();
    book.all = 0;
}

void weir_fake_fail(const char* name, unsigned long long nth, int error, int for_good) {
    call_book& book = calls();
    const std::lock_guard held(book.lock);
    book.faults.push_back({name != nullptr ? name : "", std::max(nth, 1ULL), error, for_good != 0, {}, false});
}

void weir_fake_break_at(const char* name, unsigned long long nth, int error) {
    call_book& book = calls();
    const std::lock_guard held(book.lock);
    book.faults.push_back({name, std::max(nth, 1ULL), error, false, {}, true});
}

void weir_fake_fail_own(const char* name, int error) {
    call_book& book = calls();
    const std::lock_guard held(book.lock);
    book.faults.push_back({name, 1, error, false, std::this_thread::get_id(), false});
}

void weir_fake_stop(const char* name) {
    stop& here = the_stop();
    const std::lock_guard held(here.lock);
    here.whose = std::this_thread::get_id();
    here.at = name;
}

void weir_fake_stop_any(const char* name) {
    stop& here = the_stop();
    const std::lock_guard held(here.lock);
    here.whose = std::thread::id();
    here.at = name;
}

void weir_fake_go_on(const char* next) {
    stop& here = the_stop();
    const std::lock_guard held(here.lock);
    here.at = next != nullptr ? next : "";
    here.is_reached = false;
    here.news.notify_all();
}

int weir_fake_is_stopped() {
    stop& here = the_stop();
    const std::lock_guard held(here.lock);
    return here.is_reached ? 1 : 0;
}

void weir_fake_fail_no_more() {
    call_book& book = calls();
    const std::lock_guard held(book.lock);
    book.faults.clear();
}
