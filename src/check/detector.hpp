#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "check/access_history.hpp"
#include "check/event_history.hpp"
#include "check/freed_memory.hpp"
#include "check/program_order.hpp"
#include "frontier/point.hpp"
#include "observe/deferred_reports.hpp"
#include "observe/gone_streams.hpp"
#include "observe/observer.hpp"
#include "weir/check.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/source_location.hpp"

namespace weir::check {

/// The observer behind a check_scope. Any thread.
class detector final : public observe::observer {
public:
    explicit detector(check_options options)
        : options_(std::move(options)),
          warn_(options_.warn ? std::make_shared<const observe::teller>(options_.warn) : nullptr) {}

    [[nodiscard]] weir::report report() const;
    /// Delivers what no call has delivered yet, so that nothing is delivered later: texts, then, if `may_throw`, the first error, which is
    /// thrown. Otherwise the text of each error. Call it under no lock, once the detector receives nothing more.
    void settle(bool may_throw);

    [[nodiscard]] bool wants_safety() const noexcept override { return true; }
    void stream_made(const observe::stream_info& stream) override;
    void stream_gone(const observe::stream_info& stream, frontiers::point last) override;
    void operation(const observe::observed_operation& what) override;
    void event_recorded(std::uint64_t event, const observe::stream_info& stream, frontiers::point at,
                        const source_location& where) override;
    void stream_waits(const observe::stream_info& stream, frontiers::epoch at, frontiers::point target,
                      std::uint64_t event, observe::wait_made how, const source_location& where) override;
    void host_waited(frontiers::point target, const source_location& where) override;
    void device_waited(std::string_view device, const source_location& where) override;
    void device_finished(std::string_view device) override;
    void shares(std::uint64_t resource, std::uint64_t bytes, observe::sharing how, std::uint64_t address) override;
    void host_access(const observe::observed_access& what, const source_location& where) override;
    void host_found_ready(const observe::observed_access& what) override;
    void host_met_package(frontiers::point entry) override;
    void package_used(std::uint64_t resource, const order::footprint& where, order::access_mode mode,
                      frontiers::point at) override;
    void allocated(const observe::observed_allocation& what) override;
    void released(std::uint64_t resource) override;
    void kept_until(std::uint64_t resource, const observe::stream_info& stream) override;
    void unseen(std::string_view what) override;
    void dropped(std::uint64_t resource) override;

private:
    struct memory {
        access_history history;
        access_history packages;  ///< the accesses of packages that share it, as far as reported
        access_history former;  ///< accesses of earlier owners that may still happen to it, unordered with their drops
        std::uint64_t bytes = 0;           ///< 0 if its allocation was not observed
        std::uint64_t size = 0;            ///< the size as accesses report it
        source_location allocated;         ///< line 0 if its allocation was not observed
        std::optional<std::string> token;  ///< its name, if it is a token and no memory
        memory_place place;
        std::optional<agent> allocator;  ///< none if it was not allocated on a stream
        std::vector<agent> keepers;      ///< streams that the allocator waits for before it gives the memory out again
        owners_end end;
        observe::sharing shared = observe::sharing::none;
        std::uint64_t address = 0;            ///< where it begins, if it is shared
        std::uint64_t extent = 0;             ///< its size then
        std::vector<std::uint64_t> others{};  ///< other resources that are shared, and have bytes in common with it

        /// As if it were new, with the room that it has.
        void clear();
    };
    /// Memory of a package, which was dropped before these accesses were over. That is a race only once the stream gets memory that may
    /// be the same one: the program may order the accesses until then.
    struct early_end {
        std::uint64_t resource = 0;
        memory of;
        std::vector<past_access> accesses;
    };
    /// The second access of a race: an operation's, the host's, or a drop, which writes all of the memory.
    struct present {
        order::footprint where;
        order::access_mode mode = order::access_mode::write;
        std::optional<agent> stream;  ///< none for the host
        runtime::site from;
        observe::certainty touches = observe::certainty::definite;
        bool is_drop = false;
        bool left_to_weir = false;  ///< Weir orders it, and options let that count
    };
    /// What operations of Weir did to memory of another library, of which that library's hooks have not told yet.
    struct untold {
        std::uint64_t address = 0;
        std::uint64_t bytes = 0;
        access_history history;
    };
    enum class fault : std::uint8_t { unordered, early_reuse, use_after_free };

    /// Runs `act` under the lock. Observers cannot throw: if memory runs out, that is counted, and the report says that it is
    /// incomplete.
    template <class Act>
    void note(Act&& act) noexcept;
    /// The memory with this number, which is new if it was not seen before.
    memory& of(std::uint64_t resource);
    /// The number of a device, by its name.
    std::size_t number_of(std::string_view device);

