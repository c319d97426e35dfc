#include "random_programs/world.hpp"

#include <algorithm>
#include <utility>

namespace random_programs {

using weir::ordering_mode;

world::world(const program& of) : devices_(of.devices), has_host_(of.has_host) {
    for (int device = 0; device < devices_; ++device) {
        streams_[index(device)].number = device;
        streams_of_all_times_.push_back({device, std::nullopt});
    }
}

int world::slot_of(int stream_number) const noexcept {
    for (int slot = 0; slot < slots; ++slot) {
        if (streams_[index(slot)].number == stream_number) {
            return slot;
        }
    }
    return none;
}

int world::live_memories(int device) const noexcept {
    return static_cast<int>(std::count_if(memories_.begin(), memories_.end(),
                                          [&](const memory_state& m) { return m.owners > 0 && m.device == device; }));
}

bool world::resolve_stream(step& one, std::size_t thread) const {
    if (!has_stream(one.stream)) {
        return false;
    }
    one.stream_number = streams_[index(one.stream)].number;
    const int device = device_of_stream(one.stream);
    const std::vector<int>& all = threads_[thread].current;
    const auto latest = std::find_if(all.rbegin(), all.rend(),
                                     [&](int number) { return streams_of_all_times_[index(number)].device == device; });
    one.current = one.stream_number == (latest == all.rend() ? device : *latest);
    return true;
}

weir::ordering_mode world::mode_of(const step& one, std::size_t thread) const {
    const std::vector<ordering_mode>& scopes = threads_[thread].scopes;
    const ordering_mode mode = scopes.empty() ? process_ : scopes.back();
    return is_operation(one.kind) ? streams_of_all_times_[index(one.stream_number)].mode.value_or(mode) : mode;
}

bool world::host_reaches_all(const step& one) const {
    return has_host_ &&
           std::all_of(one.touches.begin(), one.touches.end(), [](const touch& part) { return part.device == 0; });
}

bool world::reaches_all(const step& one) const {
    const int own = streams_of_all_times_[index(one.stream_number)].device;
    const auto is_own = [&](const touch& part) { return part.device == own; };
    if (one.kind == step_kind::copy) {
        return std::any_of(one.touches.begin(), one.touches.end(), is_own);
    }
    if (one.kind == step_kind::operate && one.how == form::host_task) {
        return host_reaches_all(one);
    }
    const bool from_host = one.kind == step_kind::copy_from_host && own == 0 && has_host_;
    return from_host || std::all_of(one.touches.begin(), one.touches.end(), is_own);
}

bool world::resolve_ranges(step& one, std::size_t thread) const {
    one.touches.clear();
    const auto add = [&](const range& part, bool write) {
        if (part.slot == none) {
            return false;
        }
        const array_slot& slot = array(part.slot);
        if (slot.memory == none || part.first < 0 || part.first >= part.last || part.last > slot.size) {
            return false;
        }
        const memory_state& memory = memories_[index(slot.memory)];
        const ordering_mode mode = memory.mode.value_or(mode_of(one, thread));
        one.touches.push_back({slot.memory, slot.offset + part.first, slot.offset + part.last, write,
                               mode == ordering_mode::manual, memory.device});
        return true;
    };
    for (const range& read : one.reads) {
        if (!add(read, false)) {
            return false;
        }
    }
    return std::all_of(one.writes.begin(), one.writes.end(), [&](const range& write) { return add(write, true); });
}

bool world::resolve(step& one, std::size_t thread) const {
    switch (one.kind) {
        case step_kind::make_stream:
            one.stream_number = static_cast<int>(streams_of_all_times_.size());
            return !has_stream(one.stream);
        case step_kind::drop_stream:
            return !is_default(one.stream) && resolve_stream(one, thread);
        case step_kind::allocate: {
            one.memory = static_cast<int>(memories_.size());
            if (array(one.array).memory != none || !resolve_stream(one, thread) || !has_stream(one.other) ||
                device_of_stream(one.stream) != device_of_stream(one.other)) {
                return false;
            }
            // No other thread has the memory yet: this orders only what its former owner did.
            one.touches = {{one.memory, 0, one.size, true, mode_of(one, thread) == ordering_mode::manual,
                            device_of_stream(one.other)}};
            one.other_number = streams_[index(one.other)].number;
            return true;
        }
        case step_kind::alias:
            return array(one.array).memory == none && resolve_ranges(one, thread);
        case step_kind::drop_array: {
            const int memory = array(one.array).memory;
            one.memory = memory != none && is_last_owner(memory) ? memory : none;
            return memory != none;
        }
        case step_kind::operate:
        case step_kind::copy:
        case step_kind::fill:
        case step_kind::copy_from_host:
            return resolve_stream(one, thread) && resolve_ranges(one, thread) && reaches_all(one) &&
                   (one.kind != step_kind::copy ||
                    one.reads[0].last - one.reads[0].first == one.writes[0].last - one.writes[0].first);
        case step_kind::read_host:
            return resolve_ranges(one, thread);
        case step_kind::write_host:
            return resolve_ranges(one, thread) && host_reaches_all(one);
        case step_kind::open_view:
            return views_[index(one.other)].memory == none && resolve_ranges(one, thread) && host_reaches_all(one);
        case step_kind::touch_view:
            return views_[index(one.other)].memory != none;
        case step_kind::close_view: {
            const int memory = views_[index(one.other)].memory;
            one.memory = memory != none && is_last_owner(memory) ? memory : none;
            return memory != none;
        }
        case step_kind::wait_stream:
            if (!has_stream(one.other)) {
                return false;
            }
            one.other_number = streams_[index(one.other)].number;
            return resolve_stream(one, thread);
        case step_kind::record:
        case step_kind::wait_event:
        case step_kind::wait_operation:
        case step_kind::synchronize_stream:
        case step_kind::order_stream:
        case step_kind::push_current:
            return resolve_stream(one, thread);
        case step_kind::hold:
            return !is_default(one.stream) && resolve_stream(one, thread);
        case step_kind::open:
            return is_closed(one.other);
        case step_kind::order_array:
            return array(one.array).memory != none;
        case step_kind::order_scope:
            return one.mode || has_scope(thread);
        case step_kind::pop_current:
            return has_current(thread);
        case step_kind::query:
            return one.stream == none || resolve_stream(one, thread);
        case step_kind::synchronize_event:
        case step_kind::synchronize_operation:
        case step_kind::synchronize_device:
        case step_kind::keep_alive:
        case step_kind::order_process:
            return true;
    }
    return false;
}

void world::apply(const step& one, std::size_t thread) {
    const auto drop_owner = [&](int& memory) { --memories_[index(std::exchange(memory, none))].owners; };
    switch (one.kind) {
        case step_kind::make_stream:
            streams_[index(one.stream)].number = one.stream_number;
            streams_of_all_times_.push_back({one.device, std::nullopt});
            break;
        case step_kind::drop_stream:
            streams_[index(one.stream)].number = none;
            break;
        case step_kind::allocate:
            memories_.push_back({1, one.touches[0].device, std::nullopt});
            arrays_[index(one.array)] = {one.memory, 0, one.size};
            break;
        case step_kind::alias:
            ++memories_[index(one.touches[0].memory)].owners;
            arrays_[index(one.array)] = {one.touches[0].memory, one.touches[0].begin,
                                         one.touches[0].end - one.touches[0].begin};
            break;
        case step_kind::drop_array:
            drop_owner(arrays_[index(one.array)].memory);
            break;
        case step_kind::open_view: {
            const touch& part = one.touches[0];
            ++memories_[index(part.memory)].owners;
            views_[index(one.other)] = {part.memory, part.begin, part.end, part.write};
            break;
        }
        case step_kind::close_view:
            drop_owner(views_[index(one.other)].memory);
            break;
        case step_kind::hold:
            holds_[index(one.other)].push_back(one.number);
            break;
        case step_kind::open:
            holds_[index(one.other)].clear();
            break;
        case step_kind::order_array:
            memories_[index(array(one.array).memory)].mode = one.mode;
            break;
        case step_kind::order_stream:
            streams_of_all_times_[index(one.stream_number)].mode = one.mode;
            break;
        case step_kind::order_scope:
            if (one.mode) {
                threads_[thread].scopes.push_back(*one.mode);
            } else {
                threads_[thread].scopes.pop_back();
            }
            break;
        case step_kind::order_process:
            process_ = one.mode.value_or(ordering_mode::automatic);
            break;
        case step_kind::push_current:
            threads_[thread].current.push_back(one.stream_number);
            break;
        case step_kind::pop_current:
            threads_[thread].current.pop_back();
            break;
        default:
            break;
    }
}

}  // namespace random_programs
