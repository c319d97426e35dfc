#include "check/detector.hpp"

#include <algorithm>
#include <utility>

#include "check/wording.hpp"
#include "observe/acting.hpp"
#include "observe/deferred_reports.hpp"
#include "weir/error.hpp"

namespace weir::check {

namespace {

std::string key_of(const race_access& first, const race_access& second) {
    return first.file + ":" + std::to_string(first.line) + "\n" + second.file + ":" + std::to_string(second.line) +
           (second.is_drop ? "\ndrop" : "");
}

const char* kind_of(order::access_mode first, order::access_mode second) noexcept {
    if (second == order::access_mode::read) {
        return "RAW";
    }
    return first == order::access_mode::write ? "WAW" : "WAR";
}

}  // namespace

template <class Act>
void detector::note(Act&& act) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        order_.act_for(observe::acting_for::current());
        act();
    } catch (const std::bad_alloc&) {
        ++lost_;
    }
}

void detector::memory::clear() {
    history.clear();
    packages.clear();
    former.clear();
    bytes = 0;
    size = 0;
    allocated = {};
    token.reset();
    place = {};
    allocator.reset();
    keepers.clear();
    end = {};
    shared = observe::sharing::none;
    address = 0;
    extent = 0;
    others.clear();
}

std::size_t detector::number_of(std::string_view device) {
    const auto found = std::find(devices_.begin(), devices_.end(), device);
    const auto number = static_cast<std::size_t>(found - devices_.begin());
    if (found == devices_.end()) {
        devices_.emplace_back(device);
    }
    return number;
}

detector::memory& detector::of(std::uint64_t resource) {
    const auto found = memory_.find(resource);
    if (found != memory_.end()) {
        return found->second;
    }
    if (spare_.empty()) {
        return memory_[resource];
    }
    auto node = std::move(spare_.back());
    spare_.pop_back();
    node.key() = resource;
    node.mapped().clear();
    return memory_.insert(std::move(node)).position->second;
}

bool detector::left_to_weir(const observe::observed_access& access) const noexcept {
    return access.is_internal || (access.ordering == ordering_mode::automatic && !options_.assume_manual);
}

void detector::join_packages(agent self, const observe::observed_operation& what) {
    if (options_.assume_manual) {
        return;
    }
    const auto join = [&](frontiers::point target) {
        if (const auto past = order_.find(target)) {
            order_.join(self, *past);
        }
    };
    for (const frontiers::point entry : what.entries) {
        join(entry);
    }
    for (const observe::observed_wait& wait : what.waits) {
        if (wait.why == order::reason::exit && !wait.hazard_of_manual) {
            join(wait.target);
        }
    }
}

template <class Join>
void detector::join_conflicts(const observe::observed_access& access, Join&& join) {
    if (left_to_weir(access)) {
        const memory& one = of(access.resource);
        one.history.conflicts(access.where, access.mode, [&](const past_access& past) { join(past.when); });
        one.packages.conflicts(access.where, access.mode, [&](const past_access& past) { join(past.when); });
    }
}

void detector::stream_made(const observe::stream_info& stream) {
    note([&] { order_.of(stream); });
}

void detector::stream_gone(const observe::stream_info& stream, frontiers::point last) {
    note([&] { gone_.add(stream, last); });
}

void detector::operation(const observe::observed_operation& what) {
    note([&] {
        const agent self = order_.of(*what.stream);
        const moment now{self, what.epoch};
        order_.join_actor(self);
        for (const frontiers::point target : what.after) {
            events_.waited(now, target, order_, what.from.where);
            if (const auto past = order_.find(target)) {
                order_.join(self, *past);
            }
        }
        join_packages(self, what);
        // Accesses that Weir orders come first: their waits hold the whole operation back, so they order its other accesses, too. It counts
        // that Weir orders the two, and not which waits Weir issued at that moment.
        for (const auto& access : what.accesses) {
            join_conflicts(access, [&](moment past) { order_.join(self, past); });
        }
        order_.reach(self, what.epoch);
        const auto is_before = [&](const past_access& past) { return order_.ordered(self, past.when); };
        touched_.clear();
        for (const auto& access : what.accesses) {
            touched_.push_back(&of(access.resource));
            look_back(access, *touched_.back(),
                      {access.where, access.mode, self, what.from, access.touches, false, left_to_weir(access)},
                      is_before);
        }
        for (std::size_t i = 0; i < what.accesses.size(); ++i) {
            const observe::observed_access& access = what.accesses[i];
            memory& one = *touched_[i];
            one.history.replace(access.where, access.mode, access.touches, is_before);
            for (const std::uint64_t number : one.others) {
                memory& other = of(number);
                bool is_cut = false;
                const order::footprint there =
                    part_within(access.where, one.address, other.address, other.extent, is_cut);
                // Weir orders by what is in a history of its own, whatever a library did since.
                if (other.shared == observe::sharing::theirs && !is_cut) {
                    other.history.replace(there, access.mode, access.touches, is_before);
                }
            }
            one.history.add(
                {access.resource, access.where, access.mode, now, what.from, left_to_weir(access), access.touches});
        }
    });
}

