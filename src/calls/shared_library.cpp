#include "calls/shared_library.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "backend/fork_part.hpp"
#include "weir/error.hpp"

namespace weir::calls {

namespace {

std::string last_error() {
    const char* text = ::dlerror();
    return text != nullptr ? text : "unknown error";
}

/// The calls in progress, and whether the process ends.
constexpr unsigned process_ends = 1U << 31U;
std::atomic<unsigned> visits{0};
std::atomic<std::thread::id> ended_by{};
pid_t process = ::getpid();  ///< in which the calls are

void await_visits() {
    if (::getpid() != process) {
        return;  // a child of a fork that cannot use Weir: the threads stayed with the parent
    }
    ended_by.store(std::this_thread::get_id(), std::memory_order_relaxed);
    unsigned now = visits.fetch_or(process_ends, std::memory_order_acq_rel) | process_ends;
    while (now != process_ends) {
        visits.wait(now, std::memory_order_acquire);
        now = visits.load(std::memory_order_acquire);
    }
}

/// At static initialization, so that it runs after the destructors of the program's own static objects, which may wait for results.
[[maybe_unused]] const bool is_awaited = std::atexit(await_visits) == 0;

/// In the child of a fork no call is in progress: the threads stay with the parent.
class visits_part final : public backend::fork_part {
    void begin_child() noexcept override {
        visits.store(0, std::memory_order_relaxed);
        process = ::getpid();
    }
};
visits_part visits_at_fork;

}  // namespace

library_visit::library_visit() noexcept {
    if ((visits.fetch_add(1, std::memory_order_acq_rel) & process_ends) == 0 ||
        ended_by.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
        return;
    }
    visits.fetch_sub(1, std::memory_order_acq_rel);
    visits.notify_all();
    while (true) {
        ::pause();
    }
}

library_visit::~library_visit() {
    if ((visits.fetch_sub(1, std::memory_order_acq_rel) & process_ends) != 0) {
        visits.notify_all();
    }
}

shared_library::shared_library(const name& which) : file_(which.file), package_(which.package) {
    const char* const other = which.variable.value();
    if (other != nullptr) {
        file_ = other;
    }
    handle_ = ::dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
        return;
    }
    const std::string variable = which.variable.name();
    throw missing_library("cannot open " + file_ + (other != nullptr ? ", which " + variable + " names" : "") + " (" +
                          last_error() + "): install the package " + package_ +
                          " (Debian, Ubuntu), or name a library with the same interface in " + variable);
}

void* shared_library::try_find(const char* symbol) const noexcept { return ::dlsym(handle_, symbol); }

void* shared_library::address_of(const char* symbol) const {
    if (void* address = try_find(symbol)) {
        return address;
    }
    throw missing_library(file_ + " has no function " + symbol + ": it is not what the package " + package_ +
                          " (Debian, Ubuntu) has");
}

}  // namespace weir::calls
