#include "backend/cuda/memory/staging.hpp"

namespace weir::backend::cuda {

staging::chunk staging::take() {
    {
        const std::lock_guard lock(mutex_);
        if (!free_.empty()) {
            void* const memory = free_.back();
            free_.pop_back();
            return {*this, memory};
        }
        free_.reserve(made_ + 1);  // so that put cannot fail
        ++made_;
    }
    void* memory = nullptr;
    const in_relaxed_context here(*of_);
    const result answer = of_->api().host_alloc(&memory, chunk_bytes, host_alloc_portable);
    if (answer != success) {
        const std::lock_guard lock(mutex_);
        --made_;
    }
    of_->expect(answer, "cuMemHostAlloc");
    return {*this, memory};
}

staging::chunk staging::try_take() noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (free_.empty() && made_ >= most_chunks) {
            return {};
        }
    }
    try {
        return take();
    } catch (...) {
        return {};
    }
}

void staging::put(std::byte* memory) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(memory);
}

}  // namespace weir::backend::cuda
