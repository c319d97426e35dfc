#pragma once

#include <cstddef>

#include "observe/slow_path_reasons.hpp"
#include "runtime/lifetime/resource.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/completion.hpp"
#include "weir/detail/submission.hpp"

namespace weir::runtime {

/// Holds operations to what they declare (WEIR_VERIFY_ACCESS, rule K1): what an operation only reads must be as before when it ends, else
/// it fails; what it declared with `out` is filled with NaN before it begins, so that a result which depends on what was there shows.
/// Where a device itself carries the operation out, two operations of Weir's that copy to the host stand before and behind it.
///
/// Left alone: memory that only Weir knows, bytes that the same operation declares in another way as well, memory that the operation's
/// code cannot reach, copies, and what other libraries put into a queue.
class verify_access {
public:
    /// Where a resource begins, for code that runs in a stream and for the host; null where they do not reach it.
    struct place {
        std::byte* in_stream = nullptr;
        std::byte* on_host = nullptr;
    };
    /// Said once, before the first operation, by the layer that knows memory.
    static void find_memory_by(place (*find)(const resource& of) noexcept) noexcept;

    /// For tests: while it lives, as if WEIR_VERIFY_ACCESS=1 had been in the environment.
    class scope {
    public:
        [[nodiscard]] scope() noexcept { observe::slow_path_reasons::begin(observe::slow_path_reasons::verifier); }
        ~scope() { observe::slow_path_reasons::end(observe::slow_path_reasons::verifier); }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;
    };

    [[nodiscard]] static bool is_on() noexcept {
        return observe::slow_path_reasons::is_needed_for(observe::slow_path_reasons::verifier);
    }
    /// As submit, with the checks around the operation's body.
    static completion submit(stream_state& stream, const submission& what);
};

}  // namespace weir::runtime
