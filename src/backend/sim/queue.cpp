#include "backend/sim/queue.hpp"

#include "weir/detail/site.hpp"

namespace weir::backend::sim {

namespace {

engine engine_for(runtime::work_kind kind) noexcept {
    switch (kind) {
        case runtime::work_kind::copy:
            return engine::copy;
        case runtime::work_kind::host_task:
            return engine::host;
        case runtime::work_kind::device:
        case runtime::work_kind::moment:
        case runtime::work_kind::gate:
            break;
    }
    return engine::compute;
}

}  // namespace

void sim_queue::run_virtually() noexcept {
    execute([&] { return engines_->time_of(starts); }, [&] { return engines_->time_of(ends); });
}

void sim_queue::advance() noexcept {
    engines& of = *engines_;  // this object may be destroyed before the last use
    for (;;) {
        switch (look(*this)) {
            case ahead::waiting:
                return;
            case ahead::nothing:
                if (rest()) {
                    of.left();
                    return;
                }
                break;
            case ahead::work:
                if (is_empty_ahead() || kind_ahead() == runtime::work_kind::moment) {
                    execute();
                    break;
                }
                if (kind_ahead() == runtime::work_kind::host_task && !engines_->is_virtual() &&
                    task_threads::instance().schedule(*this)) {
                    return;
                }
                engines_->ready(*this, engine_for(kind_ahead()));
                return;
        }
    }
}

}  // namespace weir::backend::sim
