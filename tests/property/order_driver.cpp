#include "order_driver.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "order/mode.hpp"

namespace order_test {

namespace order = weir::order;
using order::access_mode;
using order::epoch;
using order::footprint;
using order::frontier;
using order::point;
using order::reason;
using order::timeline_id;

namespace {

std::vector<timeline_id> names_or_indices(std::vector<timeline_id> names, std::size_t streams) {
    if (names.empty()) {
        names.resize(streams);
        std::iota(names.begin(), names.end(), timeline_id{0});
    }
    return names;
}

std::optional<weir::ordering_mode> mode_of(order_by mode) {
    if (mode == order_by::silent) {
        return std::nullopt;
    }
    return mode == order_by::weir ? weir::ordering_mode::automatic : weir::ordering_mode::manual;
}

footprint bytes(const touch& t) { return {static_cast<std::uint64_t>(t.begin), static_cast<std::uint64_t>(t.end)}; }

std::uint64_t size_of(const buffer& b) { return static_cast<std::uint64_t>(b.size); }

const char* name(reason why) {
    switch (why) {
        case reason::read_after_write:
            return "read after write";
        case reason::write_after_read:
            return "write after read";
        case reason::write_after_write:
            return "write after write";
        case reason::reuse:
            return "reuse";
        case reason::dependency:
            return "dependency";
        case reason::entry:
            return "entry";
        case reason::exit:
            return "exit";
    }
    return "?";
}

}  // namespace

driver::driver(const program& p, drive_options options)
    : program_(p),
      options_(std::move(options)),
      device_((options_.names = names_or_indices(options_.names, p.streams.size())), options_.completion, options_.pace,
              options_.seed),
      histories_(p.buffers.size()),
      events_(static_cast<std::size_t>(p.events)),
      current_(p.packages),
      entries_(p.streams.size()),
      bare_waits_(p.streams.size(), 0),
      adopted_(p.streams.size(), false) {
    for (const timeline_id timeline : options_.names) {
        streams_.emplace_back(timeline);
    }
    for (const buffer& b : p.buffers) {
        shared_.push_back(b.packages);
    }
    for (const int used : current_) {
        adopted_[static_cast<std::size_t>(used)] = true;
    }
    for (const step& at : p.steps) {
        if (at.what == action::move_package) {
            adopted_[static_cast<std::size_t>(at.stream)] = true;
        }
    }
    if (is(fault::watermark_ahead)) {
        device_.run_ahead();
    }
}

outcome driver::run() {
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
        device_.progress();
        const auto facts = device_.newly_over(operation(static_cast<int>(i)));
        done_.over.insert(done_.over.end(), facts.begin(), facts.end());
        play(program_.steps[i], static_cast<int>(i));
    }
    return std::move(done_);
}

void driver::play(const step& at, int index) {
    switch (at.what) {
        case action::launch:
            launch(at, index);
            break;
        case action::record: {
            mark& event = events_[static_cast<std::size_t>(at.object)];
            if (event.at.at == 0 || !is(fault::first_event)) {
                event = tail_of(at.stream, index);
            }
            break;
        }
        case action::wait_event: {
            mark target = events_[static_cast<std::size_t>(at.object)];
            if (is(fault::late_event) && target.at.at != 0) {
                target = tail_of(stream_of(target.at.timeline), index);
            }
            wait(at.stream, target, index);
            break;
        }
        case action::wait_stream:
            if (at.object != at.stream) {
                wait(at.stream, tail_of(at.object, index), index);
            }
            break;
        case action::host:
            host(at, index);
            break;
        case action::drop: {
            const auto b = static_cast<std::size_t>(at.object);
            histories_[b].die(size_of(program_.buffers[b]), device_);
            break;
        }
        case action::make:
            make(at.object);
            break;
        case action::foreign:
            device_.enqueue(current_[static_cast<std::size_t>(at.package)], operation(index), {});
            break;
        case action::move_package: {
            int& current = current_[static_cast<std::size_t>(at.package)];
            device_.enqueue(at.stream, operation(index), {{current, operation(index) - 1, at.stream, 0, ""}});
            current = at.stream;
            break;
        }
        case action::hand_out:
            hand_out(at, index);
            break;
    }
}

