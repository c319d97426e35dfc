#include "array/cuda/known_kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <shared_mutex>

namespace weir::array_kernels {

known_kernels& known_kernels::instance() {
    static auto* const one = new known_kernels;  // never destroyed
    return *one;
}

known_kernels::function_handle known_kernels::find(const kernels& in, const description& what) {
    const map_key wanted(&in, what);
    {
        const std::shared_lock lock(mutex_);
        if (const auto found = all_.find(wanted); found != all_.end()) {
            return found->second;
        }
    }
    const function_handle made = in.find(source_of(what), kernel_name, compiler_options());
    const std::unique_lock lock(mutex_);
    return all_.emplace(wanted, made).first->second;
}

bool known_kernels::has_all(const kernels& in, std::span<const description> set) const {
    const std::shared_lock lock(mutex_);
    return std::all_of(set.begin(), set.end(), [&](const description& one) { return all_.contains({&in, one}); });
}

void known_kernels::add(const kernels& in, std::span<const description> set, std::span<const function_handle> functions,
                        std::unique_ptr<backend::capability::loaded_code> code) {
    const std::unique_lock lock(mutex_);
    codes_.push_back(std::move(code));
    for (std::size_t i = 0; i < set.size(); ++i) {
        all_.try_emplace({&in, set[i]}, functions[i]);
    }
}

}  // namespace weir::array_kernels
