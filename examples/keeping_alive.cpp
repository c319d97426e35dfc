// Three ways to keep a temporary alive until the work that uses it is over (rule L2). Exits with 0 if all results are
// right. Arrays of Weir need none of this: their memory knows which operations still use it. It is for objects that Weir does not
// track: here a std::vector that an operation reads.
#include <memory>
#include <vector>
#include <weir/weir.hpp>

namespace {

using table = std::vector<float>;

// The operation reads a temporary of its caller's through a plain pointer.
weir::completion scale(const weir::stream& s, weir::array& y, const table& factors) {
    return weir::parallel_for(
        s, y.size(), [f = factors.data()](auto i, auto out) { out[i] *= f[i]; }, weir::inout<float>(y));
}

// First way: wait before the temporary goes. Simple, and the host stands still.
void by_waiting(const weir::stream& s, weir::array& y) {
    const table factors(static_cast<std::size_t>(y.size()), 2.0F);
    scale(s, y, factors).synchronize();
}

// Second way: the operation owns what it reads, and lets go of it when it is over.
void by_owning(const weir::stream& s, weir::array& y) {
    auto factors = std::make_shared<const table>(static_cast<std::size_t>(y.size()), 2.0F);
    weir::parallel_for(
        s, y.size(), [factors](auto i, auto out) { out[i] *= (*factors)[i]; }, weir::inout<float>(y));
}

// Third way: hand the object over with the event after which it is no longer needed.
void by_handing_over(const weir::stream& s, weir::array& y) {
    auto factors = std::make_unique<const table>(static_cast<std::size_t>(y.size()), 2.0F);
    const weir::event used = scale(s, y, *factors);
    weir::keep_alive(used, std::move(factors));
}

}  // namespace

int main() {
    const weir::stream s;
    weir::array y = weir::full(1000, 1.0, weir::dtype::float32, s);
    by_waiting(s, y);
    by_owning(s, y);
    by_handing_over(s, y);
    for (const float value : y.read<float>()) {
        if (value != 8.0F) {
            return 1;
        }
    }
    return 0;
}