void driver::launch(const step& at, int index) {
    // Every second operation that a short plan can handle takes it.
    if (index % 2 == 0 && launch_shortly(at, index)) {
        return;
    }
    order::sequencer& mine = stream(at.stream);
    plan waits = mine.next(device_);
    need_accesses(waits, at);
    for (const int event : at.after) {
        need(waits, events_[static_cast<std::size_t>(event)], reason::dependency);
    }
    for (const int peer : peers(at)) {
        need_entry(waits, peer, index);
    }
    waits.resolve();
    const mark when = commit(at.stream, waits, operation(index));
    bare_waits_[static_cast<std::size_t>(at.stream)] = 0;
    for (const touch& t : at.touches) {
        remember(t, when);
    }
    for (const int peer : peers(at)) {
        if (peer == at.stream || is(fault::no_exit)) {
            continue;
        }
        plan exit = order::hand_back(stream(peer), when, device_);
        if (!exit.waits().empty()) {
            commit(peer, exit, aftermath(index));
        }
    }
}

// As the runtime does where a short plan can handle the operation; it must find the same waits. Returns whether it could.
bool driver::launch_shortly(const step& at, int index) {
    const bool all_by_weir =
        std::all_of(at.touches.begin(), at.touches.end(), [&](const touch& t) { return by_weir(t, at); });
    if (!is(fault::none) || !at.after.empty() || !all_by_weir || !peers(at).empty()) {
        return false;
    }
    order::sequencer& mine = stream(at.stream);
    order::short_plan found(mine.timeline(), mine.known());
    std::vector<bool> covers;
    std::vector<int> buffers;
    for (const touch& t : at.touches) {
        bool is_covered = false;
        const auto& past = histories_[static_cast<std::size_t>(t.buffer)];
        const access_mode mode = t.write ? access_mode::write : access_mode::read;
        const bool is_told = at.touches.size() == 1 ? past.require_alone(found, bytes(t), mode, is_covered, device_)
                                                    : past.require(found, bytes(t), mode, is_covered);
        if (!is_told) {
            return false;
        }
        covers.push_back(is_covered);
        buffers.push_back(t.buffer);
    }
    if (at.touches.size() != 1 && !found.resolve(device_)) {
        return false;
    }
    plan waits = mine.next(device_);
    need_accesses(waits, at);
    waits.resolve();
    const auto targets = [](std::span<const order::wait> all) {
        std::vector<std::pair<timeline_id, epoch>> named;
        for (const order::wait& one : all) {
            named.emplace_back(one.target.at.timeline, one.target.at.at);
        }
        std::sort(named.begin(), named.end());
        return named;
    };
    if (targets(found.waits()) != targets(waits.waits())) {
        throw std::logic_error("the short plan of step " + std::to_string(index) + " finds other waits");
    }
    const mark when = commit(at.stream, waits, operation(index), &found);
    bare_waits_[static_cast<std::size_t>(at.stream)] = 0;
    std::sort(buffers.begin(), buffers.end());
    const bool are_apart = std::adjacent_find(buffers.begin(), buffers.end()) == buffers.end();
    for (std::size_t i = 0; i < at.touches.size(); ++i) {
        const touch& t = at.touches[i];
        order::history& past = histories_[static_cast<std::size_t>(t.buffer)];
        if (covers[i] && are_apart) {
            past.record_covering(bytes(t), mark(when));
        } else {
            past.reserve(1);
            past.record(bytes(t), t.write ? access_mode::write : access_mode::read, when, device_,
                        order::accessor::weir, true);
        }
        sizes_.history = std::max(sizes_.history, past.accesses().size());
    }
    ++done_.short_plans;
    return true;
}

// A wait alone takes an epoch if it is issued.
void driver::wait(int on, const mark& target, int index) {
    plan waits = stream(on).next(device_);
    need(waits, target, reason::dependency);
    waits.resolve();
    if (!waits.waits().empty()) {
        commit(on, waits, operation(index));
        ++bare_waits_[static_cast<std::size_t>(on)];
    }
}

// The host waits for each point that conflicts and then does its access at once.
void driver::host(const step& at, int index) {
    const auto wait_for = [&](int other, int position) {
        device_.run_until(other, position);
        done_.host_waits.push_back({other, position, static_cast<int>(streams_.size()), operation(index), "host"});
    };
    if (is(fault::host_does_not_wait)) {
        return;
    }
    for (const touch& t : at.touches) {
        const bool hazards = by_weir(t, at);
        const order::history& past = histories_[static_cast<std::size_t>(t.buffer)];
        past.conflicts(bytes(t), t.write ? access_mode::write : access_mode::read,
                       [&](const order::past_access& access, reason) {
                           if (hazards || access.former_owner) {
                               const int other = stream_of(access.when.at.timeline);
                               wait_for(other, device_.position(other, access.when.at.at));
                           }
                       });
    }
    for (const int peer : peers(at)) {
        wait_for(peer, operation(index) - 1);
    }
}

