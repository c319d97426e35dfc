#include <memory>
#include <optional>
#include <utility>

#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "observe/acting.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/launch.hpp"

namespace weir::detail {

kept::~kept() = default;

/// Owns itself once it is retired.
class keeper final : public runtime::retired {
public:
    [[nodiscard]] std::optional<frontiers::point> pending() noexcept override {
        const bool over = backend::timeline_table::instance().is_complete(until);
        return over ? std::nullopt : std::optional(until);
    }
    void release() noexcept override {
        const observe::acting_for self(until);
        delete this;  // NOLINT(cppcoreguidelines-owning-memory)
    }

    std::unique_ptr<kept> objects;
    frontiers::point until;  ///< epoch 0: nothing was recorded, so there is nothing to wait for
};

void keeper_deleter::operator()(keeper* one) const noexcept {
    delete one;  // NOLINT(cppcoreguidelines-owning-memory): the deleter of a unique_ptr
}

std::unique_ptr<keeper, keeper_deleter> make_keeper() {
    runtime::reaper::start();
    return std::unique_ptr<keeper, keeper_deleter>(new keeper);  // NOLINT(cppcoreguidelines-owning-memory)
}

void keep(std::unique_ptr<keeper, keeper_deleter> by, std::unique_ptr<kept> objects, const completion& until) noexcept {
    by->objects = std::move(objects);
    by->until = {until.timeline(detail::key), until.epoch(detail::key)};
    if (by->pending()) {
        runtime::reaper::push_when_over(*by.release());
    } else if (by->until.at != 0) {
        by.release()->release();  // as if it had been pending: what check reports does not depend on timing
    }
}

}  // namespace weir::detail
