// Memory of others, a resource that limits and counts, and how long something took: docs/memory.md,
// docs/when-something-fails.md. Exits with 0 if the figures are right.
#include <iostream>
#include <memory>
#include <vector>
#include <weir/weir.hpp>

namespace {

bool memory_of_others(const weir::stream& s) {
    auto kept = std::make_shared<std::vector<float>>(1 << 20);
    weir::array x(weir::buffer::wrap(kept->data(), 4 << 20, weir::cpu(), kept), weir::dtype::float32, 1 << 20);
    weir::fill(s, x, 1);
    x = {};  // the vector lives until the fill is over
    const std::weak_ptr<std::vector<float>> seen = kept;
    kept.reset();
    s.synchronize();
    const auto still = seen.lock();  // the reaper may have released it by now
    return !still || still->front() == 1;
}

void run() { const weir::array x = weir::zeros(1 << 20, weir::dtype::float32); }

bool counted_memory() {
    const auto counted = weir::memory::counting();
    const weir::memory::use scope(weir::memory::limiting(64 << 20, counted));
    run();  // at most 64 MiB at a time
    std::cout << counted->counts().peak.bytes << '\n';
    return counted->counts().peak.bytes == 4 << 20;
}

bool how_long(const weir::stream& s) {
    weir::array x = weir::zeros(1 << 20, weir::dtype::float32, s);
    const weir::event start = s.record({.timing = true});
    weir::fill(s, x, 1);
    const weir::event end = s.record({.timing = true});
    end.synchronize();
    const double milliseconds = start.elapsed_ms(end);
    std::cout << milliseconds << " ms\n";
    return milliseconds >= 0;
}

}  // namespace

int main() {
    const weir::stream s;
    return memory_of_others(s) && counted_memory() && how_long(s) ? 0 : 1;
}
