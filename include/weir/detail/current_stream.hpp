// The current stream of a thread that changes without the end of a scope. Layer: runtime.
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

/// As weir::use, but also takes a closed stream: for a scope that a thread takes up again, such as that of a coroutine, whose
/// stream may have been closed since the scope began. Calls that use the stream are state_errors then, as in the scope itself.
class WEIR_EXPORT resumed_use {
public:
    /// Makes `current` the calling thread's current stream of its device. Never blocks. Throws std::bad_alloc.
    explicit resumed_use(const stream_ref& current);
    /// Restores what was current before. Never blocks. Call it on the same thread, innermost first.
    ~resumed_use();
    resumed_use(const resumed_use&) = delete;
    resumed_use& operator=(const resumed_use&) = delete;

private:
    owner<runtime::stream_state> previous_;
    runtime::device_state* device_;
};

}  // namespace detail

}  // namespace weir