    /// Orders `self` after the entries and exits of packages that share memory (rules X6, X7).
    void join_packages(agent self, const observe::observed_operation& what);
    /// Calls `join(moment)` for everything that Weir orders before an access, with or without a wait, if Weir orders the access.
    template <class Join>
    void join_conflicts(const observe::observed_access& access, Join&& join);
    /// Whether Weir orders this access and the options let that count.
    [[nodiscard]] bool left_to_weir(const observe::observed_access& access) const noexcept;
    /// Reports accesses that conflict with this one, to `one`, and are not ordered before it, the owner's and former owners'.
    template <class IsBefore>
    void look_back(const observe::observed_access& access, memory& one, const present& second, IsBefore&& is_before);
    /// @{
    /// Memory that Weir and another library share (detector_sharing.cpp). The first that is heard of how a resource is shared:
    void meet(std::uint64_t resource, memory& one, observe::sharing how, std::uint64_t address, std::uint64_t bytes);
    /// Makes an array of Weir's and memory of the library known to each other, if they have bytes in common.
    void pair(std::uint64_t weirs, memory& one, std::uint64_t theirs, memory& two);
    /// The same of any two. False: they have none, or are known to each other.
    static bool link(std::uint64_t a, memory& one, std::uint64_t b, memory& two);
    /// Reports accesses by other numbers of the same bytes that conflict and are not ordered before. `second` is an access to `one`.
    template <class IsBefore>
    void look_across(std::uint64_t resource, const memory& one, const present& second, IsBefore&& is_before);
    /// The resource's last owner drops it. What Weir did to memory of the library counts as done to the library's own resource.
    void part(std::uint64_t resource, memory& one);
    void add_after_those_before(access_history& to, const past_access& access);
    void forget_untold(std::uint64_t address, std::uint64_t bytes);
    /// @}
    /// Whether the memory is a package's, whose allocator gives it out again on its stream at once, and orders nothing.
    [[nodiscard]] bool is_of_package(const memory& one) const noexcept {
        return one.allocator && !order_.package(*one.allocator).empty();
    }
    /// Checks the accesses to memory whose last owner has dropped it. Leaves `one` empty.
    void judge_end(std::uint64_t resource, memory& one);
    /// The allocator gives out memory on the stream: judges what was freed there before all accesses were over.
    void judge_early(agent allocator);
    void report_early(const early_end& one, const std::vector<past_access>& accesses);

    /// Reports a race. `of` is the memory that the second access touches.
    void found(fault what, const past_access& first, const present& second, std::uint64_t resource, const memory& of);
    /// Fills in what the two places in the program do not show.
    void complete(race& one, fault what, const past_access& first, const present& second, std::uint64_t resource,
                  const memory& of) const;
    /// Leaves `one` for the call under way, and for the end of the scope.
    void leave(std::shared_ptr<observe::deferred_report> one, bool is_drop);
    void raise(const race& one, bool is_drop);
    [[nodiscard]] std::optional<stale_wait> stale_wait_before(const past_access& first, const present& second) const;
    [[nodiscard]] race_access describe(const runtime::site& from, const std::optional<agent>& stream) const;

    const check_options options_;
    const std::shared_ptr<const observe::teller> warn_;  ///< null: the standard error output
    mutable detail::mutex mutex_;                        ///< guards what follows; a leaf in the lock order
    program_order order_;
    event_history events_;
    observe::gone_streams gone_;
    freed_memory freed_;
    std::vector<std::string> devices_;  ///< by their numbers
    std::vector<early_end> early_;
    std::unordered_map<std::uint64_t, memory> memory_;
    std::vector<std::unordered_map<std::uint64_t, memory>::node_type>
        spare_;                                          ///< of memory that is gone, to be used again
    std::multimap<std::uint64_t, std::uint64_t> weirs_;  ///< the resources that Weir shares, by their addresses
    std::uint64_t longest_ = 0;                          ///< the size of the largest that there was
    std::vector<untold> untold_;                         ///< the newest last
    std::vector<past_access> strays_;                    ///< its room is used again
    std::vector<memory*> touched_;                       ///< the same: by the operation that is reported
    std::vector<race> races_;
    std::unordered_map<std::string, std::size_t> by_lines_;        ///< index into races_
    std::vector<std::shared_ptr<observe::deferred_report>> left_;  ///< not delivered yet; some may be meanwhile
    std::vector<std::string> unseen_;                              ///< as it was reported
    bool has_libraries_ = false;                                   ///< whether hooks of a library report accesses
    std::size_t forgotten_untold_ = 0;                             ///< accesses that are in `untold_` no more
    std::size_t lost_ = 0;                                         ///< calls for which there was not enough memory
    std::size_t unjudged_drops_ = 0;  ///< drops of memory whose allocation was not observed, possibly in use
};

}  // namespace weir::check
