#include "weir/wait_log.hpp"
#include "order/plan.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/site.hpp"

#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "observe/deferred_reports.hpp"
#include "observe/observers.hpp"
#include "observe/stream_directory.hpp"
#include "weir/access.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

namespace weir {

namespace trace {

/// The observer behind a wait_log. Any thread.
class wait_teller final : public observe::observer {
public:
    explicit wait_teller(std::function<void(const std::string&)> sink)
        : sink_(std::make_shared<const observe::teller>(std::move(sink))) {}

    void stream_made(const observe::stream_info& stream) override {
        note([&] { meet(stream); });
    }

    void operation(const observe::observed_operation& what) override {
        note([&] {
            past_operation now{what.epoch, what.from, {what.accesses.begin(), what.accesses.end()}};
            const std::string self = name_of(now.from) + " on " + meet(*what.stream).in_words;
            for (const observe::observed_wait& wait : what.waits) {
                report(self + " waits for " + in_words(wait.target) + ": " + reason(wait, now));
            }
            remember(what.stream->id, std::move(now));
        });
    }

    void stream_waits(const observe::stream_info& stream, frontiers::epoch /*at*/, frontiers::point target,
                      std::uint64_t /*event*/, observe::wait_made how, const source_location& where) override {
        if (how == observe::wait_made::issued) {
            note([&] {
                report("the program" + place_of(where) + " makes " + meet(stream).in_words + " wait for " +
                       in_words(target));
            });
        }
    }

private:
    /// How many operations of each stream are kept, for their names.
    static constexpr std::size_t most = 1024;

    struct past_operation {
        frontiers::epoch at = 0;
        runtime::site from;
        std::vector<observe::observed_access> accesses;
    };
    struct known_stream {
        std::string in_words;
        std::deque<past_operation> last;
    };

    template <class Act>
    void note(Act&& act) noexcept {
        const std::lock_guard lock(mutex_);
        try {
            act();
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): one line is missing
        }
    }
    void report(std::string line) const {
        observe::deferred_reports::leave(std::make_shared<observe::deferred_report>(sink_, std::move(line)));
    }

    known_stream& meet(const observe::stream_info& stream) {
        if (directory_.add(stream)) {
            streams_[stream.id].in_words =
                "the stream \"" + std::string(stream.name) + "\" of " + std::string(stream.device);
        }
        return streams_[stream.id];
    }
    void remember(std::uint64_t stream, past_operation one) {
        std::deque<past_operation>& last = streams_[stream].last;
        if (last.size() == most) {
            last.pop_front();
        }
        last.push_back(std::move(one));
    }
    /// The last operation at or before `p`; null if it is not kept any more.
    [[nodiscard]] const past_operation* find(frontiers::point p) const {
        const auto stream = streams_.find(directory_.stream_of(p));
        if (stream == streams_.end()) {
            return nullptr;
        }
        const auto& last = stream->second.last;
        for (auto one = last.rbegin(); one != last.rend(); ++one) {
            if (one->at <= p.at) {
                return &*one;
            }
        }
        return nullptr;
    }

    static std::string place_of(const source_location& where) {
        return where.line == 0 ? std::string()
                               : std::string(" (") + where.file + ":" + std::to_string(where.line) + ")";
    }
    static std::string name_of(const runtime::site& from) {
        const std::string label = from.label == nullptr ? "operation" : from.label;
        return '"' + label + '"' + place_of(from.where);
    }
    [[nodiscard]] std::string in_words(frontiers::point p) const {
        const auto stream = streams_.find(directory_.stream_of(p));
        const past_operation* const one = find(p);
        const std::string what = one == nullptr ? std::string("what came before") : name_of(one->from);
        return what + " on " +
               (stream == streams_.end() ? std::string("a stream that is no more") : stream->second.in_words);
    }

    static std::string in_words(const observe::observed_access& access) {
        const std::string number = "#" + std::to_string(access.resource);
        if (access.token != nullptr) {
            return "the token " + (*access.token == '\0' ? number : "\"" + std::string(access.token) + "\"");
        }
        return "bytes [" + std::to_string(access.where.begin) + ", " + std::to_string(access.where.end) +
               ") of memory " + number;
    }

    /// One of the operation's accesses that is a reason for the wait and conflicts with `of`; null if there is none.
    static const observe::observed_access* cause(const observe::observed_wait& wait, const past_operation& now,
                                                 const past_operation* of) {
        const bool reads = wait.why == order::reason::read_after_write;
        for (const observe::observed_access& access : now.accesses) {
            if (of != nullptr && (access.mode == order::access_mode::read) == reads) {
                for (const observe::observed_access& past : of->accesses) {
                    if (past.resource == access.resource && overlap(past.where, access.where)) {
                        return &access;
                    }
                }
            }
        }
        return nullptr;
    }
    [[nodiscard]] std::string reason(const observe::observed_wait& wait, const past_operation& now) const {
        const auto touches = [&](std::string_view deed, std::string_view theirs) {
            const observe::observed_access* const access = cause(wait, now, find(wait.target));
            const std::string what = access == nullptr ? std::string("memory") : in_words(*access);
            return "it " + std::string(deed) + " " + what + ", which that " + std::string(theirs) +
                   (wait.hazard_of_manual ? ", and the program does not order the two" : "");
        };
        switch (wait.why) {
            case order::reason::read_after_write:
                return touches("reads", "writes");
            case order::reason::write_after_read:
                return touches("writes", "reads");
            case order::reason::write_after_write:
                return touches("writes", "writes, too");
            case order::reason::reuse:
                return "the memory belonged to another array before, and an operation may still use it";
            case order::reason::dependency:
                return "the program says so";
            case order::reason::entry:
                return "a package that shares the memory may still use it";
            case order::reason::exit:
                return "it hands memory back to the package that shares it";
        }
        return {};
    }

    const std::shared_ptr<const observe::teller> sink_;
    detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    observe::stream_directory directory_;
    std::unordered_map<std::uint64_t, known_stream> streams_;
};

}  // namespace trace

wait_log::wait_log(std::function<void(const std::string&)> sink) {
    if (!sink) {
        throw argument_error("a wait_log got no function: pass what is to be called with each line");
    }
    teller_ = std::make_unique<trace::wait_teller>(std::move(sink));
    observe::observers::add(*teller_);
}

wait_log::~wait_log() { observe::observers::remove(*teller_); }

}  // namespace weir