void driver::make(int buffer) {
    const auto& it = program_.buffers[static_cast<std::size_t>(buffer)];
    if (is(fault::death_forgotten)) {
        return;
    }
    for (const int former : it.made_of) {
        histories_[static_cast<std::size_t>(buffer)].merge_death(histories_[static_cast<std::size_t>(former)],
                                                                 size_of(it), device_);
    }
}

// The package's stream comes after every access so far; from then on the package may read and write.
void driver::hand_out(const step& at, int index) {
    const auto b = static_cast<std::size_t>(at.object);
    const int to = current_[static_cast<std::size_t>(at.package)];
    plan waits = stream(to).next(device_);
    const footprint whole{0, size_of(program_.buffers[b])};
    histories_[b].conflicts(whole, access_mode::write,
                            [&](const order::past_access& access, reason) { need(waits, access.when, reason::exit); });
    for (std::size_t package = 0; package < current_.size(); ++package) {
        if ((shared_[b] >> package & 1U) != 0) {
            need_entry(waits, current_[package], index);
        }
    }
    waits.resolve();
    if (!waits.waits().empty()) {
        commit(to, waits, operation(index));
    }
    shared_[b] |= 1U << at.package;
}

int driver::stream_of(timeline_id timeline) const {
    const auto found = std::find(options_.names.begin(), options_.names.end(), timeline);
    return static_cast<int>(found - options_.names.begin());
}

bool driver::by_weir(const touch& t, const step& at) const {
    const auto array = mode_of(program_.buffers[static_cast<std::size_t>(t.buffer)].mode);
    const auto on =
        at.what == action::host ? std::nullopt : mode_of(program_.streams[static_cast<std::size_t>(at.stream)]);
    const auto process = *mode_of(program_.process);
    if (is(fault::outermost_mode)) {
        return process == weir::ordering_mode::automatic;
    }
    return order::effective_mode(array, on, mode_of(at.scope), process) == weir::ordering_mode::automatic;
}

// The distinct streams of the packages that share what the step touches, where Weir orders.
std::vector<int> driver::peers(const step& at) const {
    std::vector<int> found;
    for (const touch& t : at.touches) {
        for (std::size_t package = 0; package < current_.size() && by_weir(t, at); ++package) {
            const bool shares = (shared_[static_cast<std::size_t>(t.buffer)] >> package & 1U) != 0;
            if (shares && std::find(found.begin(), found.end(), current_[package]) == found.end()) {
                found.push_back(current_[package]);
            }
        }
    }
    return found;
}

// The mark of an event that is recorded on a stream now. A stream that others use, too, gets a fresh epoch.
order::mark driver::tail_of(int index, int step) {
    if (adopted_[static_cast<std::size_t>(index)]) {
        device_.stand(index, operation(step) - 1);
        return stream(index).enter_foreign();
    }
    mark tail = stream(index).record();
    if (is(fault::wait_without_epoch)) {
        tail.at.at -= static_cast<epoch>(bare_waits_[static_cast<std::size_t>(index)]);
    }
    return tail;
}

void driver::need(plan& into, const mark& target, reason why) {
    const fault skipped[] = {fault::no_read_after_write,  fault::no_write_after_read,
                             fault::no_write_after_write, fault::no_reuse,
                             fault::no_dependency,        fault::no_entry};
    if (static_cast<std::size_t>(why) < std::size(skipped) && is(skipped[static_cast<std::size_t>(why)])) {
        return;
    }
    const order::clock& known = stream(stream_of(into.self())).known();
    if (is(fault::epochs_ignored) && known && known->at(target.at.timeline) > 0) {
        return;
    }
    into.need({target.at, is(fault::clocks_ignored) ? nullptr : target.known.get()}, why);
}

void driver::need_accesses(plan& into, const step& at) {
    for (const touch& t : at.touches) {
        const auto& past = histories_[static_cast<std::size_t>(t.buffer)];
        const access_mode mode = t.write ? access_mode::write : access_mode::read;
        const bool hazards = by_weir(t, at);
        if (is(fault::none)) {
            past.require(into, bytes(t), mode, hazards);
            continue;
        }
        past.conflicts(bytes(t), mode, [&](const order::past_access& access, reason why) {
            if (hazards || access.former_owner) {
                need(into, access.when, why);
            }
        });
    }
}

