// A program outside of Weir's tree: uses what has to work across the border of a shared library. It prints what it
// computed; exit status 0 if all is right.
#include <weir/weir.hpp>

#include <cstdio>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

namespace {

/// A class of the program's that the library calls.
class counting_package final : public weir::package {
public:
    [[nodiscard]] std::string_view name() const noexcept override { return "consumer"; }
    [[nodiscard]] std::optional<weir::stream> current_stream(weir::device /*of*/) override {
        ++asked;
        return stream_;
    }
    int asked = 0;

private:
    weir::stream stream_;
};

bool computes() {
    const weir::stream load;
    const weir::stream compute;
    weir::array x = weir::empty(1000, weir::dtype::float32);
    weir::array y = weir::empty(1000, weir::dtype::float32);
    weir::fill(load, x, 3.0);
    weir::parallel_for(
        compute, x.size(), [](auto i, auto from, auto to) { to[i] = from[i] * from[i]; }, weir::in(x.view<float>()),
        weir::out(y.view<float>()));
    x = {};
    const auto values = y.read<float>();
    const float sum = std::accumulate(values.begin(), values.end(), 0.0F);
    std::printf("sum %.0f\n", static_cast<double>(sum));
    return sum == 9000.0F;
}

/// Errors are caught by their own classes and by those they derive from.
bool catches() {
    weir::array x = weir::empty(10, weir::dtype::int32);
    try {
        static_cast<void>(x.view<float>());
        return false;
    } catch (const weir::argument_type_error&) {
    }
    try {
        static_cast<void>(x.slice(5, 11));
        return false;
    } catch (const weir::error& wrong) {
        std::printf("caught: %s\n", wrong.what());
    }
    return true;
}

bool finds_races() {
    weir::check_scope scope({.assume_manual = true});
    const weir::stream one;
    const weir::stream two;
    weir::array x = weir::empty(10, weir::dtype::float32);
    weir::fill(one, x, 1.0);
    weir::fill(two, x, 2.0);
    one.synchronize();
    two.synchronize();
    return scope.report().size() == 1 && scope.report().races()[0].kind == "WAW";
}

bool calls_back() {
    const auto package = std::make_shared<counting_package>();
    weir::array x = weir::empty(10, weir::dtype::float32);
    weir::live_export shared(x, package);
    const weir::stream stream;
    weir::fill(stream, x, 1.0);
    stream.synchronize();
    shared.end();
    return package->asked > 0;
}

}  // namespace

int main() {
    const std::pair<const char*, bool (*)()> parts[] = {
        {"computes", computes}, {"catches", catches}, {"finds races", finds_races}, {"calls back", calls_back}};
    for (const auto& [name, part] : parts) {
        if (!part()) {
            std::printf("wrong: %s\n", name);
            return 1;
        }
    }
    return 0;
}
