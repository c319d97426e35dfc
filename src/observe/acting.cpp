#include "observe/acting.hpp"

#include "weir/detail/acting.hpp"

namespace weir::detail {

acting_operation acts_for() noexcept {
    const frontiers::point now = observe::acting_for::current();
    return {now.timeline, now.at};
}

acting_scope::acting_scope(acting_operation operation) noexcept : previous_(acts_for()) {
    if (operation.epoch != 0) {
        observe::acting_for::set({operation.timeline, operation.epoch});
    }
}

acting_scope::~acting_scope() { observe::acting_for::set({previous_.timeline, previous_.epoch}); }

}  // namespace weir::detail
