// The folder watch/ reports to observers what programs do with other libraries. It may include what the runtime includes, and the runtime.
#include "weir/detail/watched_program.hpp"

#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "observe/observer.hpp"
#include "observe/observers.hpp"
#include "runtime/numbers.hpp"
#include "watch/recent.hpp"

namespace weir::detail {

/// Its parts are nested here, and have linkage, since several files may be compiled as one.
struct watched_program::state {
    /// A stream of the library, on a timeline of its own.
    struct known_stream {
        std::string name;
        std::string device;
        observe::stream_info info;
        frontiers::epoch tail = 0;

        [[nodiscard]] frontiers::point now() const noexcept { return {info.timeline, tail}; }
        /// A moment that stands for all that is in the queue by now, from Weir, too.
        [[nodiscard]] frontiers::point record(std::uint64_t event, const source_location& where) {
            ++tail;
            observe::observers::notify(
                [&](observe::observer& told) { told.event_recorded(event, info, now(), where); });
            return now();
        }
    };

    struct known_event {
        std::uint64_t number = 0;
        std::optional<frontiers::point> at;  ///< what it holds
    };

    /// Memory at an address. Stays when the memory is freed, since allocators give out the same addresses again.
    struct known_memory {
        std::uint64_t resource = 0;  ///< 0 until something uses it
        std::uint64_t bytes = 0;
        bool is_new = false;  ///< the allocator gave it out, as the rest says, and nothing has used it yet
        watched_stream on;
        source_location where;
    };

    std::string package;
    std::string device_kind;
    std::map<watched_stream, known_stream> streams;
    std::unordered_map<std::uint64_t, known_event> events;
    std::unordered_map<std::uint64_t, known_memory> memory;  ///< nothing leaves it
    recent<known_memory*> last_found;                        ///< in `memory`
    std::set<std::string, std::less<>> unseen;
    std::vector<observe::observed_access> accesses;  ///< of the operation that is reported; its room is used again

    known_stream& stream(const watched_stream& which) {
        const auto found = streams.find(which);
        if (found != streams.end()) {
            return found->second;
        }
        known_stream& made = streams[which];
        made.device = device_kind + ":" + std::to_string(which.device);
        made.name = which.handle == 0 ? "default" : "stream " + std::to_string(streams.size());
        made.info.id = runtime::next_stream_number();
        made.info.timeline = backend::timeline_table::instance().acquire();
        made.info.before = backend::timeline_table::instance().completed(made.info.timeline);
        made.tail = made.info.before + 1;  // what it had got before anything was seen
        made.info.name = made.name;
        made.info.device = made.device;
        made.info.default_of = which.handle == 0 ? observe::default_kind::legacy : observe::default_kind::none;
        made.info.package = package;
        made.info.handle = observe::handle_of_queue(which.handle);
        observe::observers::notify([&](observe::observer& one) { one.stream_made(made.info); });
        return made;
    }

    /// Null if nothing is known of it.
    [[nodiscard]] known_memory* find(std::uint64_t address) {
        if (known_memory* const* const known = last_found.find(address)) {
            return *known;
        }
        const auto found = memory.find(address);
        if (found == memory.end()) {
            return nullptr;
        }
        last_found.keep(address, &found->second);
        return &found->second;
    }
    known_memory& at(std::uint64_t address) {
        known_memory* const known = find(address);
        return known != nullptr ? *known : memory[address];
    }

    /// Numbers the memory, and reports its allocation, if it is new.
    known_memory& of(const watched_access& access, std::string_view device) {
        known_memory& one = at(access.memory);
        if (one.resource == 0) {
            one.resource = runtime::next_resource_number();
            if (std::exchange(one.is_new, false)) {
                const known_stream& on = stream(one.on);
                observe::observers::notify([&](observe::observer& told) {
                    told.allocated({one.resource, access.bytes, device, access.memory, &on.info, one.where,
                                    observe::sharing::theirs});
                });
            }
        }
        one.bytes = access.bytes;
        return one;
    }

