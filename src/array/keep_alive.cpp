#include <memory>
#include <optional>
#include <utility>

#include "backend/acting.hpp"
#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "runtime/reaper.hpp"
#include "weir/launch.hpp"

namespace weir::detail {

kept::~kept() = default;

/// Owns itself from the moment when it is retired.
class keeper final : public runtime::retired {
public:
    [[nodiscard]] std::optional<frontiers::point> pending() noexcept override {
        const bool over = backend::timeline_table::instance().is_complete(until);
        return over ? std::nullopt : std::optional(until);
    }
    void release() noexcept override {
        const backend::acting_for self(until);
        delete this;  // NOLINT(cppcoreguidelines-owning-memory)
    }

    std::unique_ptr<kept> objects;
    frontiers::point until;  ///< epoch 0, "before everything": nothing was recorded, so there is nothing to wait for
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
    by->until = {until.timeline(), until.epoch()};
    if (by->pending()) {
        runtime::reaper::push_when_over(*by.release());
    }
}

}  // namespace weir::detail
