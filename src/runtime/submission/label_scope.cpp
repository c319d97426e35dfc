#include "weir/detail/label_scope.hpp"

#include <utility>

#include "observe/slow_path_reasons.hpp"

namespace weir::detail {

namespace {

thread_local const char* label_of_thread = nullptr;

}  // namespace

label_scope::label_scope(const char* label) noexcept : before_(std::exchange(label_of_thread, label)) {
    observe::slow_path_reasons::begin_label();
}

label_scope::~label_scope() {
    observe::slow_path_reasons::end_label();
    label_of_thread = before_;
}

const char* label_scope::current() noexcept { return label_of_thread; }

}  // namespace weir::detail
