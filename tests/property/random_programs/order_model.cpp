#include "random_programs/order_model.hpp"

#include <algorithm>

namespace random_programs {

namespace {

bool is_shared_event(int slot) noexcept { return slot < shared_slots; }

std::size_t bit(int number) noexcept { return static_cast<std::size_t>(number); }

}  // namespace

const order_model::node* order_model::find(int number) const noexcept {
    const int at = index_[bit(number)];
    return at == none ? nullptr : &nodes_[bit(at)];
}

step_set order_model::tail(int stream, std::size_t thread) const {
    const auto found = streams_.find(stream);
    return (found == streams_.end() ? step_set() : found->second.tail[thread]) | host_[thread];
}

int order_model::device_of(int stream) const {
    const auto found = streams_.find(stream);
    return found == streams_.end() || found->second.device == none ? stream : found->second.device;
}

step_set order_model::event(int slot) const {
    const auto found = events_.find(slot);
    return found == events_.end() ? step_set() : found->second;
}

step_set order_model::conflicts(const std::vector<touch>& touches, std::size_t thread) const {
    step_set all;
    for (const touch& mine : touches) {
        if (mine.manual) {
            continue;
        }
        for (const node& other : nodes_) {
            // What the host does is complete when it goes on.
            if (other.stream == none || (other.phase == phase_ && other.thread != thread)) {
                continue;
            }
            for (const touch& theirs : other.touches) {
                if (mine.conflicts_with(theirs)) {
                    all |= other.past;
                }
            }
        }
    }
    return all;
}

step_set order_model::past_of(const step& one, std::size_t thread, const step_set& tail) const {
    step_set past = tail;
    for (const int number : one.after) {
        if (const node* const after = find(number)) {
            past |= after->past;
        }
    }
    if (rules_.automatic) {
        past |= conflicts(one.touches, thread);
    }
    if (rules_.reuse) {
        for (const touch& mine : one.touches) {
            const auto found = former_.find(mine.memory);
            past |= found == former_.end() ? step_set() : found->second;
        }
    }
    return past;
}

void order_model::add_node(const step& one, std::size_t thread, const step_set& tail, bool on_host) {
    node made{one.number,
              on_host ? none : one.stream_number,
              on_host ? none : device_of(one.stream_number),
              thread,
              phase_,
              one.touches,
              past_of(one, thread, tail),
              tail};
    if (on_host) {
        host_[thread] |= made.past;
    }
    made.past.set(bit(one.number));
    index_[bit(one.number)] = static_cast<int>(nodes_.size());
    if (!on_host) {
        streams_[one.stream_number].tail[thread] |= made.past;
    }
    nodes_.push_back(std::move(made));
}

step_set order_model::waited_for(const step& one, std::size_t thread) const {
    switch (one.kind) {
        case step_kind::synchronize_stream:
            return tail(one.stream_number, thread);
        case step_kind::synchronize_event:
            return event(one.other);
        case step_kind::synchronize_operation: {
            const node* const past = find(one.other);
            return past == nullptr ? step_set() : past->past;
        }
        case step_kind::synchronize_device: {
            step_set all = host_[thread];
            for (const auto& [number, stream] : streams_) {
                all |= device_of(number) == one.device ? stream.tail[thread] : step_set();
            }
            return all;
        }
        default:
            return is_host_access(one.kind) ? past_of(one, thread, step_set()) : step_set();
    }
}

void order_model::add(const step& one, std::size_t thread) {
    if (is_operation(one.kind)) {
        if (one.kind == step_kind::allocate) {
            former_[one.memory] = dropped_;
            memories_[one.memory] = {one.number, one.other_number, false, 0, {}};
        }
        add_node(one, thread, tail(one.stream_number, thread), false);
        return;
    }
    if (is_host_access(one.kind)) {
        add_node(one, thread, host_[thread], true);
        return;
    }
    switch (one.kind) {
        case step_kind::make_stream:
            streams_[one.stream_number].device = one.device;
            break;
        case step_kind::hold:
            add_node(one, thread, tail(one.stream_number, thread), false);
            break;
        case step_kind::drop_array:
        case step_kind::close_view:
            if (const auto ends = memories_.find(one.memory); ends != memories_.end()) {
                ends->second.dropped = true;
                ends->second.nodes = nodes_.size();
                ends->second.past = tail(ends->second.stream, thread);
            }
            for (const node& past : nodes_) {
                for (const touch& theirs : past.touches) {
                    dropped_ |= theirs.memory == one.memory ? past.past : step_set();
                }
            }
            break;
        case step_kind::record:
            // It is not known which thread records a shared event last.
            if (!is_shared_event(one.other)) {
                events_[one.other] = tail(one.stream_number, thread);
            }
            break;
        case step_kind::wait_event:
            streams_[one.stream_number].tail[thread] |= event(one.other);
            break;
        case step_kind::wait_stream:
            streams_[one.stream_number].tail[thread] |= tail(one.other_number, thread);
            break;
        case step_kind::wait_operation:
            if (const node* const past = find(one.other)) {
                streams_[one.stream_number].tail[thread] |= past->past;
            }
            break;
        case step_kind::synchronize_stream:
        case step_kind::synchronize_event:
        case step_kind::synchronize_operation:
        case step_kind::synchronize_device:
            host_[thread] |= waited_for(one, thread);
            break;
        default:
            break;
    }
}

void order_model::end_phase() {
    ++phase_;
    step_set all;
    for (const step_set& one : host_) {
        all |= one;
    }
    host_.fill(all);
    for (auto& [number, stream] : streams_) {
        step_set tail;
        for (const step_set& one : stream.tail) {
            tail |= one;
        }
        stream.tail.fill(tail);
    }
}

namespace {

/// Whether an access between the two, itself ordered after the first, has replaced it on all bytes that they share.
bool is_replaced(const std::vector<order_model::node>& nodes, std::size_t first, std::size_t second,
                 const touch& before, const touch& after) {
    for (int at = std::max(before.begin, after.begin); at < std::min(before.end, after.end); ++at) {
        bool replaced = false;
        for (std::size_t i = first + 1; i < second && !replaced; ++i) {
            if (nodes[i].stream == none || !nodes[i].past.test(bit(nodes[first].number))) {
                continue;  // the host's accesses leave no trace
            }
            for (const touch& between : nodes[i].touches) {
                replaced = replaced || (between.memory == before.memory && between.begin <= at && at < between.end &&
                                        (between.write || !before.write));
            }
        }
        if (!replaced) {
            return false;
        }
    }
    return true;
}

}  // namespace

namespace {

/// Calls `visit(chunk, index of the node, touch)` for each access to memory that was dropped, if the program orders the access
/// and the drop is not ordered after it.
template <class Visit>
void for_each_early_drop(const order_model& model, Visit&& visit) {
    for (const auto& [memory, chunk] : model.memories()) {
        for (std::size_t i = 0; chunk.dropped && i < chunk.nodes; ++i) {
            const order_model::node& node = model.nodes()[i];
            if (node.stream == none || chunk.past.test(bit(node.number))) {
                continue;
            }
            for (const touch& one : node.touches) {
                if (one.memory == memory && (one.manual || !model.rules().automatic)) {
                    visit(chunk, i, one);
                }
            }
        }
    }
}

}  // namespace

std::vector<unordered_pair> unordered_drops(const order_model& model) {
    std::vector<unordered_pair> pairs;
    for_each_early_drop(model, [&](const order_model::chunk& chunk, std::size_t first, const touch& before) {
        const bool certain = !is_replaced(model.nodes(), first, chunk.nodes, before, before);
        pairs.push_back({model.nodes()[first].number, chunk.allocation, certain});
    });
    return pairs;
}

std::vector<unordered_pair> early_reuses(const order_model& model, const std::function<std::int64_t(int)>& address_of) {
    std::vector<unordered_pair> pairs;
    const std::vector<order_model::node>& nodes = model.nodes();
    // The later accesses to one element of dropped memory, up to the first that replaces it.
    const auto follow = [&](const order_model::chunk& chunk, std::size_t first, const touch& before) {
        const std::int64_t address = address_of(chunk.allocation) + before.begin;
        for (std::size_t i = chunk.nodes; i < nodes.size(); ++i) {
            const bool ordered = nodes[i].past.test(bit(nodes[first].number));
            for (const touch& after : nodes[i].touches) {
                const std::int64_t base = address_of(model.memories().at(after.memory).allocation);
                if (address < base + after.begin || base + after.end <= address) {
                    continue;
                }
                const bool settled = ordered || (model.rules().automatic && !after.manual);
                if (!settled && (before.write || after.write)) {
                    pairs.push_back({nodes[first].number, nodes[i].number, true});
                } else if (settled && (after.write || !before.write)) {
                    return;
                }
            }
        }
    };
    for_each_early_drop(model, [&](const order_model::chunk& chunk, std::size_t first, const touch& all) {
        for (int element = all.begin; element < all.end; ++element) {
            touch one = all;
            one.begin = element;
            one.end = element + 1;
            if (!is_replaced(nodes, first, chunk.nodes, one, one)) {
                follow(chunk, first, one);
            }
        }
    });
    return pairs;
}

std::vector<unordered_pair> unordered_pairs(const order_model& model) {
    std::vector<unordered_pair> pairs;
    const std::vector<order_model::node>& nodes = model.nodes();
    for (std::size_t second = 0; second < nodes.size(); ++second) {
        for (std::size_t first = 0; first < second; ++first) {
            // What the host does is complete when it goes on.
            if (nodes[first].stream == none || nodes[second].past.test(bit(nodes[first].number))) {
                continue;
            }
            bool found = false;
            bool certain = false;
            for (const touch& before : nodes[first].touches) {
                for (const touch& after : nodes[second].touches) {
                    if (before.conflicts_with(after)) {
                        found = true;
                        certain = certain || !is_replaced(nodes, first, second, before, after);
                    }
                }
            }
            if (found) {
                pairs.push_back({nodes[first].number, nodes[second].number, certain});
            }
        }
    }
    return pairs;
}

}  // namespace random_programs
