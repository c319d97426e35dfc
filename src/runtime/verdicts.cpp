#include <cstdio>

#include "runtime/observer.hpp"

namespace weir::runtime {

void verdicts::settle_now() {
    const verdict said = std::exchange(pending(), {});
    if (!said.text.empty()) {
        // One call for one text, so that those of several threads do not mix.
        std::fwrite(said.text.data(), 1, said.text.size(), stderr);
    }
    if (said.raise) {
        std::rethrow_exception(said.raise);
    }
}

}  // namespace weir::runtime
