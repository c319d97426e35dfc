// The race detector: reports what the program's own ordering lacks. Layer: check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/access.hpp"
#include "weir/export.hpp"
#include "weir/source_location.hpp"

namespace weir {

namespace check {
class detector;
}

/// What a check_scope does about a race, besides keeping the program safe and adding the race to the report.
enum class check_mode : std::uint8_t {
    collect,  ///< nothing more
    /// Prints it once to the standard error output, when the call that completes it returns. A drop of memory is no call: its race is
    /// printed at the end of a later call of the same thread, at the latest at the end of the scope.
    warn,
    /// That call throws race_error, each time; a race of a drop is thrown at the latest by check_scope::end. The operation of a call that
    /// throws is enqueued, safely: do not call again.
    raise,
};

/// Options of a check_scope.
struct check_options {
    check_mode mode = check_mode::collect;  ///< what it does about a race
    /// Ignores the waits that Weir inserts: reports what would go wrong if the whole program ran under `ordering_mode::manual`.
    bool assume_manual = false;
    /// Receives the text of `check_mode::warn`, which is then not printed: on the thread whose call completes the race, when that call
    /// returns, under no lock. It may use Weir, and must not throw.
    std::function<void(const std::string&)> warn = {};
};

/// One of the two accesses of a race. A drop of memory counts as one, too. A destructor does not know its line of the program, so for a
/// drop `file`, `line` and `function` are those of the allocation, and `stream` is the stream of the allocation, on which other pools
/// free memory.
struct race_access {
    std::string file;                      ///< the source file of the call that enqueued it
    std::uint32_t line = 0;                ///< the line there
    std::string function;                  ///< the function that contains the call
    std::string stream;                    ///< the stream's name; "host" for an access of the host's
    std::uint64_t stream_id = 0;           ///< stream_ref::unique_id; 0 for the host
    std::string label;                     ///< the operation's label; empty if it has none
    access_mode mode = access_mode::read;  ///< whether it reads or writes
    std::uint64_t resource = 0;            ///< buffer::unique_id of the memory
    std::string array;     ///< the memory in words: its number, its size and the place of its allocation
    byte_range range;      ///< the bytes of the memory, from the first to the last that is touched
    bool is_drop = false;  ///< it is not an operation, but the drop of the memory
    /// The place of the call, with the pointers that the call was given: bindings identify what they keep, such as whole stacks, by them.
    source_location where = {};
    bool is_token = false;  ///< it uses a token, which has no memory: `array` has its name, and `range` says nothing
};

/// Two accesses to the same bytes, at least one a write, that nothing in the program orders (rule V1).
struct race {
    /// The most specific kind that fits:
    ///  - "use-after-free": the last owner dropped memory that an operation may still use. A drop counts as a free on the stream that
    ///    allocated the memory, at its end at that moment, as in other pools. Weir's pool makes it safe.
    ///  - "early-reuse": an operation uses memory that a former owner dropped too early, and that an operation of the former owner may
    ///    still use.
    ///  - "stale-event": the second access comes after a wait for an event, and would come after the first one if that wait had taken
    ///    another record of the same event: it was recorded before the first access, again later, or not yet.
    ///  - "default-stream": one of the two runs on a default stream, and the other does not, or on another kind of default stream. The
    ///    kinds are Weir's of a device, which takes work that is given no stream; the driver's legacy one; the driver's of a thread.
    ///  - "host": the host touches memory that an operation may still use.
    ///  - "RAW", "WAR", "WAW": read after write and so on, in the order of enqueueing.
    std::string kind;
    std::string certainty;  ///< "definite": the two do touch the same bytes; "possible": they may
    race_access first;      ///< the access that was enqueued first
    race_access second;     ///< the other access
    /// For a stale event: which wait took which record; for a default stream: which one; otherwise empty.
    std::string reason;
    /// Code that adds the missing edge; streams have their names. Each line is in the language of its file: Python for a Python file, else
    /// C++.
    std::string mend;
    std::uint64_t times = 1;  ///< how often accesses from this pair of source lines raced
};

/// What a check_scope has found. A value: it does not change when more races are found. Never blocks.
class WEIR_EXPORT report {
public:
    /// An empty report.
    report() = default;
    /// A report of these races; `unseen` says what was not seen.
    report(std::vector<race> races, std::vector<std::string> unseen)
        : races_(std::move(races)), unseen_(std::move(unseen)) {}

