// Tools for those who test programs that use streams. Layer: runtime.
#pragma once

#include <cstdint>

#include "weir/export.hpp"
#include "weir/stream.hpp"

namespace weir::testing {

/// Holds streams back until it is opened: makes a race certain where luck would decide. Device-side: a held stream keeps
/// no thread busy, and neither `hold` nor `open` blocks. Destroying a gate opens it.
class WEIR_EXPORT gate {
public:
    gate();
    ~gate();
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;

    /// What is enqueued on `stream` from now on does not start before the gate is open.
    void hold(const stream_ref& stream, source_location where = source_location::current());
    /// Lets all go on. Idempotent.
    void open() noexcept;

private:
    std::uint32_t timeline_;
    std::uint64_t opening_;
    bool is_open_ = false;
};

}  // namespace weir::testing
