#pragma once

#include "calls/fft_geometry.hpp"
#include "calls/ready_fft.hpp"
#include "weir/array.hpp"
#include "weir/fft.hpp"
#include "weir/launch.hpp"

namespace weir::calls {

/// One transform that the program asks for.
struct fft_call {
    const fft_geometry& what;
    fft_direction direction = fft_direction::forward;
    const execution_target& execution;
    call_blocking blocking = call_blocking::automatic;
    weir::memory_limit limit;
    kept_fft* kept = nullptr;  ///< where a plan keeps what `run` made ready last; `run` uses it again where it fits

    fft_call(const fft_geometry& geometry, fft_direction way, const execution_target& place, call_blocking block,
             weir::memory_limit most, kept_fft* last = nullptr)
        : what(geometry), direction(way), execution(place), blocking(block), limit(most), kept(last) {}
    fft_call(const fft_geometry& geometry, fft_direction way, const fft::options& how)
        : fft_call(geometry, way, how.execution, how.blocking, how.memory_limit) {}

    /// A result for `a`, on its device, as suits `where`. Throws argument_error, out_of_memory.
    [[nodiscard]] array make_result(const on& where, const array& a) const;

    /// Prepares, with the provider, what `run` with a result of `make_result` needs, and takes the workspace; enqueues
    /// nothing. Throws as `run` does.
    void prepare(const on& where, const array& a, buffer& workspace) const;

    /// Enqueues the transform of `a` to `out`, by way of `workspace`, which it replaces if it is too small: one operation
    /// on a device that reaches `a`; on another one it is copied there and the result back, and the call blocks until
    /// that is over. See namespace fft for what is read, written and thrown.
    completion run(const on& where, const array& a, const array& out, buffer& workspace) const;
};

}  // namespace weir::calls
