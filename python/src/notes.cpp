#include "notes.hpp"

#include "bind.hpp"

#include <iterator>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "checking.hpp"
#include "site.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::python {

namespace {

struct note {
    note_kind kind;
    std::string text;
};

/// The number of calls under way on this thread.
thread_local int depth = 0;
std::vector<note>& of_thread() {
    thread_local std::vector<note> all;
    return all;
}

struct shared_notes {
    detail::mutex mutex;  ///< guards all; a leaf in the lock order
    std::vector<note> all;
    std::atomic<bool> any{
        false};  ///< relaxed by itself: a call that does not see it yet leaves the notes to the next call
};
shared_notes& of_others() {
    static auto* const one = new shared_notes;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

// At the start of the program, so that a fork never copies them half constructed.
[[maybe_unused]] const shared_notes& made_at_start = of_others();

void say_one(const note& one) {
    if (one.kind == note_kind::log) {
        nb::module_::import_("weir._logging").attr("said")(one.text);
        return;
    }
    const source_location where = here();
    if (PyErr_WarnExplicit(race_warning(), one.text.c_str(), where.file, static_cast<int>(where.line), nullptr,
                           nullptr) != 0) {
        nb::raise_python_error();
    }
}

std::vector<note> take() {
    shared_notes& others = of_others();
    std::vector<note> all = std::exchange(of_thread(), {});
    if (others.any.load(std::memory_order_relaxed)) {
        const std::lock_guard lock(others.mutex);
        others.any.store(false, std::memory_order_relaxed);
        all.insert(all.begin(), std::make_move_iterator(others.all.begin()), std::make_move_iterator(others.all.end()));
        others.all.clear();
    }
    return all;
}

}  // namespace

void notes::begin_child() noexcept {
    ::new (&of_others()) shared_notes;  // made anew, not destroyed: a thread that is gone may hold the lock
}

void notes::leave(note_kind kind, std::string text) {
    if (depth != 0) {
        of_thread().push_back({kind, std::move(text)});
        return;
    }
    shared_notes& others = of_others();
    const std::lock_guard lock(others.mutex);
    others.all.push_back({kind, std::move(text)});
    others.any.store(true, std::memory_order_relaxed);
}

note_taking::note_taking() noexcept : takes_(notes::wanted()) {
    if (takes_) {
        ++depth;
    }
}

note_taking::~note_taking() {
    if (takes_) {
        try {
            say_now();
        } catch (nb::python_error& error) {
            error.discard_as_unraisable("a message of weir's");
        } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for a message
        }
        --depth;
    }
}

void note_taking::say_now() {
    std::vector<note> all = take();
    for (std::size_t i = 0; i < all.size(); ++i) {
        try {
            say_one(all[i]);
        } catch (...) {
            // The destructor delivers the rest.
            all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i) + 1);
            of_thread() = std::move(all);
            throw;
        }
    }
}

}  // namespace weir::python
