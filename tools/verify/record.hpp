// The folder tools/verify/ audits evidence logs (rule V4). It shares no code with Weir: it includes nothing of src/ or
// include/, and relies on docs/evidence-log.md alone. record.hpp describes one line of a log.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

#include "region.hpp"

namespace weir_verify {

/// A position in a stream. Stream 0 is not in the log, epoch 0 is before everything.
struct moment {
    std::uint64_t stream = 0;
    std::uint64_t epoch = 0;
    friend bool operator==(const moment&, const moment&) = default;
};

[[nodiscard]] inline std::string to_string(const moment& m) {
    return "[" + std::to_string(m.stream) + ", " + std::to_string(m.epoch) + "]";
}

/// A text of the log, stored once.
using text = const std::string*;

class text_store {
public:
    text keep(std::string one) { return &*all_.insert(std::move(one)).first; }

private:
    std::unordered_set<std::string> all_;  // nodes never move
};

/// A call in the program.
struct place {
    text file = nullptr;
    text function = nullptr;
    std::uint32_t line = 0;
};

struct access {
    std::uint64_t resource = 0;
    std::uint64_t bytes = 0;
    region where;
    bool writes = false;
    bool manual = false;  ///< the program orders it, not Weir
};

enum class witness_kind : std::uint8_t { same_stream, known, other_wait, complete };

struct elision {
    moment target;
    witness_kind because = witness_kind::same_stream;
    moment witness;
    bool for_reuse = false;
};

struct issued_wait {
    moment target;
    bool for_reuse = false;
};

struct stream_record {
    std::uint64_t stream = 0;
    text name = nullptr;
    text device = nullptr;
    bool is_new = false;
    moment former;
    std::uint64_t queue = 0;  ///< the adopted queue; 0 if there is none
    text order = nullptr;     ///< "legacy", "blocking", or null: how its device orders it with other streams
};

struct operation_record {
    moment at;
    text label = nullptr;
    place from;
    bool is_gate = false;
    std::vector<access> accesses;
    std::vector<moment> after;
    std::vector<issued_wait> waits;
    std::vector<elision> elisions;
};

struct event_record {
    std::uint64_t event = 0;
    moment at;
    place from;
};

struct stream_wait_record {
    moment at;
    moment target;
    std::uint64_t event = 0;
    bool issued = false;
    place from;
    bool by_device = false;  ///< the wait was not issued: the device orders the two streams by itself
};

struct host_wait_record {
    moment target;
    place from;
};

struct host_access_record {
    access what;
    place from;
};

struct allocation_record {
    std::uint64_t resource = 0;
    std::uint64_t bytes = 0;
    text device = nullptr;
    std::uint64_t address = 0;
    std::uint64_t stream = 0;
    place from;
};

struct drop_record {
    std::uint64_t resource = 0;
};

struct execution_record {
    moment at;
    std::int64_t start = 0;
    std::int64_t end = 0;
};

struct failure_record {
    moment at;
};

using news = std::variant<stream_record, operation_record, event_record, stream_wait_record, host_wait_record,
                          host_access_record, allocation_record, drop_record, execution_record, failure_record>;

struct record {
    std::uint64_t line = 0;  ///< line number in the log, from 1
    news what;
};

}  // namespace weir_verify