    /// @{
    /// One race for each pair of source lines, in the order in which they were found. A temporary report gives them away.
    [[nodiscard]] const std::vector<race>& races() const& noexcept { return races_; }
    [[nodiscard]] std::vector<race> races() && noexcept { return std::move(races_); }
    /// @}
    /// @{
    /// What could not be seen, in words. If this is not empty, finding no race proves less. A temporary report gives it away.
    [[nodiscard]] const std::vector<std::string>& unseen() const& noexcept { return unseen_; }
    [[nodiscard]] std::vector<std::string> unseen() && noexcept { return std::move(unseen_); }
    /// @}
    /// The number of races.
    [[nodiscard]] std::size_t size() const noexcept { return races_.size(); }
    /// Whether no race was found.
    [[nodiscard]] bool empty() const noexcept { return races_.empty(); }
    /// @{
    /// For loops over the races, which keep the report. A temporary report has none: of two, begin and end would not belong together.
    [[nodiscard]] auto begin() const& noexcept { return races_.begin(); }
    [[nodiscard]] auto end() const& noexcept { return races_.end(); }
    auto begin() const&& = delete;
    auto end() const&& = delete;
    /// @}

    /// For people: what raced, why it matters, what to add where.
    [[nodiscard]] std::string to_string() const;
    /// For programs: {"races": [...], "unseen": [...]} with the fields of `race` under their names.
    [[nodiscard]] std::string to_json() const;
    /// For code review and editors: SARIF 2.1.0. The level of a result follows from the certainty ("error" or "warning").
    [[nodiscard]] std::string to_sarif() const;

private:
    std::vector<race> races_;
    std::vector<std::string> unseen_;
};

/// Checks the whole process while it lives (rule V1). The program stays safe: Weir inserts the waits that accesses need, even where the
/// program has chosen to order them itself, and reports each pair of conflicting accesses that the program's *own* ordering leaves
/// unordered. That ordering consists of
///  - the order of each stream,
///  - the events, waits and `after` that the program asked for,
///  - the host: what is enqueued after a wait of the host's has returned, or after a question was answered "done", comes after the work
///    in question. All threads of the host count as one, because check does not see the program's own locks,
///  - what Weir orders in `ordering_mode::automatic`, unless `assume_manual`. So a program that leaves ordering to Weir has nothing
///    to report, and neither has a drop after accesses that Weir orders.
/// The body of an operation that itself enqueues or waits comes after what its operation comes after, and does not count as a thread of
/// the host. What it has waited for comes before the end of its operation.
/// Work that merely happened to be complete orders nothing: the result does not depend on how fast a device was.
///
/// Accesses made before the scope are not seen, and neither is work that declares no accesses. Memory that the body of an operation owns,
/// or that keep_alive keeps, is not dropped before that operation is complete. If a later access covers an earlier one and is ordered
/// after it, it represents the earlier one. Scopes may nest; each has its own record.
///
/// \code
/// weir::check_scope scope;
/// run();
/// std::cout << scope.report().to_string();
/// \endcode
///
/// With the environment variable WEIR_CHECK set, a process is checked from its start without a scope: "1" or "collect" prints the report
/// to the standard error output when the process ends; "warn" and "raise" do what the modes do as well.
class WEIR_EXPORT check_scope {
public:
    /// Starts the check. Does not block. Throws state_error if too many scopes are active, std::bad_alloc.
    [[nodiscard]] explicit check_scope(check_options options = {});
    /// Stops the check, as `end` does; a race_error that would be left to throw is printed to the standard error output instead. Does not
    /// block on devices.
    ~check_scope();
    check_scope(const check_scope&) = delete;
    check_scope& operator=(const check_scope&) = delete;

    /// Stops the check, and delivers what is left, such as the races of drops after which nothing was called: the texts of
    /// `check_mode::warn`; under `check_mode::raise` the first of the errors that no call has thrown. Afterwards nothing is printed or
    /// thrown. Does nothing the second time. Does not block on devices. Throws race_error.
    void end();

    /// What was found up to now. Any thread; does not block on devices.
    [[nodiscard]] weir::report report() const;

private:
    std::unique_ptr<check::detector> detector_;
    bool has_ended_ = false;
};

}  // namespace weir
