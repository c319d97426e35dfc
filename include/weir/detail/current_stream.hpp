// A change of a thread's current stream that also takes closed streams. Layer: runtime.
#pragma once

#include "weir/detail/intrusive.hpp"
#include "weir/export.hpp"

namespace weir {

class stream_ref;

namespace runtime {
class device_state;
class stream_state;
}  // namespace runtime

namespace detail {

/// As weir::use, but also takes a closed stream: for a scope that a thread resumes, such as that of a coroutine, whose stream may have
/// been closed since the scope began. Calls that use the stream then throw state_error, as in the scope itself.
class WEIR_EXPORT resumed_use {
public:
    /// Makes `current` the calling thread's current stream of its device. Never blocks. Throws std::bad_alloc.
    [[nodiscard]] explicit resumed_use(const stream_ref& current);
    /// Restores the former current stream. Never blocks. Must run on the same thread, innermost first.
    ~resumed_use();
    resumed_use(const resumed_use&) = delete;
    resumed_use& operator=(const resumed_use&) = delete;

private:
    owner<runtime::stream_state> previous_;
    runtime::device_state* device_;
};

}  // namespace detail

}  // namespace weir
