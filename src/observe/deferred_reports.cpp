#include "observe/deferred_reports.hpp"

#include <cstdio>

namespace weir::observe {

void deferred_report::say() const {
    if (to_) {
        (*to_)(text_);
    } else {
        // One call for each text, so that texts of several threads do not mix.
        std::fwrite(text_.data(), 1, text_.size(), stderr);
    }
}

void deferred_reports::settle_now(const std::vector<std::shared_ptr<deferred_report>>& all) {
    const deferred_report* first_error = nullptr;
    for (const std::shared_ptr<deferred_report>& one : all) {
        if (!one->take()) {
            continue;
        }
        if (!one->is_error()) {
            one->say();
        } else if (first_error == nullptr) {
            first_error = one.get();
        }
    }
    if (first_error != nullptr) {
        first_error->raise();
    }
}

}  // namespace weir::observe
