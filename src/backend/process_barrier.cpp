#include "backend/process_barrier.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weir::backend {

namespace {

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0U, 0) == 0; }

}  // namespace

bool has_process_barrier() noexcept {
    static const bool found = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    return found;
}

bool process_barrier() noexcept { return has_process_barrier() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }

}  // namespace weir::backend
