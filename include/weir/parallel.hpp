// Fork and join: blocks of work that run in parallel. Layer: runtime.
#pragma once

#include <cstddef>
#include <vector>

#include "weir/export.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir {

/// Streams that run in parallel and belong together: each starts after what was enqueued into the launching stream before, and the
/// launching stream continues after all of them (scenario C7). They come from a pool and go back to it. Device-side: neither the
/// constructor nor `join` blocks.
///
/// \code
/// {
///     weir::parallel blocks(3, s);
///     for (std::size_t i = 0; i < blocks.size(); ++i) {
///         weir::parallel_for(blocks[i], n, body, weir::inout(part[i]));
///     }
/// }
/// weir::parallel_for(s, n, sum, weir::in(all));  // after the three
/// \endcode
///
/// The launching stream may be given work meanwhile, which runs in parallel to them. One thread at a time; any thread may use the streams.
class WEIR_EXPORT parallel {
public:
    /// `count` streams of the launching stream's device, with its priority. Throws state_error if it is closed,
    /// std::bad_alloc.
    [[nodiscard]] explicit parallel(std::size_t count, const stream_ref& from = current_stream(),
                                    source_location where = source_location::current());
    /// Joins, unless `join` was called. If that fails, because memory runs out or the launching stream was closed, the calling thread
    /// waits for the streams instead.
    ~parallel();
    parallel(const parallel&) = delete;
    parallel& operator=(const parallel&) = delete;

    /// The launching stream continues after everything that was enqueued into the streams, which must not be used any more: the object
    /// then has none. Idempotent. Throws state_error if the launching stream is closed, std::bad_alloc; then it can be called again.
    void join(source_location where = source_location::current());

    /// @{
    /// The streams.
    [[nodiscard]] std::size_t size() const noexcept { return streams_.size(); }
    [[nodiscard]] const stream& operator[](std::size_t i) const noexcept { return streams_[i]; }
    [[nodiscard]] auto begin() const noexcept { return streams_.begin(); }
    [[nodiscard]] auto end() const noexcept { return streams_.end(); }
    /// @}

private:
    void give_back() noexcept;

    stream from_;
    std::vector<stream> streams_;
    source_location where_;
};

}  // namespace weir
