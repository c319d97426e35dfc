#include "backend/cuda/api/device_libraries.hpp"

#include "backend/cuda/api/driver_api.hpp"

namespace weir::backend::cuda {

int device_libraries::version() const {
    int found = 0;
    in_->expect(in_->api().driver_version(&found), "cuDriverGetVersion");
    return found;
}

void device_libraries::run_in_context(const std::function<void()>& calls) const {
    const in_relaxed_context here(*in_);
    in_->expect(here.entered(), "cuCtxSetCurrent");
    calls();
}

void device_libraries::run_work(void (*work)(const void* with), const void* with) const {
    const in_context here(*in_);
    if (here.entered() != success) [[unlikely]] {
        in_->refuse(here.entered(), "cuCtxSetCurrent");
    }
    work(with);
}

}  // namespace weir::backend::cuda
