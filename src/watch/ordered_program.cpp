#include "weir/detail/ordered_program.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "order/history.hpp"
#include "order/mark.hpp"
#include "order/plan.hpp"
#include "watch/recent.hpp"
#include "weir/access.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::detail {

/// What the host has found complete. Not nested in the class, which is exported: its table of functions would be, too.
struct complete_epochs final : order::watermarks {
    std::vector<order::epoch> epochs;  ///< by timeline

    [[nodiscard]] order::epoch completed(order::timeline_id timeline) const noexcept override {
        return timeline < epochs.size() ? epochs[timeline] : 0;
    }
    void add(order::point one) {
        if (epochs.size() <= one.timeline) {
            epochs.resize(one.timeline + std::size_t{1});
        }
        epochs[one.timeline] = std::max(epochs[one.timeline], one.at);
    }
    void add(const order::mark& one) {
        add(one.at);
        if (one.known) {
            one.known->for_each([&](order::point each) { add(each); });
        }
    }
};

/// Its parts are nested here, and have linkage, since several files may be compiled as one.
struct ordered_program::state {
    /// An event that was recorded into a stream.
    struct record {
        order::mark at;
        void* event = nullptr;
    };

    /// Its timeline is its place in `streams`.
    struct known_stream {
        watched_stream which;
        order::epoch tail = 0;
        std::vector<order::epoch> under_way;  ///< operations that threads are about to put there, the first one first
        order::clock known;                   ///< what it comes after, on other streams
        std::deque<record> records;           ///< the oldest first
        bool may_end = false;                 ///< then there is a record behind each operation
    };

    /// Memory from an address on. Stays when it is freed: then its history is what may still happen to it.
    struct memory {
        std::uint64_t bytes = 0;
        bool in_use = false;
        bool is_new =
            false;  ///< in use, and nothing has used it yet: `bytes`, and the history, are those of the former owner
        bool is_given_out = false;  ///< by the allocator; else it may be a part of what is
        std::uint64_t used_by = 0;  ///< the last operation, as `begun` counted it
        std::uint64_t uses = 0;     ///< its accesses
        order::history history;

        [[nodiscard]] bool is_of_former_owner() const noexcept { return !in_use || is_new; }
    };
    using memories = std::map<std::uint64_t, memory>;

    /// What an access is to.
    struct place {
        memory* in;
        std::uint64_t from;  ///< where in it the access has the beginning

        [[nodiscard]] order::footprint of(const order::footprint& where) const {
            return {where.begin + from, where.end + from, where.shape};
        }
    };

    /// Records of a stream from which on the complete ones are looked for, and the number that is kept.
    static constexpr std::size_t many_records = 16;
    static constexpr std::size_t most_records = 64;

    library_events* events = nullptr;
    mutable detail::mutex mutex;  ///< guards what follows, and is held while events are recorded and waited for
    std::deque<known_stream> streams;
    std::map<watched_stream, order::timeline_id> timelines;
    order::timeline_id last_timeline = 0;                     ///< the one that was asked for last
    std::unordered_map<std::uint64_t, order::mark> recorded;  ///< by the program, by event
    memories all;
    recent<memories::iterator> last_found;  ///< in `all`
    std::vector<place> used;                ///< by the operation that begins; its room is used again
    std::uint64_t begun = 0;                ///< how many operations have begun
    complete_epochs done;
    std::map<int, std::vector<void*>> spare;  ///< events that are not in use, by device
    std::uint64_t waits = 0;
    std::uint64_t parts_taken = 0;  ///< entries in use that became part of another: places in them are gone

