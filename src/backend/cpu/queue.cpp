#include "backend/cpu/queue.hpp"

#include "weir/detail/site.hpp"

namespace weir::backend::cpu {

void cpu_queue::run() noexcept {
    for (int left = turn;;) {
        const ahead found = look(*this);
        if (found == ahead::waiting) {
            return;
        }
        if (found == ahead::nothing) {
            if (!workers::instance().linger(*this) && rest()) {
                return;
            }
            continue;
        }
        workers::offer();
        if (kind_ahead() == runtime::work_kind::host_task && task_threads::instance().schedule(*this)) {
            return;
        }
        execute();
        if (--left == 0) {
            schedule();
            workers::offer();
            return;
        }
    }
}

void cpu_queue::run_blocking() noexcept {
    execute();
    schedule();
}

}  // namespace weir::backend::cpu
