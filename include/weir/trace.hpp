// Traces: what ran where, what waited for what, and why. Layer: trace.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <vector>

#include "weir/export.hpp"

namespace weir {

namespace trace {
class collector;
class log;
}  // namespace trace

/// Counts of what a trace contains.
struct trace_summary {
    std::uint64_t operations = 0;    ///< operations enqueued during the trace
    std::uint64_t streams = 0;       ///< streams that lived during the trace, idle or not
    std::uint64_t waits_issued = 0;  ///< device-side waits between streams, except those counted below
    /// Waits that were needed and not issued, because something else implied them or their target was complete. An operation of the same
    /// stream is never waited for and does not count.
    std::uint64_t waits_elided = 0;
    /// The fewest waits that give the same order: the cross-stream edges in the transitive reduction of what accesses, `after` and the
    /// program's own waits require, for the observed enqueue order and exact footprints. No operation counts as complete unless the host
    /// knew it (rule O10). Fewer waits may have been issued: a target that happens to be complete needs none.
    std::uint64_t waits_minimal = 0;
    std::uint64_t waits_for_memory = 0;  ///< waits issued only because the memory had a former owner (rule L1)
    /// Waits between an operation and a package that shares one of its operands, on entry and on exit (rule X6).
    std::uint64_t waits_for_packages = 0;
    std::chrono::nanoseconds span{0};  ///< from the start of the first operation that ran to the end of the last
};

/// Records what Weir does in the whole process while it lives, then writes it to files (rule V2). The file's ending selects the format:
///  - `.weirlog`: the evidence log, one JSON record a line, documented in docs/evidence-log.md
///  - `.html`: a page that shows it as a timeline; needs nothing but a browser
///  - `.json`: for Perfetto (https://ui.perfetto.dev) and chrome://tracing
///
/// The record stays in memory until the trace is closed. Closing does not wait for devices: operations that have not run by then are in the
/// log without times, so synchronize first.
///
/// \code
/// weir::trace_scope trace("timeline.html");
/// run();
/// weir::cpu().synchronize();
/// \endcode
class WEIR_EXPORT trace_scope {
public:
    /// Starts a trace that is used for its summary only.
    [[nodiscard]] trace_scope();
    /// Creates the file (its former content is lost) and starts. Throws argument_error if the ending is none of the above or the file
    /// cannot be created, state_error if too many scopes are active.
    [[nodiscard]] explicit trace_scope(std::filesystem::path file);
    /// The same for several files.
    [[nodiscard]] trace_scope(std::initializer_list<std::filesystem::path> files);
    /// The same for a list that is not known before the program runs.
    [[nodiscard]] explicit trace_scope(std::vector<std::filesystem::path> files);
    /// Closes the trace. A failure is printed to the standard error output; call close() to get it as an exception.
    ~trace_scope();
    trace_scope(const trace_scope&) = delete;
    trace_scope& operator=(const trace_scope&) = delete;

    /// Ends the trace and writes the files. Throws file_error, naming the file and the reason, if one cannot be written in
    /// full; the others are written nevertheless. Later calls do nothing.
    void close();

    /// The counts up to now, or up to the close. Reads the whole record while it is locked: not for hot loops.
    [[nodiscard]] trace_summary summary() const;

private:
    void start(std::vector<std::filesystem::path> files);

    std::vector<std::filesystem::path> files_;
    std::unique_ptr<trace::collector> collector_;
    bool is_open_ = true;
};

}  // namespace weir
