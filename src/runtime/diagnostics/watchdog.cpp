#include "runtime/diagnostics/watchdog.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "backend/timeline.hpp"
#include "base/setting.hpp"
#include "frontier/point.hpp"
#include "runtime/diagnostics/standstill.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/watchdog.hpp"

namespace weir {

namespace {

using namespace std::chrono_literals;

using reporter = std::function<void(const std::string&)>;

/// How often to check for progress within the patience.
constexpr int looks = 4;
constexpr std::chrono::milliseconds default_patience = 60s;

struct settings {
    std::chrono::milliseconds patience{0};
    std::shared_ptr<const reporter> report;
};

struct shared_settings {
    detail::mutex mutex;  ///< guards now; a leaf in the lock order
    settings now;
};
shared_settings& shared_watchdog() {
    static auto* const one = new shared_settings;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

// At static initialization, so that no fork finds it half constructed.
[[maybe_unused]] const auto& watchdog_at_start = shared_watchdog();

void print(std::string_view text) noexcept { std::fwrite(text.data(), 1, text.size(), stderr); }

std::string seconds(std::chrono::milliseconds time) {
    const std::string thousandths = std::to_string(time.count() % 1000 + 1000).substr(1);
    return std::to_string(time.count() / 1000) + "." + thousandths + " s";
}

class watched_wait final : public backend::long_wait {
public:
    explicit watched_wait(frontiers::point target) : target_(target), wait_(runtime::watchdog::current()) {
        const std::lock_guard lock(shared_watchdog().mutex);
        settings_ = shared_watchdog().now;
    }

    void still_waiting() noexcept override {
        if (is_reported_) {
            return;
        }
        try {
            const runtime::standstill now = runtime::why_not_over(target_);
            const bool moved = now.reached != reached_;
            reached_ = now.reached;
            unmoved_ = moved ? 0 : unmoved_ + 1;
            if (unmoved_ >= looks) {
                const std::string text = text_of(now.story);
                is_reported_ = true;
                write_report(text);
            }
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): a later check tries again
        }
    }

private:
    [[nodiscard]] std::string text_of(const std::string& story) const {
        const source_location& where = wait_.where;
        const std::string place = where.line == 0 ? std::string("inside a call of Weir's")
                                                  : "at " + std::string(where.file) + ":" + std::to_string(where.line);
        return "weir: the host has waited for " + seconds(settings_.patience) + " or more without any progress, " +
               place + ", for" + (wait_.what == nullptr ? "" : " " + std::string(wait_.what)) + "\n" + story;
    }
    void write_report(const std::string& text) const noexcept {
        try {
            (*settings_.report)(text);
        } catch (...) {
            print("weir: the report of the watchdog threw an exception; what it was to say:\n");
            print(text);
        }
    }

    frontiers::point target_;
    runtime::watchdog::wait wait_;
    settings settings_;
    std::vector<frontiers::point> reached_;
    int unmoved_ = 0;
    bool is_reported_ = false;
};

std::unique_ptr<backend::long_wait> watch(frontiers::point target) noexcept {
    try {
        auto made = std::make_unique<watched_wait>(target);
        made->still_waiting();
        return made;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

/// Reads the patience from the environment.
std::chrono::milliseconds first_patience() {
    constexpr detail::setting watchdog("WEIR_WATCHDOG");
    if (const char* const text = watchdog.value(); text != nullptr) {
        char* end = nullptr;
        const double wanted = std::strtod(text, &end);
        if (end != text && *end == '\0' && wanted >= 0 && wanted < 1e9) {
            return std::chrono::milliseconds(static_cast<std::int64_t>(wanted * 1000));
        }
        watchdog.refuse("the patience stays at 60 seconds; say a number of seconds, 0 for none");
    }
    return default_patience;
}

}  // namespace

namespace {

void apply(std::chrono::milliseconds patience, std::function<void(const std::string&)> report) {
    auto to = std::make_shared<const reporter>(report ? std::move(report)
                                                      : reporter([](const std::string& text) { print(text); }));
    {
        shared_settings& all = shared_watchdog();
        const std::lock_guard lock(all.mutex);
        all.now.patience = std::max(patience, 0ms);
        std::swap(to, all.now.report);  // so that the former reporter is destroyed under no lock
    }
    const std::chrono::nanoseconds every = std::chrono::nanoseconds(std::max(patience, 0ms)) / looks;
    backend::timeline_table::instance().watch({every, watch});
}

}  // namespace

void set_watchdog(std::chrono::milliseconds patience, std::function<void(const std::string&)> report) {
    runtime::watchdog::arm();  // so that a later call does not read the environment and override this
    apply(patience, std::move(report));
}

void runtime::watchdog::arm() {
    // A later call tries again if there was no memory. Not std::call_once: with the thread sanitizer it hangs after an exception.
    [[maybe_unused]] static const bool is_armed = (apply(first_patience(), {}), true);
}

}  // namespace weir
