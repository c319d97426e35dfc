#include "calls/fft/host_fft.hpp"

#include <cstddef>
#include <utility>

#include "calls/fft/provider.hpp"
#include "calls/fft/route.hpp"

namespace weir::calls {

namespace {

/// The work of one transform on the host: the body of a host task.
struct host_fft_work {
    fft_steps steps;
    std::shared_ptr<const fft_transform> transform;

    [[nodiscard]] static bool can_move() noexcept { return true; }
    void operator()(const call_shift& by) const {
        const std::byte* const operand = steps.operand + by.inputs[0];
        const std::ptrdiff_t of_target = steps.scatter ? by.workspace : by.result;
        std::ptrdiff_t of_source = by.inputs[0];
        if (steps.is_filled) {
            of_source = steps.filled == steps.target ? of_target : by.workspace;
            steps.fill.run(operand, steps.filled + of_source);
        }
        transform->execute(steps.in + of_source, steps.out + of_target);
        steps.scale.run(steps.target + of_target);
        if (steps.scatter) {
            steps.scatter->run(steps.target + of_target, steps.result + by.result);
        }
    }
};

class host_fft final : public call_plan {
public:
    explicit host_fft(fft_route route) : route_(std::move(route)) {}

    [[nodiscard]] std::size_t workspace_bytes() const noexcept override { return route_.workspace_bytes(); }
    [[nodiscard]] call_work work(std::byte* workspace) const override {
        host_fft_work made{route_.steps(workspace), nullptr};
        made.transform = cpu_fft_provider().prepare(made.steps.problem);
        return call_work::host_task(std::move(made));
    }

private:
    fft_route route_;
};

}  // namespace

std::unique_ptr<const call_plan> host_fft_provider::plan(const fft_call& call, const call_layout& layout) const {
    return std::make_unique<const host_fft>(fft_route(call.what(), call.direction(), layout));
}

}  // namespace weir::calls