    [[nodiscard]] static observe::observed_access observed(const watched_access& access, const known_memory& of) {
        return {of.resource,
                of.bytes,
                access.where,
                access.mode,
                ordering_mode::manual,
                false,
                access.is_certain ? observe::certainty::definite : observe::certainty::possible,
                nullptr,
                observe::sharing::theirs,
                access.memory};
    }
};

watched_program::watched_program(std::string package, std::string device_kind) : state_(std::make_unique<state>()) {
    state_->package = std::move(package);
    state_->device_kind = std::move(device_kind);
}

watched_program::~watched_program() {
    for (auto& [key, one] : state_->streams) {
        // Nothing of the library runs on the timeline, as far as others are concerned: the next stream on it begins behind.
        backend::timeline_table::instance().at(one.info.timeline).complete(one.tail);
        backend::timeline_table::instance().release(one.info.timeline);
    }
}

void watched_program::operation(watched_stream on, const char* label, std::span<const watched_access> accesses,
                                const source_location& where) {
    state::known_stream& stream = state_->stream(on);
    state_->accesses.clear();
    for (const watched_access& each : accesses) {
        state_->accesses.push_back(state::observed(each, state_->of(each, stream.device)));
    }
    ++stream.tail;
    observe::observed_operation told;
    told.stream = &stream.info;
    told.epoch = stream.tail;
    told.from = {label, where};
    told.accesses = state_->accesses;
    observe::observers::notify([&](observe::observer& one) { one.operation(told); });
}

void watched_program::host_access(const watched_access& what, const source_location& where) {
    const state::known_memory* const found = state_->find(what.memory);
    if (found != nullptr && found->resource != 0) {
        const observe::observed_access told = state::observed(what, *found);
        observe::observers::notify([&](observe::observer& one) { one.host_access(told, where); });
    }
}

std::optional<watched_block> watched_program::block_at(std::uint64_t address) const {
    const auto is_in_use = [](const state::known_memory& one) { return one.is_new || one.resource != 0; };
    const auto exact = state_->memory.find(address);
    if (exact != state_->memory.end() && is_in_use(exact->second)) {
        return watched_block{address, exact->second.bytes};
    }
    for (const auto& [begin, one] : state_->memory) {
        if (is_in_use(one) && begin <= address && address - begin < one.bytes) {
            return watched_block{begin, one.bytes};
        }
    }
    return std::nullopt;
}

void watched_program::allocated(std::uint64_t address, watched_stream on, const source_location& where) {
    state_->at(address) = {0, 0, true, on, where};
}

void watched_program::freed(std::uint64_t address) {
    state::known_memory* const found = state_->find(address);
    if (found == nullptr) {
        return;
    }
    found->is_new = false;
    const std::uint64_t resource = std::exchange(found->resource, 0);
    if (resource == 0) {
        return;
    }
    observe::observers::notify([&](observe::observer& one) {
        one.released(resource);
        one.dropped(resource);
    });
}

void watched_program::kept_until(std::uint64_t memory, watched_stream on) {
    const state::known_stream& stream = state_->stream(on);
    const state::known_memory* const found = state_->find(memory);
    if (found != nullptr && found->resource != 0) {
        observe::observers::notify([&](observe::observer& one) { one.kept_until(found->resource, stream.info); });
    }
}

void watched_program::event_recorded(std::uint64_t event, watched_stream on, const source_location& where) {
    state::known_stream& stream = state_->stream(on);
    state::known_event& one = state_->events[event];
    if (one.number == 0) {
        one.number = runtime::next_event_number();
    }
    one.at = stream.record(one.number, where);
}

void watched_program::event_gone(std::uint64_t event) { state_->events.erase(event); }

void watched_program::stream_waits(watched_stream on, std::uint64_t event, const source_location& where) {
    state::known_stream& stream = state_->stream(on);
    const auto found = state_->events.find(event);
    if (found == state_->events.end() || !found->second.at) {
        return;  // recorded before anything was seen
    }
    ++stream.tail;
    observe::observers::notify([&](observe::observer& one) {
        one.stream_waits(stream.info, stream.tail, *found->second.at, found->second.number, observe::wait_made::issued,
                         where);
    });
}

void watched_program::host_waited_for_event(std::uint64_t event, const source_location& where) {
    const auto found = state_->events.find(event);
    if (found != state_->events.end() && found->second.at) {
        observe::observers::notify([&](observe::observer& one) { one.host_waited(*found->second.at, where); });
    }
}

void watched_program::host_waited_for_stream(watched_stream one, const source_location& where) {
    const frontiers::point end = state_->stream(one).record(0, where);
    observe::observers::notify([&](observe::observer& told) { told.host_waited(end, where); });
}

void watched_program::host_waited_for_device(int device, const source_location& where) {
    for (const auto& each : state_->streams) {
        if (each.first.device == device) {
            observe::observers::notify([&](observe::observer& told) { told.host_waited(each.second.now(), where); });
        }
    }
    const std::string name = state_->device_kind + ":" + std::to_string(device);
    observe::observers::notify([&](observe::observer& told) { told.device_finished(name); });
}

void watched_program::unseen(std::string_view what) {
    if (!state_->unseen.contains(what)) {
        state_->unseen.emplace(what);
        observe::observers::notify([&](observe::observer& one) { one.unseen(what); });
    }
}

}  // namespace weir::detail