    order::timeline_id timeline(watched_stream which) {
        if (last_timeline < streams.size() && streams[last_timeline].which == which) {
            return last_timeline;
        }
        const auto [found, is_new] = timelines.try_emplace(which, static_cast<order::timeline_id>(streams.size()));
        if (is_new) {
            streams.emplace_back().which = which;
            streams.back().tail = 1;  // what it had got before anything was seen
        }
        last_timeline = found->second;
        return last_timeline;
    }
    /// Else nothing waits for anything.
    [[nodiscard]] bool has_several_streams() const noexcept { return streams.size() > 1; }
    /// What the stream has got for certain.
    [[nodiscard]] order::mark now(order::timeline_id timeline) const {
        const known_stream& stream = streams[timeline];
        return {{timeline, stream.under_way.empty() ? stream.tail : stream.under_way.front() - 1}, stream.known};
    }

    /// The stream comes after the mark from now on.
    void join(known_stream& stream, const order::mark& past) {
        if (stream.known && past.at.at <= stream.known->at(past.at.timeline)) {
            return;  // what comes after a point comes after everything before it
        }
        order::frontier known = stream.known ? order::frontier(*stream.known) : order::frontier();
        known.merge(past.at);
        if (past.known) {
            known.merge(*past.known);
        }
        stream.known = order::make_clock(std::move(known));
    }

    void give_back(known_stream& stream, void* event) { spare[stream.which.device].push_back(event); }

    /// An event behind what the stream has got.
    const record& add_record(order::timeline_id timeline) {
        known_stream& stream = streams[timeline];
        while (stream.records.size() >= many_records &&
               (stream.records.size() >= most_records || events->is_complete(stream.records.front().event))) {
            const record& first = stream.records.front();
            if (stream.records.size() < most_records) {
                done.add(first.at);
            }
            give_back(stream, first.event);
            stream.records.pop_front();
        }
        std::vector<void*>& unused = spare[stream.which.device];
        void* former = nullptr;
        if (!unused.empty()) {
            former = unused.back();
            unused.pop_back();
        }
        stream.records.push_back({now(timeline), nullptr});
        try {
            stream.records.back().event = events->record(stream.which, former);
        } catch (...) {
            stream.records.pop_back();
            throw;
        }
        return stream.records.back();
    }

    /// The first event that is complete no earlier than the point.
    const record& event_behind(order::point point) {
        const std::deque<record>& all_of = streams[point.timeline].records;
        const auto found = std::lower_bound(all_of.begin(), all_of.end(), point.at,
                                            [](const record& one, order::epoch at) { return one.at.at.at < at; });
        return found != all_of.end() ? *found : add_record(point.timeline);
    }

    /// The stream waits for what the plan still needs.
    void wait_for(order::timeline_id timeline, order::plan& needed) {
        needed.resolve();
        for (const order::wait& one : needed.waits()) {
            const record& behind = event_behind(one.target.at);
            events->wait(streams[timeline].which, behind.event);
            ++waits;
            join(streams[timeline], behind.at);
        }
    }

    [[nodiscard]] order::plan plan_for(order::timeline_id timeline) const {
        return {timeline, streams[timeline].tail, streams[timeline].known, done, false};
    }

    memories::iterator find(std::uint64_t address) {
        if (const memories::iterator* const known = last_found.find(address)) {
            return *known;
        }
        const auto found = all.find(address);
        if (found != all.end()) {
            last_found.keep(address, found);
        }
        return found;
    }
    memories::iterator erase(memories::iterator one) {
        last_found.forget(one->first);
        return all.erase(one);
    }

    /// What a former owner had on both sides of `address` becomes two entries. So what is left of it never reaches over the beginning of other
    /// memory. Returns the first entry that does not begin before.
    memories::iterator split(std::uint64_t address) {
        const auto next = all.lower_bound(address);
        if (next == all.begin() || (next != all.end() && next->first == address)) {
            return next;
        }
        memory& before = std::prev(next)->second;
        const std::uint64_t begin = std::prev(next)->first;
        if (!before.is_of_former_owner() || begin + before.bytes <= address) {
            return next;
        }
        const auto rest = all.try_emplace(next, address);
        rest->second.bytes = begin + before.bytes - address;
        rest->second.history = before.history;
        before.bytes = address - begin;
        return rest;
    }
    /// The memory that begins at `address`.
    memories::iterator entry(std::uint64_t address) {
        if (const auto known = find(address); known != all.end()) {
            return known;
        }
        return all.try_emplace(split(address), address);
    }

