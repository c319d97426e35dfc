#include "random_programs/shrink.hpp"

#include <algorithm>

namespace random_programs {

namespace {

/// The program without the steps [first, first + count), counted through all phases and threads.
program without(const program& whole, std::size_t first, std::size_t count) {
    program rest = whole;
    std::size_t at = 0;
    for (auto& phase : rest.phases) {
        for (auto& thread : phase) {
            std::erase_if(thread, [&](const step&) {
                const std::size_t here = at++;
                return here >= first && here < first + count;
            });
        }
    }
    return rest;
}

}  // namespace

program shrink(program raw, const std::function<bool(const program& raw)>& fails, int most) {
    for (std::size_t count = std::max<std::size_t>(raw.steps() / 2, 1); count > 0 && most > 0;) {
        bool smaller = false;
        for (std::size_t first = 0; first < raw.steps() && most > 0;) {
            program rest = without(raw, first, count);
            --most;
            if (fails(rest)) {
                raw = std::move(rest);
                smaller = true;
            } else {
                first += count;
            }
        }
        if (count > 1) {
            count /= 2;
        } else if (!smaller) {
            break;
        }
    }
    return raw;
}

}  // namespace random_programs
