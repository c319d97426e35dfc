#include "backend/native.hpp"

#include "weir/detail/task.hpp"

namespace weir {

void* detail::native_queue_handle() noexcept { return backend::submitting_to::current(); }

}  // namespace weir
