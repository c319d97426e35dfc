// The set-up of pipeline.cpp: streams, memory, and the loop over the blocks.
#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "cli/demo/audio.hpp"
#include "cli/demo/pipeline.hpp"
#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "weir/stream.hpp"

namespace weir::demo {

pipeline::pipeline(const recording& sound, const placement& placed, bool by_hand)
    : cut_(sound), work_(cut_, placed.where), by_hand_(by_hand) {
    const int streams = placed.streams;
    if (streams < 1) {
        throw argument_error("the pipeline needs one stream at least, not " + std::to_string(streams));
    }
    const auto make = [&](const std::string& name) -> const stream& {
        return streams_.emplace_back(placed.where, stream_options{0, name});
    };
    const auto shared = static_cast<std::size_t>(std::min(streams, static_cast<int>(stages)));
    std::vector<std::string> names(shared);
    for (std::size_t i = 0; i < stages; ++i) {
        std::string& name = names[i * shared / stages];
        name += (name.empty() ? "" : ", ") + std::string(stage_names[i]);
    }
    for (const std::string& name : names) {
        make(shared == 1 ? "everything" : name);
    }
    for (std::size_t i = 0; i < stages; ++i) {
        lanes_[i].push_back(streams_[i * shared / stages]);
    }
    const std::size_t lanes = 1 + static_cast<std::size_t>(std::max(0, streams - static_cast<int>(stages))) / 2;
    for (std::size_t lane = 1; lane < lanes; ++lane) {
        for (const stage wide : {stage::analyse, stage::synthesise}) {
            const auto i = static_cast<std::size_t>(wide);
            lanes_[i].push_back(make(std::string(stage_names[i]) + " " + std::to_string(lane + 1)));
        }
    }

    // Everything is cleared, so that even the wrong results of act 1 are the same in each run.
    const stream& setup = streams_.front();
    const layout& c = cut_;
    recording_ = empty({c.padded(), c.channels}, dtype::float32, setup);
    const std::vector<float> samples = with_silence(sound, c);
    copy_from_host(setup, recording_, std::as_bytes(std::span(samples)));
    level_ = zeros({c.channels, c.bins()}, dtype::float32, setup);
    result_ = zeros({c.blocks, c.step() * c.channels}, dtype::float32, setup);
    for (std::size_t i = 0; i < 2 * lanes; ++i) {
        place& p = places_.emplace_back();
        p.samples = zeros({c.span(), c.channels}, dtype::float32, setup);
        p.frames = zeros({c.batch(), c.frame}, dtype::float32, setup);
        p.spectrum = zeros({c.batch(), c.bins()}, dtype::complex64, setup);
        p.cleaned = zeros({c.batch(), c.frame}, dtype::float32, setup);
    }
    for (sum& s : sums_) {
        s.samples = zeros(c.step() * c.channels, dtype::float32, setup);
    }
    // The streams start after this in any case, whichever ordering is chosen.
    setup.synchronize();
}

pipeline::~pipeline() {
    for (const stream& each : streams_) {
        try {
            each.synchronize();
        } catch (const error&) {
            // It was thrown to the caller that asked for the result, or no caller needs the result any more.
        }
    }
}

const stream& pipeline::stream_of(stage which, std::int64_t block) const {
    const std::vector<stream>& lanes = lanes_[static_cast<std::size_t>(which)];
    return lanes[static_cast<std::size_t>(block) % lanes.size()];
}

completion pipeline::enqueue(stage which, std::int64_t block) {
    switch (which) {
        case stage::load:
            return load(block);
        case stage::analyse:
            return analyse(block);
        case stage::filter:
            return filter(block);
        case stage::synthesise:
            return synthesise(block);
        case stage::add:
            return add(block);
        case stage::store:
            return store(block);
    }
    return {};
}

std::vector<completion> pipeline::enqueue() {
    std::vector<completion> ends;
    for (std::int64_t block = 0; block < cut_.blocks; ++block) {
        load(block);
        analyse(block);
        filter(block);
        synthesise(block);
        add(block);
        ends.push_back(store(block));
    }
    return ends;
}

recording pipeline::result() const {
    for (const stream& each : streams_) {
        each.synchronize();
    }
    const host_view<const float> samples = result_.read<float>();
    return without_silence({samples.begin(), samples.end()}, cut_);
}

}  // namespace weir::demo
