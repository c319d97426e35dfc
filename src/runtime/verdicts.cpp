#include <cstdio>

#include "runtime/observer.hpp"

namespace weir::runtime {

void verdicts::settle_now() {
    const verdict said = std::exchange(pending(), {});
    for (const note& one : said.notes) {
        if (one.to) {
            (*one.to)(one.text);
        } else {
            // One call for one text, so that those of several threads do not mix.
            std::fwrite(one.text.data(), 1, one.text.size(), stderr);
        }
    }
    if (said.raise) {
        std::rethrow_exception(said.raise);
    }
}

}  // namespace weir::runtime
