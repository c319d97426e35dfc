#include "check/detector.hpp"
#include "observe/observers.hpp"
#include "weir/check.hpp"

#include <utility>

namespace weir {

check_scope::check_scope(check_options options) : detector_(std::make_unique<check::detector>(std::move(options))) {
    observe::observers::add(*detector_);
}

check_scope::~check_scope() {
    if (!has_ended_) {
        observe::observers::remove(*detector_);
        detector_->settle(false);
    }
}

void check_scope::end() {
    if (!has_ended_) {
        has_ended_ = true;
        observe::observers::remove(*detector_);
        detector_->settle(true);
    }
}

report check_scope::report() const { return detector_->report(); }

}  // namespace weir
