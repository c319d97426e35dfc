// A pipeline on a CUDA device: blocks of data are copied in, worked on and copied out, over four streams and four buffers.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "contest.hpp"
#include "cuda_device.hpp"

namespace weir::bench {

namespace {

constexpr std::size_t chunks = 32;
constexpr std::size_t buffers = 4;
constexpr std::int64_t elements = 1 << 20;          ///< of a block: 8 MiB, about 0.15 ms to copy
constexpr long long nanoseconds_of_work = 150'000;  ///< on a block

/// One stream copies in, two work in turn, one copies out.
class pipeline {
public:
    pipeline() {
        make_current(*context_);
        for (std::size_t i = 0; i < buffers; ++i) {
            on_device_.push_back(empty({elements}, dtype::float64, in_));
        }
        const memory::use scope(memory::pinned());
        for (std::size_t i = 0; i < buffers; ++i) {
            sources_.push_back(full({elements}, static_cast<double>(i), dtype::float64, host_));
            results_.push_back(zeros({elements}, dtype::float64, host_));
        }
        host_.synchronize();
    }

    void tracked() {
        for (std::size_t i = 0; i < chunks; ++i) {
            array& chunk = on_device_[i % buffers];
            copy(in_, chunk, sources_[i % buffers]);
            launch(work_[i % 2], spin_, {1, 32}, inout<double>(chunk), nanoseconds_of_work);
            copy(out_, results_[i % buffers], chunk);
        }
        out_.synchronize();
    }

    void by_hand() {
        for (std::size_t i = 0; i < chunks; ++i) {
            const std::size_t at = i % buffers;
            void* address = on_device_[at].device_data();
            long long duration = nanoseconds_of_work;
            if (i >= buffers) {
                is_out_[at].hold(raw_in_);
            }
            context_->api().copy_to_device_async(address_of(address), sources_[at].device_data(), bytes,
                                                 raw_in_.handle());
            is_in_[at].record(raw_in_);
            is_in_[at].hold(raw_work_[i % 2]);
            raw_work_[i % 2].launch(spin_, {&address, &duration});
            is_done_[at].record(raw_work_[i % 2]);
            is_done_[at].hold(raw_out_);
            context_->api().copy_to_host_async(results_[at].device_data(), address_of(address), bytes,
                                               raw_out_.handle());
            is_out_[at].record(raw_out_);
        }
        raw_out_.synchronize();
    }

    /// All on one stream, to measure what overlapping can gain.
    void without_overlap() {
        for (std::size_t i = 0; i < chunks; ++i) {
            array& chunk = on_device_[i % buffers];
            copy(in_, chunk, sources_[i % buffers]);
            launch(in_, spin_, {1, 32}, inout<double>(chunk), nanoseconds_of_work);
            copy(in_, results_[i % buffers], chunk);
        }
        in_.synchronize();
    }

private:
    static constexpr std::size_t bytes = elements * sizeof(double);
    static driver::device_pointer address_of(void* memory) { return reinterpret_cast<driver::device_pointer>(memory); }
    template <class T>
    using for_each_buffer = std::array<T, buffers>;

    device on_ = cuda_device();
    const driver::context* context_ = &context_of(on_);
    kernel spin_ = kernel::from_source(spin_source, "spin", {}, on_);
    stream host_{cpu()};
    stream in_{on_};
    stream out_{on_};
    std::array<stream, 2> work_{stream(on_), stream(on_)};
    std::vector<array> sources_;
    std::vector<array> results_;
    std::vector<array> on_device_;

    raw_stream raw_in_{*context_};
    raw_stream raw_out_{*context_};
    std::array<raw_stream, 2> raw_work_{raw_stream(*context_), raw_stream(*context_)};
    for_each_buffer<raw_event> is_in_{raw_event(*context_), raw_event(*context_), raw_event(*context_),
                                      raw_event(*context_)};
    for_each_buffer<raw_event> is_done_{raw_event(*context_), raw_event(*context_), raw_event(*context_),
                                        raw_event(*context_)};
    for_each_buffer<raw_event> is_out_{raw_event(*context_), raw_event(*context_), raw_event(*context_),
                                       raw_event(*context_)};
};

/// One for all contestants: how fast a copy is depends on where the host's memory happens to lie.
std::shared_ptr<pipeline> the_pipeline() {
    static std::weak_ptr<pipeline> known;
    std::shared_ptr<pipeline> one = known.lock();
    if (!one) {
        one = std::make_shared<pipeline>();
        known = one;
    }
    return one;
}

make_contestant by(const char* name, void (pipeline::*turn)()) {
    return [name, turn] {
        const auto with = the_pipeline();
        return contestant{name, chunks, [with, turn] { (*with.*turn)(); }};
    };
}

const contest pipelines("cuda/pipeline",
                        "32 times: copy 8 MiB in, work for 0.15 ms, copy out; four streams, four buffers",
                        comparison::with_peers,
                        {by("Weir", &pipeline::tracked), by("driver, events by hand", &pipeline::by_hand),
                         by("Weir, all on one stream", &pipeline::without_overlap)});

}  // namespace

}  // namespace weir::bench