void driver::need_entry(plan& into, int peer, int step) {
    mark& last = entries_[static_cast<std::size_t>(peer)];
    if (is(fault::no_entry)) {
        return;
    }
    if (is(fault::stale_entry) && last.at.at != 0) {
        need(into, last, reason::entry);
        return;
    }
    if (into.self() == stream(peer).timeline()) {
        return;  // the package's own stream
    }
    last = stream(peer).enter_foreign();
    into.need(last, reason::entry);
    device_.stand(peer, operation(step) - 1);
}

order::clock driver::clock_after(plan& from) const {
    if (!is(fault::smaller_clock) && !is(fault::clock_runs_ahead)) {
        return from.clock_after();
    }
    std::map<timeline_id, epoch> points;
    const auto merge = [&](const point& p) {
        const auto [at, added] = points.emplace(p.timeline, p.at);
        if (!added) {
            at->second = is(fault::smaller_clock) ? std::min(at->second, p.at) : std::max(at->second, p.at);
        }
    };
    const auto merge_all = [&](const auto* clock) {
        if (clock != nullptr) {
            clock->for_each(merge);
        }
    };
    merge_all(streams_[static_cast<std::size_t>(stream_of(from.self()))].known().get());
    for (const order::wait& issued : from.waits()) {
        merge_all(issued.target.known);
        const auto other = static_cast<std::size_t>(stream_of(issued.target.at.timeline));
        merge(is(fault::clock_runs_ahead) ? streams_[other].record().at : issued.target.at);
    }
    frontier merged;
    for (const auto& [timeline, at] : points) {
        if (timeline != from.self()) {
            merged.merge(point{timeline, at});
        }
    }
    return order::make_clock(merged);
}

// Issues the waits of a plan on a stream and reserves the epoch of their operation, by a short plan if there is one.
order::mark driver::commit(int on, plan& from, int position, const order::short_plan* by) {
    std::vector<edge> issued;
    for (const order::wait& it : from.waits()) {
        const int other = stream_of(it.target.at.timeline);
        issued.push_back({other, device_.position(other, it.target.at.at), on, position, name(it.why)});
    }
    done_.waits.insert(done_.waits.end(), issued.begin(), issued.end());
    device_.enqueue(on, position, issued);
    device_.stand(on, position);
    if (from.waits().empty()) {
        return stream(on).reserve();
    }
    order::sequencer& mine = stream(on);
    if (by == nullptr) {
        mine.reserve(clock_after(from));
    } else {
        order::short_plan prepared = *by;
        prepared.prepare(mine.is_sole());
        mine.reserve(prepared);
    }
    mark when = mine.record();
    const std::size_t size = when.known->size();
    // The first timelines take no memory of their own.
    const auto first = std::count_if(options_.names.begin(), options_.names.end(),
                                     [](timeline_id name) { return name < frontier::direct; });
    const std::size_t needed = std::max(device_.unfinished(), frontier::in_place) + static_cast<std::size_t>(first);
    sizes_.clock = std::max(sizes_.clock, size);
    sizes_.clock_over_needed = std::max(sizes_.clock_over_needed, size > needed ? size - needed : 0);
    return when;
}

void driver::remember(const touch& t, const mark& when) {
    order::history& past = histories_[static_cast<std::size_t>(t.buffer)];
    const bool covers = t.write && t.begin == 0 && t.end == program_.buffers[static_cast<std::size_t>(t.buffer)].size;
    if (covers && is(fault::unordered_dropped)) {
        past.clear();
    }
    past.reserve(1);
    past.record(bytes(t), t.write ? access_mode::write : access_mode::read, when, device_);
    const auto kept = past.accesses();
    if (covers && is(fault::former_owner_dropped) &&
        std::count_if(kept.begin(), kept.end(), [](const auto& access) { return !access.former_owner; }) == 1) {
        past.clear();
        past.reserve(1);
        past.record(bytes(t), access_mode::write, when, device_);
    }
    sizes_.history = std::max(sizes_.history, past.accesses().size());
}

outcome drive(const program& p, drive_options options) { return driver{p, std::move(options)}.run(); }

}  // namespace order_test