void detector::event_recorded(std::uint64_t event, const observe::stream_info& stream, frontiers::point at,
                              const source_location& where) {
    note([&] {
        const agent self = order_.of(stream);
        order_.record(self, at.at);
        events_.recorded(event, {self, at.at}, at, where);
    });
}

void detector::stream_waits(const observe::stream_info& stream, frontiers::epoch at, frontiers::point target,
                            std::uint64_t event, observe::wait_made /*how*/, const source_location& where) {
    note([&] {
        const agent self = order_.of(stream);
        order_.join_actor(self);
        if (event != 0) {
            events_.waited(event, {self, at}, target, order_, where);
        }
        if (const auto past = order_.find(target)) {
            order_.join(self, *past);
        }
        order_.reach(self, at);
    });
}

void detector::host_waited(frontiers::point target, const source_location& /*where*/) {
    note([&] {
        if (const auto past = order_.find(target)) {
            order_.actor_joins(*past);
        }
    });
}

void detector::device_waited(std::string_view device, const source_location& /*where*/) {
    note([&] {
        gone_.waited(device, [&](frontiers::point last) {
            if (const auto past = order_.find(last)) {
                order_.actor_joins(*past);
            }
        });
    });
}

void detector::shares(std::uint64_t resource, std::uint64_t bytes, observe::sharing how, std::uint64_t address) {
    note([&] { meet(resource, of(resource), how, address, bytes); });
}

void detector::device_finished(std::string_view device) {
    note([&] { order_.actor_joins_device(device); });
}

void detector::host_access(const observe::observed_access& what, const source_location& where) {
    note([&] {
        join_conflicts(what, [&](moment past) { order_.actor_joins(past); });
        look_back(what, of(what.resource),
                  {what.where, what.mode, std::nullopt, {nullptr, where}, what.touches, false, left_to_weir(what)},
                  [&](const past_access& past) { return order_.ordered_for_actor(past.when); });
        // Not kept: what is enqueued later comes after it, because the host does one thing after the other, and a view that lives on holds
        // back what conflicts with it (rule X7).
    });
}

void detector::host_found_ready(const observe::observed_access& what) {
    note([&] {
        if (const auto found = memory_.find(what.resource); found != memory_.end()) {
            const auto join = [&](const past_access& past) { order_.actor_joins(past.when); };
            found->second.history.conflicts(what.where, what.mode, join);
            found->second.packages.conflicts(what.where, what.mode, join);
        }
    });
}

void detector::host_met_package(frontiers::point entry) {
    note([&] {
        const auto past = order_.find(entry);
        if (past && !options_.assume_manual) {
            order_.actor_joins(*past);
        }
    });
}

void detector::package_used(std::uint64_t resource, const order::footprint& where, order::access_mode mode,
                            frontiers::point at) {
    note([&] {
        if (const auto when = order_.find(at)) {
            access_history& packages = of(resource).packages;
            packages.replace(where, mode, observe::certainty::definite,
                             [&](const past_access& past) { return order_.ordered(past.when, *when); });
            packages.add({resource, where, mode, *when, {}});
        }
    });
}

