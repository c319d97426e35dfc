// The folder trace/ records what observers receive, and turns it into evidence logs, timelines and numbers. It knows nothing of how Weir
// orders work; it includes the observers' interface.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

#include "frontier/point.hpp"
#include "observe/observer.hpp"
#include "order/plan.hpp"
#include "weir/detail/site.hpp"
#include "weir/source_location.hpp"

namespace weir::trace {

/// A position in a stream. Stream 0: a stream that did nothing while the log was kept; epoch 0: before everything.
struct moment {
    std::uint64_t stream = 0;
    frontiers::epoch at = 0;
    friend bool operator==(const moment&, const moment&) = default;
};

struct stream_made {
    std::uint64_t stream = 0;
    const char* name = "";
    const char* device = "";
    bool is_new = false;  ///< made while the log was kept; if not, it may have had work before
    /// The number of the native queue that another library owns; 0 if the stream is Weir's own.
    std::uint64_t queue = 0;
    moment former;  ///< the end of the former stream whose positions this one continues; epoch 0: there was none
    const char* order = "";  ///< stream_info::order
};

struct issued_wait {
    moment target;
    order::reason why = order::reason::dependency;
    bool for_check = false;  ///< the program orders this itself; the wait was inserted to keep it safe under check
};

struct elided_wait {
    moment target;
    order::reason why = order::reason::dependency;
    order::witness_kind kind = order::witness_kind::same_stream;
    moment witness;
};

struct operation {
    moment at;
    runtime::site from;
    runtime::work_kind kind = runtime::work_kind::device;
    std::vector<observe::observed_access> accesses;
    std::vector<moment> after;
    std::vector<issued_wait> waits;
    std::vector<elided_wait> elisions;
};

struct event_recorded {
    std::uint64_t event = 0;
    moment at;
    source_location from;
};

struct stream_wait {
    moment at;
    moment target;
    std::uint64_t event = 0;  ///< 0 if there is none
    observe::wait_made how = observe::wait_made::implied;
    source_location from;
};

struct host_wait {
    moment target;
    source_location from;
};

struct host_access {
    observe::observed_access access;
    source_location from;
};

struct allocation {
    std::uint64_t resource = 0;
    std::uint64_t bytes = 0;
    const char* device = "";
    std::uint64_t address = 0;  ///< 0: it is not memory
    std::uint64_t stream = 0;   ///< 0: it was not allocated on a stream
    source_location from;
};

struct drop {
    std::uint64_t resource = 0;
};

/// The clock that a time was read from.
enum class clock_kind : std::uint8_t {
    steady,        ///< the log's clock
    virtual_time,  ///< a simulated device's own clock, which says nothing about when the host did something
};

struct execution {
    moment at;
    std::chrono::nanoseconds start{0};
    std::chrono::nanoseconds end{0};
    clock_kind by = clock_kind::steady;
};

struct failure {
    moment at;
};

using news = std::variant<stream_made, operation, event_recorded, stream_wait, host_wait, host_access, allocation, drop,
                          execution, failure>;

/// One line of a log: what was reported, and when, counted from the log's beginning.
struct record {
    std::chrono::nanoseconds when{0};
    news what;
};

/// What was reported, in the order of the reports. Texts are literals of the program, or kept here.
class log {
public:
    log() = default;
    log(log&&) = default;
    log& operator=(log&&) = default;

    std::vector<record> records;
    std::uint64_t lost = 0;  ///< number of reports for which there was no memory

    /// A copy of `text` that lives as long as the log.
    const char* keep(std::string_view text) {
        const auto known = index_.find(text);
        if (known != index_.end()) {
            return known->data();
        }
        const std::string& kept = texts_.emplace_back(text);
        index_.insert(kept);
        return kept.c_str();
    }

private:
    std::deque<std::string> texts_;  // a deque, so that texts do not move
    std::unordered_set<std::string_view> index_;
};

}  // namespace weir::trace
