#include "weir/parallel.hpp"

#include <string>

#include "order/mark.hpp"
#include "runtime/streams/side_stream.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/completion.hpp"

namespace weir {

parallel::parallel(std::size_t count, const stream_ref& from, source_location where)
    : from_(detail::key, detail::owner<runtime::stream_state>(&from.state(detail::key))), where_(where) {
    from.state(detail::key).expect_open();
    streams_.reserve(count);
    try {
        for (std::size_t i = 0; i < count; ++i) {
            streams_.push_back(runtime::side_streams::take(from, from.device(), std::to_string(i + 1).c_str()));
            streams_.back().wait(from, where);
        }
    } catch (...) {
        give_back();  // they have no work yet
        throw;
    }
}

parallel::~parallel() {
    try {
        join(where_);
    } catch (...) {
        for (const stream& one : streams_) {
            try {
                one.synchronize(where_);
            } catch (...) {  // NOLINT(bugprone-empty-catch): an operation that uses the results reports the failure
            }
        }
    }
}

void parallel::join(source_location where) {
    for (const stream& one : streams_) {
        // Not `from_.wait(one)`: the program may have closed the stream.
        const order::mark tail = one.state(detail::key).now(where);
        from_.wait(completion(detail::key, tail.at.timeline, tail.at.at, tail.known), where);
    }
    give_back();
}

void parallel::give_back() noexcept {
    for (const stream& one : streams_) {
        runtime::side_streams::give_back(from_, one);
    }
    streams_.clear();
}

}  // namespace weir