template <class IsBefore>
void detector::look_back(const observe::observed_access& access, memory& one, const present& second,
                         IsBefore&& is_before) {
    one.size = access.bytes;
    meet(access.resource, one, access.shared, access.address, access.bytes);
    if (access.token != nullptr && !one.token) {
        one.token = access.token;
    }
    one.history.conflicts(access.where, access.mode, [&](const past_access& past) {
        if (!is_before(past)) {
            found(fault::unordered, past, second, access.resource, one);
        }
    });
    if (!one.others.empty()) {
        look_across(access.resource, one, second, is_before);
    }
    // Weir's waits for former owners order nothing here: which memory an owner gets depends on timing.
    const bool is_safe = left_to_weir(access);
    if (one.former.all().empty()) {
        return;
    }
    one.former.conflicts(access.where, access.mode, [&](const past_access& past) {
        if (!is_safe && !is_before(past)) {
            found(fault::early_reuse, past, second, access.resource, one);
        }
    });
    one.former.replace(access.where, access.mode, access.touches,
                       [&](const past_access& past) { return is_safe || is_before(past); });
}

template <class IsBefore>
void detector::look_across(std::uint64_t resource, const memory& one, const present& second, IsBefore&& is_before) {
    for (const std::uint64_t number : one.others) {
        // The report is of the library's resource, whichever side comes second.
        memory& other = of(number);
        const bool is_theirs = one.shared == observe::sharing::theirs;
        const std::uint64_t described = is_theirs ? resource : number;
        present here = second;
        bool is_cut = false;
        if (!is_theirs) {
            here.where = part_within(second.where, one.address, other.address, other.extent, is_cut);
            here.touches = is_cut ? observe::certainty::possible : second.touches;
        }
        for (const past_access& past : other.history.all()) {
            if (past.mode == order::access_mode::read && second.mode == order::access_mode::read) {
                continue;
            }
            past_access there = is_theirs ? moved(past, other.address, one.address, one.extent) : past;
            there.resource = described;
            if (order::overlap(there.where, here.where) && !is_before(past)) {
                found(fault::unordered, there, here, described, is_theirs ? one : other);
            }
        }
    }
}

void detector::allocated(const observe::observed_allocation& what) {
    note([&] {
        memory& one = of(what.resource);
        one.bytes = what.bytes;
        one.allocated = what.from;
        if (what.stream != nullptr) {
            one.allocator = order_.of(*what.stream);
        }
        if (what.address != 0) {
            one.place = {number_of(what.device), what.address, what.bytes, {}};
            if (is_of_package(one)) {
                one.place.stream = one.allocator;
            }
            freed_.take(one.place, one.former);
        }
        if (what.shared == observe::sharing::theirs) {
            forget_untold(what.address, what.bytes);
        }
        meet(what.resource, one, what.shared, what.address, what.bytes);
        if (one.allocator) {
            judge_early(*one.allocator);
        }
    });
}

void detector::released(std::uint64_t resource) {
    note([&] {
        const auto found = memory_.find(resource);
        if (found != memory_.end() && found->second.allocator) {
            found->second.end.release(order_, order_.known(*found->second.allocator));
        }
    });
}

void detector::kept_until(std::uint64_t resource, const observe::stream_info& stream) {
    note([&] { of(resource).keepers.push_back(order_.of(stream)); });
}

void detector::unseen(std::string_view what) {
    note([&] {
        if (std::find(unseen_.begin(), unseen_.end(), what) == unseen_.end()) {
            unseen_.emplace_back(what);
        }
    });
}

void detector::dropped(std::uint64_t resource) {
    note([&] {
        const auto found = memory_.find(resource);
        if (found != memory_.end()) {
            part(resource, found->second);
            judge_end(resource, found->second);
            auto node = memory_.extract(found);  // this number is never used again
            if (constexpr std::size_t most_spare = 256; spare_.size() < most_spare) {
                spare_.push_back(std::move(node));
            }
        }
    });
}

