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

/// What a trace holds, in numbers.
struct trace_summary {
    std::uint64_t operations = 0;    ///< that were enqueued meanwhile
    std::uint64_t streams = 0;       ///< that lived meanwhile, idle or not
    std::uint64_t waits_issued = 0;  ///< device-side waits between streams, but for those counted below
    /// Waits that were needed and not issued, because something else implied them or their target was over. An
    /// operation of the same stream is never waited for and does not count.
    std::uint64_t waits_elided = 0;
    /// The fewest waits that give the same order: the cross-stream edges in the transitive reduction of what accesses,
    /// `after` and the program's own waits require, for the observed enqueue order, exact footprints, and with no
    /// operation taken to be over unless the host knew (rule O10). Waits issued may be fewer: what was over by luck needs
    /// none.
    std::uint64_t waits_minimal = 0;
    std::uint64_t waits_for_memory = 0;  ///< waits issued only because memory had a former owner (rule L1)
    /// Waits between an operation and a package that shares one of its operands, on entry and on exit (rule X6).
    std::uint64_t waits_for_packages = 0;
    std::chrono::nanoseconds span{0};  ///< from the start of the first operation that ran to the end of the last
};

/// Notes what Weir does in the whole process while it lives, then writes it to files (rule V2). By the name's ending:
///  - `.weirlog`: the evidence log, one JSON record a line, documented in docs/evidence-log.md
///  - `.html`: a page that shows it as a timeline; needs nothing but a browser
///  - `.json`: for Perfetto (https://ui.perfetto.dev) and chrome://tracing
///
/// Notes stay in memory until the trace is closed. Closing does not wait for devices: what has not run by then stands in
/// the log without times, so synchronise first.
///
/// \code
/// weir::trace_scope trace("timeline.html");
/// run();
/// weir::cpu().synchronize();
/// \endcode
class WEIR_EXPORT trace_scope {
public:
    /// Starts a trace that is only asked for its summary.
    trace_scope();
    /// Creates the file (what was there is lost) and starts. Throws argument_error if the ending is none of the above or
    /// the file cannot be created, state_error if too many scopes are active.
    explicit trace_scope(std::filesystem::path file);
    /// The same for several files.
    trace_scope(std::initializer_list<std::filesystem::path> files);
    /// The same for a list that is not known before the program runs.
    explicit trace_scope(std::vector<std::filesystem::path> files);
    /// Closes it. A failure is printed to the standard error output; call close() to have it thrown.
    ~trace_scope();
    trace_scope(const trace_scope&) = delete;
    trace_scope& operator=(const trace_scope&) = delete;

    /// Ends the trace and writes the files. Throws error, naming the file and the reason, if one cannot be written in
    /// full; the others are written nevertheless. Later calls do nothing.
    void close();

    /// The numbers up to now, or up to the close. Walks through all notes while they are locked: not for hot loops.
    [[nodiscard]] trace_summary summary() const;

private:
    void start(std::vector<std::filesystem::path> files);

    std::vector<std::filesystem::path> files_;
    std::unique_ptr<trace::collector> collector_;
    bool is_open_ = true;
};

}  // namespace weir
