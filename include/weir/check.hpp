// The race detector: reports what the program's own ordering lacks. Layer: check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/detail/footprint.hpp"
#include "weir/export.hpp"
#include "weir/source_location.hpp"

namespace weir {

namespace check {
class detector;
}

/// What a check_scope does about a race, besides keeping the program safe and noting it in the report.
enum class check_mode : std::uint8_t {
    collect,  ///< nothing
    warn,     ///< prints it once to the standard error output, when the call that completes it returns
    raise,    ///< the call that completes it throws race_error, each time. Its operation is enqueued, safely
};

/// How a check_scope works.
struct check_options {
    check_mode mode = check_mode::collect;  ///< what it does about a race
    /// Counts none of the waits that Weir inserts: reports what would go wrong if the whole program ran under
    /// `ordering_mode::manual`.
    bool assume_manual = false;
    /// What `check_mode::warn` hands its text to, instead of printing it: on the thread whose call completes the race, when
    /// that returns, under no lock. It may use Weir, and must not throw.
    std::function<void(const std::string&)> warn = {};
};

/// One of the two accesses of a race. A drop of memory counts as one, too: destructors do not know which line of the program
/// they belong to, so that `file`, `line` and `function` are those of the allocation then, and `stream` is the stream on
/// which it was made, where others free.
struct race_access {
    std::string file;                                    ///< the source file of the call that enqueued it
    std::uint32_t line = 0;                              ///< the line there
    std::string function;                                ///< the function that the call stands in
    std::string stream;                                  ///< its name; "host" for an access of the host's
    std::uint64_t stream_id = 0;                         ///< stream_ref::unique_id; 0 for the host
    std::string label;                                   ///< the operation's label; empty if it has none
    order::access_mode mode = order::access_mode::read;  ///< whether it reads or writes
    std::uint64_t resource = 0;                          ///< buffer::unique_id of the memory
    std::string array;       ///< the memory in words: its number, size and where it was allocated
    order::footprint range;  ///< bytes of the memory
    bool is_drop = false;    ///< it is no operation, but the end of the memory
    /// Where it was, as the call was given it: the pointers tell apart what a binding keeps by them, such as whole stacks.
    source_location where = {};
};

/// Two accesses to the same bytes, at least one a write, that nothing in the program orders (rule V1).
struct race {
    /// The most specific that fits:
    ///  - "use-after-free": the last owner dropped memory that an operation may still use. A drop counts as a free on the
    ///    stream that allocated the memory, at its end at that moment, as other pools do it. Weir's pool makes it safe.
    ///  - "early-reuse": an operation uses memory that the operation of a former owner, who dropped it too early, may still
    ///    use.
    ///  - "stale-event": the second access comes after a wait for an event, and would come after the first one if that wait
    ///    had taken another record of the same event: it was recorded before the first access, again later, or not yet.
    ///  - "default-stream": one of the two runs on a default stream (Weir's of a device, where work goes that is given no
    ///    stream; the driver's legacy one; the driver's of a thread), and the other does not, or on another kind of them.
    ///  - "host": the host touches what an operation may still use.
    ///  - "RAW", "WAR", "WAW": read after write and so on, in the order of enqueueing.
    std::string kind;
    std::string certainty;  ///< "definite": the two do touch the same bytes; "possible": they may, it is hard to see
    race_access first;      ///< the access that was enqueued first
    race_access second;     ///< the other
    std::string
        reason;  ///< of a stale event: which wait took which record; of a default stream: which; otherwise empty
    /// Code that adds the missing edge, streams called by their names: each line in the language of the file that it is for,
    /// which is C++ unless the file is one of Python's.
    std::string mend;
    std::uint64_t times = 1;  ///< how often accesses from this pair of source lines raced
};

/// What a check_scope has found. A value: later races do not show in it. Nothing here blocks.
class WEIR_EXPORT report {
public:
    /// Nothing found.
    report() = default;
    /// With these races and these words about what was not seen.
    report(std::vector<race> races, std::vector<std::string> unseen)
        : races_(std::move(races)), unseen_(std::move(unseen)) {}

    /// One for each pair of source lines, in the order in which they were found.
    [[nodiscard]] const std::vector<race>& races() const noexcept { return races_; }
    /// What could not be seen, in words. Where this is not empty, silence proves less.
    [[nodiscard]] const std::vector<std::string>& unseen() const noexcept { return unseen_; }
    /// The number of races.
    [[nodiscard]] std::size_t size() const noexcept { return races_.size(); }
    /// Whether no race was found.
    [[nodiscard]] bool empty() const noexcept { return races_.empty(); }
    /// @{
    /// For loops over the races.
    [[nodiscard]] auto begin() const noexcept { return races_.begin(); }
    [[nodiscard]] auto end() const noexcept { return races_.end(); }
    /// @}

    /// For people: what raced, why it matters, what to add where.
    [[nodiscard]] std::string to_string() const;
    /// For programs: {"races": [...], "unseen": [...]} with the fields of `race` under their names.
    [[nodiscard]] std::string to_json() const;
    /// For code review and editors: SARIF 2.1.0. A result has its level from the certainty ("error" or "warning").
    [[nodiscard]] std::string to_sarif() const;

private:
    std::vector<race> races_;
    std::vector<std::string> unseen_;
};

/// Watches the whole process while it lives (rule V1). The program stays safe: Weir inserts the waits that accesses need,
/// also where the program chose to order them itself, and reports each pair of conflicting accesses that the program's
/// *own* ordering leaves unordered. That ordering consists of
///  - the order of each stream,
///  - the events, waits and `after` that the program asked for,
///  - the host: what is enqueued after a wait of the host's has returned, or a question was answered "done", comes after
///    what that was about. All threads of the host count as one, since check does not see the program's own locks,
///  - what Weir orders in `ordering_mode::automatic`, unless `assume_manual`. So a program that leaves ordering to Weir
///    has nothing to report; nor has a drop after accesses that were left to Weir.
/// The body of an operation that enqueues or waits itself comes after what its operation comes after, and is not one of
/// the host's threads.
/// Work that merely happened to be over orders nothing: the verdict does not depend on how fast a device was.
///
/// Accesses made before the scope are not seen, nor is work that declares no accesses. Memory that the body of an operation
/// owns, or keep_alive, is not dropped before that operation is over. An access that a later one, ordered after it, covers
/// is represented by that later one. Scopes may nest; each keeps its own record.
///
/// \code
/// weir::check_scope scope;
/// run();
/// std::cout << scope.report().to_string();
/// \endcode
///
/// With the environment variable WEIR_CHECK set, a process is watched from its start without a scope: "1" or "collect"
/// prints the report to the standard error output when the process ends; "warn" and "raise" do what the modes do, too.
class WEIR_EXPORT check_scope {
public:
    /// Starts to watch. Does not block. Throws state_error if too many scopes are active, std::bad_alloc.
    explicit check_scope(check_options options = {});
    /// Stops. Does not block on devices.
    ~check_scope();
    check_scope(const check_scope&) = delete;
    check_scope& operator=(const check_scope&) = delete;

    /// What was found up to now. Any thread; blocks on no device.
    [[nodiscard]] weir::report report() const;

private:
    std::unique_ptr<check::detector> detector_;
};

}  // namespace weir