void detector::judge_end(std::uint64_t resource, memory& one) {
    if (one.token.has_value()) {
        return;  // nothing is freed that others could use
    }
    const bool of_package = is_of_package(one);
    std::vector<past_access>& strays = strays_;
    strays = one.former.all();
    early_end early;
    for (const past_access& past : one.history.all()) {
        if (past.left_to_weir || std::count(one.keepers.begin(), one.keepers.end(), past.when.stream) != 0) {
            continue;
        }
        if (one.bytes == 0) {
            unjudged_drops_ += order_.ordered_for_actor(past.when) ? 0U : 1U;
        } else if (!one.allocator) {
            break;  // another owner's memory, which is given back when the last access is complete (rule L4)
        } else if (past.when.stream == *one.allocator || one.end.comes_after(past.when, order_.known(*one.allocator))) {
            if (of_package && !order_.ordered_for_actor(past.when)) {
                strays.push_back(past);
            }
        } else {
            strays.push_back(past);
            early.accesses.push_back(past);
        }
    }
    if (one.place.bytes != 0) {
        freed_.add(one.place, strays);
    }
    if (early.accesses.empty()) {
        return;
    }
    early.resource = resource;
    early.of = std::move(one);
    if (of_package) {
        early_.push_back(std::move(early));
    } else {
        report_early(early, early.accesses);
    }
}

void detector::report_early(const early_end& one, const std::vector<past_access>& accesses) {
    for (const past_access& past : accesses) {
        const present drop{{0, one.of.bytes},           order::access_mode::write,    one.of.allocator,
                           {nullptr, one.of.allocated}, observe::certainty::definite, true};
        found(fault::use_after_free, past, drop, one.resource, one.of);
    }
}

void detector::judge_early(agent allocator) {
    if (early_.empty()) {
        return;
    }
    order_.join_actor(allocator);
    std::vector<early_end> others;
    for (early_end& one : std::exchange(early_, {})) {
        if (one.of.allocator != allocator) {
            others.push_back(std::move(one));
            continue;
        }
        std::erase_if(one.accesses, [&](const past_access& past) { return order_.ordered(allocator, past.when); });
        report_early(one, one.accesses);
    }
    early_ = std::move(others);
}

void detector::found(fault what, const past_access& first, const present& second, std::uint64_t resource,
                     const memory& of) {
    race one;
    one.first = describe(first.from, first.when.stream);
    one.second = describe(second.from, second.stream);
    one.second.is_drop = second.is_drop;
    // A drop frees all of the memory, so the first access may happen anywhere in it.
    const bool shares_bytes = second.is_drop || compare(first.where, second.where) == order::overlap_kind::certain;
    const bool is_certain =
        shares_bytes && first.touches == observe::certainty::definite && second.touches == observe::certainty::definite;
    one.certainty = is_certain ? "definite" : "possible";
    std::string key = key_of(one.first, one.second);
    const auto known = by_lines_.find(key);
    if (known != by_lines_.end()) {
        race& before = races_[known->second];
        ++before.times;
        if (is_certain) {
            before.certainty = one.certainty;
        }
        if (options_.mode == check_mode::raise) {
            raise(before, second.is_drop);
        }
        return;
    }
    complete(one, what, first, second, resource, of);
    if (options_.mode == check_mode::raise) {
        raise(one, second.is_drop);
    } else if (options_.mode == check_mode::warn) {
        leave(std::make_shared<observe::deferred_report>(warn_, "weir check: " + text_of(one)), second.is_drop);
    }
    races_.push_back(std::move(one));
    by_lines_.emplace(std::move(key), races_.size() - 1);
}

void detector::leave(std::shared_ptr<observe::deferred_report> one, bool is_drop) {
    std::erase_if(left_, [](const auto& each) { return !each->is_left(); });
    // What an operation drops at its end has no call: its thread may run other operations next, which have no part in the race.
    if (!order_.body() || !is_drop) {
        observe::deferred_reports::leave(one);
    }
    left_.push_back(std::move(one));
}

void detector::raise(const race& one, bool is_drop) {
    const bool is_left =
        std::any_of(left_.begin(), left_.end(), [](const auto& each) { return each->is_error() && each->is_left(); });
    if (!is_left || !is_drop) {  // one error is enough for any number of drops
        std::string text = "weir check: " + text_of(one);
        auto error = std::make_exception_ptr(race_error(text));
        leave(std::make_shared<observe::deferred_report>(std::move(error), std::move(text)), is_drop);
    }
}

