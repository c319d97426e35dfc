#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "cli/demo/layout.hpp"
#include "cli/demo/placement.hpp"
#include "cli/demo/work.hpp"
#include "weir/weir.hpp"

namespace weir::demo {

/// The steps that each block goes through, in this order.
enum class stage : std::uint8_t { load, analyse, filter, synthesise, add, store };
inline constexpr std::size_t stages = 6;
inline constexpr std::array<const char*, stages> stage_names = {"load",       "analyse", "filter",
                                                                "synthesise", "add",     "store"};

/// The program of the demonstration: takes the beats out of a recording, block by block, on several streams. Two or more
/// blocks are under way at any time, in places that are used again and again; so each place must not be filled before what
/// it held was used, nor used before it is filled.
///
/// It can order its streams by hand, or leave that to somebody else: to Weir, or to nobody. Nothing else differs.
///
/// One thread at a time.
class pipeline {
public:
    /// Takes memory for the recording, for the result, and for `2 * lanes` blocks. Blocks until all is set up.
    /// One stream does everything, up to six share the stages; what is more widens the two stages that transform.
    /// Throws argument_error for less than one stream, or a recording that is too short.
    /// Else what `work` throws.
    pipeline(const recording& sound, const placement& placed, bool by_hand);
    pipeline(const pipeline&) = delete;
    pipeline& operator=(const pipeline&) = delete;
    /// Blocks until everything is over, since what is enqueued uses `work`.
    ~pipeline();

    [[nodiscard]] const layout& cut() const noexcept { return cut_; }
    [[nodiscard]] std::int64_t blocks() const noexcept { return cut_.blocks; }
    /// The stream on which a block goes through a stage.
    [[nodiscard]] const stream& stream_of(stage which, std::int64_t block) const;
    /// All streams, each once.
    [[nodiscard]] const std::vector<stream>& streams() const noexcept { return streams_; }

    /// Enqueues one stage of one block, and returns its end. Stages in their order, blocks in theirs.
    completion enqueue(stage which, std::int64_t block);
    /// Enqueues everything. Does not block. Returns the ends of the blocks' last stages.
    std::vector<completion> enqueue();

    /// Blocks until everything is over, then gives the result.
    [[nodiscard]] recording result() const;

private:
    /// What is under way of one block.
    struct place {
        array samples;   ///< (span, channels) float32
        array frames;    ///< (batch, frame) float32
        array spectrum;  ///< (batch, bins) complex64
        array cleaned;   ///< (batch, frame) float32

        event loaded, windowed, transformed, filtered, synthesised, added;
    };
    /// The sum over the frames of one block and the last of the block before.
    struct sum {
        array samples;  ///< (step * channels) float32
        event stored;
    };

    completion load(std::int64_t block);
    completion analyse(std::int64_t block);
    completion filter(std::int64_t block);
    completion synthesise(std::int64_t block);
    completion add(std::int64_t block);
    completion store(std::int64_t block);

    [[nodiscard]] place& place_of(std::int64_t block) {
        return places_[static_cast<std::size_t>(block) % places_.size()];
    }
    [[nodiscard]] sum& sum_of(std::int64_t block) { return sums_[static_cast<std::size_t>(block) % sums_.size()]; }

    layout cut_;
    work work_;
    bool by_hand_;
    std::vector<stream> streams_;
    std::array<std::vector<stream>, stages> lanes_;  ///< for each stage, the streams that take turns

    array recording_;  ///< (padded, channels) float32
    array level_;      ///< (channels, bins) float32: what the filter remembers from block to block
    array result_;     ///< (blocks, step * channels) float32
    std::vector<place> places_;
    std::array<sum, 3> sums_;  ///< one is stored, one is added to, and so is the one that the last frames reach into
};

}  // namespace weir::demo
