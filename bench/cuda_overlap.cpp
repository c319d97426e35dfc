// Whether work that may overlap on a CUDA device does: kernels of one millisecond, forked and joined.
#include <memory>
#include <string>
#include <vector>

#include "contest.hpp"
#include "cuda_device.hpp"

namespace weir::bench {

namespace {

constexpr long long one_millisecond = 1'000'000;

class fork {
public:
    explicit fork(std::size_t width) : on_(cuda_device()), in_(&context_of(on_)) {
        make_current(*in_);
        for (std::size_t i = 0; i < width; ++i) {
            streams_.emplace_back(on_);
            raw_.push_back(std::make_unique<raw_stream>(*in_));
            events_.push_back(std::make_unique<raw_event>(*in_));
        }
        whole_ = empty(static_cast<std::int64_t>(width) * 64, dtype::float64, first_);
        first_.synchronize();
    }

    /// A kernel that writes all of an array, kernels on its parts, and one that reads all.
    void tracked() {
        launch(first_, empty_, {1, 32}, inout<double>(whole_));
        for (std::size_t i = 0; i < streams_.size(); ++i) {
            const auto begin = static_cast<std::int64_t>(i) * 64;
            launch(streams_[i], spin_, {1, 32}, inout<double>(whole_.slice(begin, begin + 64)), one_millisecond);
        }
        launch(first_, empty_, {1, 32}, inout<double>(whole_));
        first_.synchronize();
    }
    void by_hand() {
        void* address = whole_.device_data();
        long long duration = one_millisecond;
        raw_first_.launch(empty_, {&address});
        start_.record(raw_first_);
        for (std::size_t i = 0; i < raw_.size(); ++i) {
            start_.hold(*raw_[i]);
            raw_[i]->launch(spin_, {&address, &duration});
            events_[i]->record(*raw_[i]);
            events_[i]->hold(raw_first_);
        }
        raw_first_.launch(empty_, {&address});
        raw_first_.synchronize();
    }

private:
    device on_;
    const driver::context* in_;
    kernel empty_ = kernel::from_source(empty_source, "empty", {}, on_);
    kernel spin_ = kernel::from_source(spin_source, "spin", {}, on_);
    stream first_{on_};
    raw_stream raw_first_{*in_};
    raw_event start_{*in_};
    std::vector<stream> streams_;
    std::vector<std::unique_ptr<raw_stream>> raw_;
    std::vector<std::unique_ptr<raw_event>> events_;
    array whole_ = empty(64, dtype::float64, first_);
};

const std::vector<contest> contests = [] {
    std::vector<contest> made;
    for (const std::size_t width : {1U, 2U, 4U, 8U, 16U, 32U}) {
        const auto weir = [width] {
            const auto with = std::make_shared<fork>(width);
            return contestant{"Weir", 1, [with] { with->tracked(); }};
        };
        const auto hand = [width] {
            const auto with = std::make_shared<fork>(width);
            return contestant{"driver, events by hand", 1, [with] { with->by_hand(); }};
        };
        made.emplace_back("cuda/fork_join/" + std::to_string(width),
                          std::to_string(width) + " kernels of 1 ms on slices of one array, on streams of their own",
                          comparison::with_peers, std::vector<make_contestant>{weir, hand});
    }
    return made;
}();

}  // namespace

}  // namespace weir::bench
