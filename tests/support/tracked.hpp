// A tracked value for tests of the runtime, which knows no memory yet.
#pragma once

#include <utility>
#include <vector>

#include "runtime/lifetime/resource.hpp"
#include "weir/detail/submission.hpp"
#include "weir/event.hpp"
#include "weir/stream.hpp"

namespace weir::test {

/// An object that operations read and write, tracked like memory of `bytes` bytes.
class tracked : public runtime::resource {
public:
    explicit tracked(std::uint64_t bytes = 64) : resource(bytes) {}
    ~tracked() = default;

    [[nodiscard]] runtime::access_request reads() { return {this, {0, size()}, order::access_mode::read}; }
    [[nodiscard]] runtime::access_request writes() { return {this, {0, size()}, order::access_mode::write}; }
    [[nodiscard]] runtime::access_request reads(std::uint64_t begin, std::uint64_t end) {
        return {this, {begin, end}, order::access_mode::read};
    }
    [[nodiscard]] runtime::access_request writes(std::uint64_t begin, std::uint64_t end) {
        return {this, {begin, end}, order::access_mode::write};
    }
};

/// Enqueues `body` with these accesses.
template <class F>
completion enqueue(const stream_ref& stream, const std::vector<runtime::access_request>& accesses, F&& body,
                   const std::vector<completion>& after = {}, runtime::work_kind kind = runtime::work_kind::device,
                   source_location where = source_location::current()) {
    return detail::with_task(std::forward<F>(body), [&](detail::task_ref task) {
        return runtime::submit(stream.state(detail::key), {accesses, after, task, {"test", where}, kind});
    });
}

}  // namespace weir::test
