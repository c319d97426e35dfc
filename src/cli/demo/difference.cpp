#include "cli/demo/difference.hpp"

#include <algorithm>

namespace weir::demo {

difference compare(const recording& result, const recording& right) {
    difference d;
    for (std::size_t i = 0; i < right.samples.size(); ++i) {
        d.samples += same_bits(result.samples[i], right.samples[i]) ? 0 : 1;
    }
    d.share = static_cast<double>(d.samples) / static_cast<double>(std::max<std::size_t>(1, right.samples.size()));
    return d;
}

}  // namespace weir::demo
