#include "check/detector.hpp"
#include "runtime/observer.hpp"
#include "weir/check.hpp"

#include <utility>

namespace weir {

check_scope::check_scope(check_options options) : detector_(std::make_unique<check::detector>(std::move(options))) {
    runtime::observers::add(*detector_);
}

check_scope::~check_scope() { runtime::observers::remove(*detector_); }

report check_scope::report() const { return detector_->report(); }

}  // namespace weir
