#include <memory>
#include <utility>

#include "backend/timeline.hpp"
#include "weir/launch.hpp"

namespace weir::detail {

kept::~kept() = default;

/// Owns itself from the moment when it waits.
class keeper final : public backend::waiter {
public:
    void reached() noexcept override { delete this; }  // NOLINT(cppcoreguidelines-owning-memory)

    std::unique_ptr<kept> objects;
};

void keeper_deleter::operator()(keeper* one) const noexcept {
    delete one;  // NOLINT(cppcoreguidelines-owning-memory): the deleter of a unique_ptr
}

std::unique_ptr<keeper, keeper_deleter> make_keeper() {
    return std::unique_ptr<keeper, keeper_deleter>(new keeper);  // NOLINT(cppcoreguidelines-owning-memory)
}

void keep(std::unique_ptr<keeper, keeper_deleter> by, std::unique_ptr<kept> objects, const completion& until) noexcept {
    by->objects = std::move(objects);
    // No epoch: nothing was recorded, so there is nothing to wait for.
    if (until.epoch() != 0 && backend::timeline_table::instance().at(until.timeline()).wait(*by, until.epoch())) {
        // Told on another thread, perhaps already: only the address may still be looked at.
        static_cast<void>(by.release());
    }
}

}  // namespace weir::detail
