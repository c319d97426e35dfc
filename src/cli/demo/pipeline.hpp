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

/// The stages that each block passes through, in this order.
enum class stage : std::uint8_t { load, analyse, filter, synthesise, add, store };
inline constexpr std::size_t stages = 6;
inline constexpr std::array<const char*, stages> stage_names = {"load",       "analyse", "filter",
                                                                "synthesise", "add",     "store"};

/// The program of the demonstration: removes the beats from a recording, block by block, on several streams. Two or more
/// blocks are in flight at any time, in memory that is used again and again. So memory must not be filled before its former contents
/// were used, nor used before it is filled.
///
/// It orders its streams by hand, or lets Weir order them, or leaves them unordered. Nothing else differs.
///
/// One thread at a time.
class pipeline {
public:
    /// Allocates memory for the recording, for the result, and for `2 * lanes` blocks. Blocks until the set-up is complete.
    /// One stream does everything, up to six share the stages; further streams widen the two stages that transform.
    /// Throws argument_error for less than one stream, or a recording that is too short.
    /// Otherwise throws what `work` throws.
    pipeline(const recording& sound, const placement& placed, bool by_hand);
    pipeline(const pipeline&) = delete;
    pipeline& operator=(const pipeline&) = delete;
    /// Blocks until everything is complete, since the enqueued operations use `work`.
    ~pipeline();

    [[nodiscard]] const layout& cut() const noexcept { return cut_; }
    [[nodiscard]] std::int64_t blocks() const noexcept { return cut_.blocks; }
    /// The stream on which a block passes through a stage.
    [[nodiscard]] const stream& stream_of(stage which, std::int64_t block) const;
    /// All streams, each once.
    [[nodiscard]] const std::vector<stream>& streams() const noexcept { return streams_; }

    /// Enqueues one stage of one block, and returns its completion. Call it for stages in their order and blocks in theirs.
    completion enqueue(stage which, std::int64_t block);
    /// Enqueues everything. Does not block. Returns the completions of the blocks' last stages.
    std::vector<completion> enqueue();

    /// Blocks until everything is complete, then returns the result.
    [[nodiscard]] recording result() const;

private:
    /// The intermediate results of one block.
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
    array level_;      ///< (channels, bins) float32: the state of the filter between blocks
    array result_;     ///< (blocks, step * channels) float32
    std::vector<place> places_;
    /// One is being stored, one is being added to, and one receives the overhang of the last frames.
    std::array<sum, 3> sums_;
};

}  // namespace weir::demo
