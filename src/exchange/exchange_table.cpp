#include "weir/exchange_table.hpp"
#include "weir/device.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "exchange/enter.hpp"
#include "exchange/exported.hpp"
#include "weir/borrow.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/sharing.hpp"

namespace weir::exchange {

namespace {

/// An array that a consumer has, with the work streams on which the consumer may use it.
class worked_on {
public:
    worked_on(array x, bool writes) : x_(std::move(x)), writes_(writes) {}

    [[nodiscard]] weir::device device() const { return x_.device(); }

    /// From now on the consumer may use it on `by`, too. Enqueues under no lock: two threads may both do so, which
    /// adds a second tie to the same stream and changes nothing else.
    void hand_to(const stream& by, const source_location& where) {
        {
            const std::lock_guard lock(mutex_);
            if (std::any_of(by_.begin(), by_.end(), [&](const use_of_it& one) { return one.by == by; })) {
                return;
            }
        }
        // Tied first: an operation that another thread enqueues meanwhile is either found by `enter`, or finds the tie.
        use_of_it made{by, live_export(x_, std::make_shared<stream_package>(by),
                                       writes_ ? package_use::writes : package_use::reads)};
        enter(x_, by, writes_, order_asked_by::weir, where);
        const std::lock_guard lock(mutex_);
        by_.push_back(std::move(made));
    }

private:
    struct use_of_it {
        stream by;
        live_export as;
    };
    array x_;
    bool writes_;
    weir::detail::mutex mutex_;  ///< guards by_; a leaf
    std::vector<use_of_it> by_;
};

/// The arrays that consumers have now.
struct handed_out {
    weir::detail::mutex mutex;  ///< guards `all`; a leaf
    std::vector<std::weak_ptr<worked_on>> all;

    void add(const std::shared_ptr<worked_on>& one) {
        const std::lock_guard lock(mutex);
        if (all.size() == all.capacity()) {
            forget_ended();
        }
        all.push_back(one);
    }
    [[nodiscard]] std::vector<std::shared_ptr<worked_on>> alive_on(const device& on) {
        std::vector<std::shared_ptr<worked_on>> found;
        {
            const std::lock_guard lock(mutex);
            forget_ended();
            found.reserve(all.size());
            for (const std::weak_ptr<worked_on>& each : all) {
                if (std::shared_ptr<worked_on> one = each.lock()) {
                    found.push_back(std::move(one));
                }
            }
        }
        // Under no lock: where the consumer has let go meanwhile, this drops the last reference, and the end of an export asks packages and
        // calls the driver.
        std::erase_if(found, [&](const std::shared_ptr<worked_on>& one) { return one->device() != on; });
        return found;
    }

private:
    void forget_ended() {
        all.erase(std::remove_if(all.begin(), all.end(), [](const auto& each) { return each.expired(); }), all.end());
    }
};

handed_out& handed() {
    static auto* const one = new handed_out;  // NOLINT(cppcoreguidelines-owning-memory): never destroyed
    return *one;
}

// Constructed at start, so that no fork finds it half constructed.
[[maybe_unused]] const auto& handed_made_at_start = handed();

}  // namespace

const dlpack::exchange_table* readable_table(const dlpack::exchange_table_header* newest) noexcept {
    // A longer chain than DLPack can have versions is invalid.
    constexpr int most_versions = 64;
    const dlpack::exchange_table_header* one = newest;
    for (int seen = 0; one != nullptr && seen < most_versions; ++seen) {
        if (one->version.major == 1) {
            return reinterpret_cast<const dlpack::exchange_table*>(one);  // a table begins with its header
        }
        one = one->previous;
    }
    return nullptr;
}

dlpack_tensor to_dlpack(weir::detail::passkey key, const stream& on, const array& x, package_use use,
                        std::vector<std::shared_ptr<package>> others, source_location where) {
    if (!x.buffer()) {
        return to_dlpack(key, x, use, std::move(others), std::nullopt);
    }
    const bool writes = use == package_use::writes && x.has_own_elements() && !is_read_only(x.buffer());
    auto made = std::make_shared<worked_on>(x, writes);
    made->hand_to(on, where);
    handed().add(made);
    return exported_with(x, use, std::move(others), std::move(made));
}

void announce_work_stream(const stream& on, source_location where) {
    for (const std::shared_ptr<worked_on>& each : handed().alive_on(on.device())) {
        each->hand_to(on, where);
    }
}

}  // namespace weir::exchange
