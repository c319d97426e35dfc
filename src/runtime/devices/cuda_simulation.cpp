#include "runtime/devices/cuda_simulation.hpp"

#include <charconv>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/setting.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"
#include "weir/testing.hpp"

namespace weir {

namespace runtime::cuda_simulation {

namespace {

detail::mutex deciding;      // guards `decided`; a leaf in the lock order
std::optional<int> decided;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): trivially destroyed

std::string range() { return "cuda:1 to cuda:" + std::to_string(most_devices); }

int from_environment() {
    const char* const variable = detail::setting("WEIR_SIMULATE").value();
    const std::string_view wanted = variable == nullptr ? "" : variable;
    if (wanted.empty()) {
        return 0;
    }
    constexpr std::string_view prefix = "cuda:";
    int count = 0;
    bool is_number = false;
    if (wanted.starts_with(prefix)) {
        const std::string_view number = wanted.substr(prefix.size());
        const auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), count);
        is_number = failure == std::errc() && end == number.data() + number.size();
    }
    if (!is_number || count < 1 || count > most_devices) {
        throw argument_error("WEIR_SIMULATE=" + std::string(wanted) + ": say how many CUDA devices are simulated, " +
                             range() + ", or unset it to use the real ones");
    }
    return count;
}

}  // namespace

int devices() {
    const std::lock_guard lock(deciding);
    if (!decided) {
        decided = from_environment();
    }
    return *decided;
}

void choose(int count) {
    if (count < 1 || count > most_devices) {
        throw argument_error(std::to_string(count) + " simulated CUDA devices: there can be " + range());
    }
    const std::lock_guard lock(deciding);
    if (decided && *decided != count) {
        throw state_error("simulate_cuda(" + std::to_string(count) + ") comes too late: the program uses " +
                          (*decided == 0 ? "the real CUDA devices" : std::to_string(*decided) + " simulated ones") +
                          " already; call it before anything asks for a CUDA device or for the list of all devices");
    }
    decided = count;
}

}  // namespace runtime::cuda_simulation

void testing::simulate_cuda(int devices) { runtime::cuda_simulation::choose(devices); }

}  // namespace weir