    /// The memory in use that has the address inside, behind its beginning. None if that is not known.
    memories::iterator around(std::uint64_t address) {
        auto next = all.lower_bound(address);
        while (next != all.begin() && !(--next)->second.in_use) {
        }
        const bool is_around = next != all.end() && next->first < address && next->second.in_use &&
                               !next->second.is_new && address - next->first < next->second.bytes;
        return is_around ? next : all.end();
    }

    /// Memory in use has at least so many bytes from now on: the histories of what lies in it become part of its own.
    void grow(memories::iterator one, std::uint64_t bytes) {
        std::uint64_t end = one->first + bytes;
        const auto is_part = [](const memory& other) { return other.in_use && !other.is_new; };  // that was met first
        for (auto next = std::next(one); next != all.end() && next->first < end; ++next) {
            end = std::max(end, is_part(next->second) ? next->first + next->second.bytes : end);
        }
        split(end);
        one->second.bytes = end - one->first;
        for (auto next = std::next(one); next != all.end() && next->first < end;) {
            memory& other = next->second;
            if (other.is_new) {
                ++next;
                continue;
            }
            if (is_part(other)) {
                other.history.die(other.bytes, done);
                ++parts_taken;
            }
            one->second.history.merge_death(other.history, one->second.bytes, done);
            next = erase(next);
        }
    }

    void let_go(memories::iterator of) {
        memory& one = of->second;
        one.in_use = false;
        one.is_new = false;
        one.is_given_out = false;
        one.history.die(one.bytes, done);
        if (one.history.empty()) {
            erase(of);
        }
    }

    /// The memory that an access is to. If nothing has used it yet, its history becomes what may still happen to its bytes.
    place of(const watched_access& access) {
        const auto found = find(access.memory);
        if (found != all.end() && !found->second.is_of_former_owner()) {
            if (found->second.bytes < access.bytes) {
                grow(found, access.bytes);
            }
            return {&found->second, 0};
        }
        if (found == all.end()) {
            // Packages that share memory may have other views of where it begins.
            if (const auto whole = around(access.memory); whole != all.end()) {
                const std::uint64_t from = access.memory - whole->first;
                if (whole->second.bytes < from + access.bytes) {
                    grow(whole, from + access.bytes);
                }
                return {&whole->second, from};
            }
        }
        const auto one = found != all.end() ? found : entry(access.memory);
        if (one->second.is_new && one->second.bytes == access.bytes) {  // as the former owner had it
            one->second.is_new = false;
            return {&one->second, 0};
        }
        split(access.memory + access.bytes);  // while this is the former owner's, too
        one->second.in_use = true;            // if it was not, its allocation was not seen
        one->second.is_new = false;
        grow(one, access.bytes);
        return {&one->second, 0};
    }

    /// Sets `used` to what all accesses of an operation are to, with room for them.
    void find_used(std::span<const watched_access> accesses) {
        std::uint64_t before = 0;
        do {
            before = parts_taken;
            used.clear();
            for (const watched_access& each : accesses) {
                used.push_back(of(each));
            }
        } while (before != parts_taken);
        ++begun;
        for (const place& each : used) {
            memory& one = *each.in;
            one.uses = one.used_by == begun ? one.uses + 1 : 1;
            one.used_by = begun;
            one.history.reserve(one.uses);
        }
    }

    void note(order::point at, const watched_access& access, const place& to) const {
        to.in->history.record(to.of(access.where), access.mode, {at, streams[at.timeline].known}, done,
                              order::accessor::weir, true);
    }