void detector::settle(bool may_throw) {
    note([&] {
        for (const early_end& one : std::exchange(early_, {})) {
            report_early(one, one.accesses);
        }
    });
    std::vector<std::shared_ptr<observe::deferred_report>> all;
    {
        const std::lock_guard lock(mutex_);
        all.swap(left_);
    }
    if (!may_throw) {
        for (const auto& one : all) {
            if (one->take()) {
                one->say();
            }
        }
        return;
    }
    observe::deferred_reports::settle_now(all);
}

void detector::complete(race& one, fault what, const past_access& first, const present& second, std::uint64_t resource,
                        const memory& of) const {
    const auto touches = [](race_access& access, const order::footprint& where, order::access_mode mode) {
        access.range = {where.begin, where.end};
        access.mode = mode;
    };
    touches(one.first, first.where, first.mode);
    touches(one.second, second.where, second.mode);
    one.first.resource = first.resource;
    one.second.resource = resource;
    one.second.array = of.token
                           ? (of.token->empty() ? "token #" + std::to_string(resource) : "token \"" + *of.token + "\"")
                           : "memory #" + std::to_string(resource) + " of " +
                                 std::to_string(of.bytes == 0 ? of.size : of.bytes) + " bytes";
    one.first.is_token = of.token.has_value();
    one.second.is_token = of.token.has_value();
    if (of.allocated.line != 0) {
        one.second.array += std::string(of.token ? ", made at " : ", allocated at ") + of.allocated.file + ":" +
                            std::to_string(of.allocated.line);
    }
    one.first.array = first.resource == resource
                          ? one.second.array
                          : "memory #" + std::to_string(first.resource) + ", which was dropped before";
    if (what == fault::use_after_free) {
        one.kind = "use-after-free";
    } else if (what == fault::early_reuse) {
        one.kind = "early-reuse";
    } else if (const auto stale = stale_wait_before(first, second)) {
        one.kind = "stale-event";
        one.reason = reason_of(*stale);
    } else if (second.stream && order_.default_of(first.when.stream) != order_.default_of(*second.stream)) {
        one.kind = "default-stream";
        one.reason = reason_of(one, order_.default_of(first.when.stream), order_.default_of(*second.stream));
    } else {
        one.kind = second.stream ? kind_of(first.mode, second.mode) : "host";
    }
    const std::string& by_first = order_.package(first.when.stream);
    const std::string& by_second = second.stream ? order_.package(*second.stream) : by_first;
    if (by_first != by_second && (first.left_to_weir || second.left_to_weir)) {
        // One of the two is Weir's, and empty.
        one.reason += (one.reason.empty() ? "" : " ") + reason_of_sharing(by_first + by_second);
    }
    one.mend = mend_of(one, by_first, by_second);
}

std::optional<stale_wait> detector::stale_wait_before(const past_access& first, const present& second) const {
    return events_.find(first.when, order_, [&](moment wait) {
        return second.stream ? order_.ordered(*second.stream, wait) : order_.ordered_for_actor(wait);
    });
}

race_access detector::describe(const runtime::site& from, const std::optional<agent>& stream) const {
    race_access one;
    one.where = from.where;
    one.file = from.where.file;
    one.line = from.where.line;
    one.function = from.where.function;
    one.stream = stream ? order_.name(*stream) : "host";
    one.stream_id = stream ? order_.id(*stream) : 0;
    one.label = from.label == nullptr ? "" : from.label;
    return one;
}

weir::report detector::report() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> unseen = unseen_;
    if (lost_ != 0) {
        unseen.push_back("memory ran out during " + std::to_string(lost_) +
                         " calls, which were checked in part or not at all");
    }
    if (unjudged_drops_ != 0) {
        unseen.push_back("memory that was allocated before the check began was dropped after " +
                         std::to_string(unjudged_drops_) +
                         " accesses that may not have been over: start the check earlier to have them judged");
    }
    if (forgotten_untold_ != 0 && has_libraries_) {
        unseen.push_back(
            std::to_string(forgotten_untold_) +
            " accesses of Weir to memory of another library: what the library did to it afterwards was not "
            "compared with them");
    }
    if (freed_.forgotten() != 0) {
        unseen.push_back(
            std::to_string(freed_.forgotten()) +
            " accesses to memory that was dropped afterwards: later owners of the memory were not compared "
            "with them");
    }
    return {races_, std::move(unseen)};
}

}  // namespace weir::check
