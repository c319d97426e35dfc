// How parallel_for shares its indices among the threads of the CPU.
#include <algorithm>
#include <cstddef>

#include "backend/shared_loop.hpp"
#include "weir/launch.hpp"

namespace weir::detail {

void share_indices(range over, void (*run)(void* loop, std::size_t begin, std::size_t end), void* loop) {
    const std::size_t indices = over.end - over.begin;
    // Several parts for each thread, since some threads come late; none so small that taking it costs more than doing it.
    constexpr std::size_t least_part = 4096;
    const std::size_t part = std::max(least_part, indices / (4 * backend::loop_threads()) + 1);
    backend::share_loop((indices - 1) / part + 1, [&](std::size_t which) {
        const std::size_t begin = over.begin + which * part;
        run(loop, begin, std::min(begin + part, over.end));
    });
}

}  // namespace weir::detail