    /// What is not known to be over, and conflicts with an access.
    std::vector<order::point> unfinished_before(const watched_access& access) {
        std::vector<order::point> found;
        const place to = of(access);
        to.in->history.conflicts(to.of(access.where), access.mode, [&](const order::past_access& past, order::reason) {
            if (!done.is_complete(past.when.at)) {
                found.push_back(past.when.at);
            }
        });
        return found;
    }

    void host_waited(const order::mark& past) {
        done.add(past);
        for (known_stream& stream : streams) {
            while (!stream.records.empty() && done.is_complete(stream.records.front().at.at)) {
                give_back(stream, stream.records.front().event);
                stream.records.pop_front();
            }
        }
    }
};

ordered_program::ordered_program(library_events& events) : state_(std::make_unique<state>()) {
    state_->events = &events;
}

ordered_program::~ordered_program() {
    for (const state::known_stream& stream : state_->streams) {
        for (const state::record& one : stream.records) {
            state_->events->destroy(one.event);
        }
    }
    for (const auto& [device, unused] : state_->spare) {
        for (void* const one : unused) {
            state_->events->destroy(one);
        }
    }
}

std::uint64_t ordered_program::operation_begins(watched_stream on, std::span<const watched_access> accesses) {
    const std::lock_guard lock(state_->mutex);
    const order::timeline_id self = state_->timeline(on);
    state::known_stream& stream = state_->streams[self];
    state_->find_used(accesses);
    const std::vector<state::place>& used = state_->used;
    order::plan needed = state_->plan_for(self);
    if (state_->has_several_streams()) {
        for (std::size_t i = 0; i < accesses.size(); ++i) {
            used[i].in->history.require(needed, used[i].of(accesses[i].where), accesses[i].mode, true);
        }
    }
    stream.under_way.reserve(stream.under_way.size() + 1);
    state_->wait_for(self, needed);
    const order::point at{self, ++stream.tail};
    stream.under_way.push_back(at.at);
    for (std::size_t i = 0; i < accesses.size(); ++i) {
        state_->note(at, accesses[i], used[i]);
    }
    return at.at;
}

void ordered_program::operation_ends(watched_stream on, std::uint64_t number, std::span<const watched_access> results,
                                     bool may_end) {
    const std::lock_guard lock(state_->mutex);
    const order::timeline_id self = state_->timeline(on);
    std::erase(state_->streams[self].under_way, number);
    for (const watched_access& each : results) {
        const state::place to = state_->of(each);
        to.in->history.reserve(1);
        state_->note({self, number}, each, to);
    }
    if (may_end) {
        state_->streams[self].may_end = true;
        state_->add_record(self);
    }
}

void ordered_program::leaves(watched_stream on) {
    const std::lock_guard lock(state_->mutex);
    const auto found = state_->timelines.find(on);
    if (found == state_->timelines.end()) {
        return;
    }
    const state::known_stream& stream = state_->streams[found->second];
    if (stream.records.empty() || stream.records.back().at.at.at < state_->now(found->second).at.at) {
        state_->add_record(found->second);
    }
}

void ordered_program::host_access(const watched_access& what) {
    std::unique_lock lock(state_->mutex);
    for (const order::point past : state_->unfinished_before(what)) {
        if (!state_->done.is_complete(past)) {
            const state::record behind = state_->event_behind(past);
            // Others go on meanwhile. If the event is used again, this waits for longer.
            lock.unlock();
            state_->events->synchronize(behind.event);
            lock.lock();
            state_->host_waited(behind.at);
            state_->done.add(past);
        }
    }
}

bool ordered_program::is_over(const watched_access& what) {
    const std::lock_guard lock(state_->mutex);
    for (const order::point past : state_->unfinished_before(what)) {
        if (!state_->done.is_complete(past)) {
            const state::record& behind = state_->event_behind(past);
            if (!state_->events->is_complete(behind.event)) {
                return false;
            }
            state_->host_waited(order::mark(behind.at));
            if (!state_->done.is_complete(past)) {
                return false;  // another thread is about to put it there
            }
        }
    }
    return true;
}

void ordered_program::allocated(std::uint64_t address, watched_stream on) {
    const std::lock_guard lock(state_->mutex);
    const auto found = state_->entry(address);
    found->second.in_use = false;
    const order::timeline_id self = state_->timeline(on);
    if (state_->has_several_streams()) {
        order::plan needed = state_->plan_for(self);
        // How large it is is not known: up to the next memory that is in use.
        for (auto next = found; next != state_->all.end() && !next->second.in_use; ++next) {
            next->second.history.require(needed, order::footprint{0, next->second.bytes}, access_mode::write, true);
        }
        state_->wait_for(self, needed);
    }
    found->second.in_use = true;
    found->second.is_new = true;
    found->second.is_given_out = true;
}

void ordered_program::freed(std::uint64_t address) {
    const std::lock_guard lock(state_->mutex);
    const auto found = state_->find(address);
    if (found == state_->all.end()) {
        return;
    }
    if (found->second.is_new) {  // only parts of it were used, if anything
        for (auto next = std::next(found); next != state_->all.end() && !next->second.is_given_out;) {
            state_->let_go(next++);
        }
    }
    state_->let_go(found);
}

void ordered_program::event_recorded(std::uint64_t event, watched_stream on) {
    const std::lock_guard lock(state_->mutex);
    state_->recorded[event] = state_->now(state_->timeline(on));
}

void ordered_program::event_gone(std::uint64_t event) {
    const std::lock_guard lock(state_->mutex);
    state_->recorded.erase(event);
}

void ordered_program::stream_waits(watched_stream on, std::uint64_t event) {
    const std::lock_guard lock(state_->mutex);
    const auto found = state_->recorded.find(event);
    if (found != state_->recorded.end()) {
        const order::timeline_id self = state_->timeline(on);
        if (found->second.at.timeline != self) {
            state_->join(state_->streams[self], found->second);
        }
    }
}

void ordered_program::host_waited_for_event(std::uint64_t event) {
    const std::lock_guard lock(state_->mutex);
    const auto found = state_->recorded.find(event);
    if (found != state_->recorded.end()) {
        state_->host_waited(found->second);
    }
}

void ordered_program::host_waited_for_stream(watched_stream one) {
    const std::lock_guard lock(state_->mutex);
    const auto found = state_->timelines.find(one);
    if (found != state_->timelines.end()) {
        state_->host_waited(state_->now(found->second));
    }
}

void ordered_program::host_waited_for_device(int device) {
    const std::lock_guard lock(state_->mutex);
    for (const auto& [which, timeline] : state_->timelines) {
        if (which.device == device) {
            state_->host_waited(state_->now(timeline));
        }
    }
}

void ordered_program::join_all() {
    const std::lock_guard lock(state_->mutex);
    std::vector<order::mark> all;
    for (order::timeline_id each = 0; each < state_->streams.size(); ++each) {
        if (state_->streams[each].tail > 1) {  // else only the program's own events are there
            all.push_back(state_->now(each));
        }
    }
    for (const order::mark& self : all) {
        if (state_->streams[self.at.timeline].may_end) {
            continue;
        }
        order::plan needed = state_->plan_for(self.at.timeline);
        for (const order::mark& other : all) {
            if (other.at.timeline != self.at.timeline) {
                needed.need(other, order::reason::dependency);
            }
        }
        state_->wait_for(self.at.timeline, needed);
    }
}

std::vector<int> ordered_program::devices() const {
    const std::lock_guard lock(state_->mutex);
    std::vector<int> found;
    for (const auto& each : state_->timelines) {  // by device
        if (found.empty() || found.back() != each.first.device) {
            found.push_back(each.first.device);
        }
    }
    return found;
}

std::uint64_t ordered_program::waits() const noexcept {
    const std::lock_guard lock(state_->mutex);
    return state_->waits;
}

}  // namespace weir::detail
