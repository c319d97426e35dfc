#include "array/elements/reduction_host.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "array/elements/signature.hpp"
#include "backend/shared_loop.hpp"

namespace weir::elements {

namespace {

/// Elements that are reduced in lanes, and chunks whose values are combined by one thread. Fixed, since results depend on them.
constexpr std::int64_t chunk_elements = 1024;
constexpr std::int64_t group_elements = 64 * chunk_elements;
/// Results that are computed side by side: some where several threads can have parts of them, and more where one has all.
constexpr std::int64_t some_beside = 32;
constexpr std::int64_t most_beside = 128;
/// From this number of elements on, several threads work on one operation.
constexpr std::int64_t reduction_worth_sharing = 100'000;

using pointers = std::array<std::byte*, most_parameters>;

/// Values of parts of the elements, for several results at once, combined in pairs of equal weight, like the carries of a binary counter.
class value_pairs {
public:
    value_pairs(host_reduction program, std::size_t bytes) : program_(program), bytes_(bytes) {}

    /// Drops all values; those that follow are of this many results.
    void clear(std::int64_t results) noexcept {
        count_ = 0;
        results_ = results;
    }
    /// Adds values, and may change them.
    void add(std::byte* values) {
        std::size_t at = 0;
        for (; (count_ >> at & 1U) != 0; ++at) {
            combine(level(at), values);
            std::memcpy(values, level(at), bytes_);
        }
        if (levels_.size() < (at + 1) * bytes_) {
            levels_.resize((at + 1) * bytes_);
        }
        std::memcpy(level(at), values, bytes_);
        ++count_;
    }
    /// Requires that values were added.
    void take(std::byte* values) {
        auto at = static_cast<std::size_t>(std::countr_zero(count_));
        std::memcpy(values, level(at), bytes_);
        for (++at; count_ >> at != 0; ++at) {
            if ((count_ >> at & 1U) != 0) {
                combine(level(at), values);
                std::memcpy(values, level(at), bytes_);
            }
        }
    }

private:
    [[nodiscard]] std::byte* level(std::size_t at) noexcept { return levels_.data() + at * bytes_; }
    void combine(std::byte* into, std::byte* later) const {
        reduction_step pair;
        pair.what = reduction_step::pairs;
        pair.results = results_;
        pair.values = into;
        pair.lanes = later;
        program_(&pair);
    }

    host_reduction program_;
    std::size_t bytes_;
    std::int64_t results_ = 1;
    std::vector<std::byte> levels_;
    std::uint64_t count_ = 0;
};

/// One reduction.
class host_reduction_run {
public:
    host_reduction_run(const host_reduction_plan& plan, bool shares)
        : plan_(plan),
          shares_(shares && plan_.reduced.elements() * plan_.results.elements() >= reduction_worth_sharing),
          beside_(results_beside()),
          blocks_in_row_((plan_.columns() - 1) / beside_ + 1) {}

    void operator()() const {
        if (plan_.results.elements() == 0) {
            return;
        }
        const std::int64_t blocks = plan_.results.elements() / plan_.columns() * blocks_in_row_;
        const std::int64_t groups = std::max<std::int64_t>(1, (plan_.reduced.elements() - 1) / group_elements + 1);
        const std::int64_t tasks = blocks * groups;
        const std::int64_t parts =
            shares_ ? std::min(tasks, 4 * static_cast<std::int64_t>(backend::loop_threads())) : 1;
        if (parts == 1) {
            scratch room(*this);
            for (std::int64_t number = 0; number < blocks; ++number) {
                reduce_block(number, groups, room);
            }
            return;
        }
        const auto share = [parts](std::int64_t all, std::size_t part) {
            return all / parts * static_cast<std::int64_t>(part) +
                   std::min(static_cast<std::int64_t>(part), all % parts);
        };
        if (groups == 1) {
            backend::share_loop(static_cast<std::size_t>(parts), [&](std::size_t part) {
                scratch room(*this);
                for (std::int64_t number = share(blocks, part); number < share(blocks, part + 1); ++number) {
                    reduce_block(number, 1, room);
                }
            });
            return;
        }
        std::vector<std::byte> values(static_cast<std::size_t>(tasks) * bytes());
        backend::share_loop(static_cast<std::size_t>(parts), [&](std::size_t part) {
            scratch room(*this);
            for (std::int64_t task = share(tasks, part); task < share(tasks, part + 1); ++task) {
                reduce_group(block_at(task / groups), task % groups, room,
                             values.data() + static_cast<std::size_t>(task) * bytes());
            }
        });
        scratch room(*this);
        for (std::int64_t block_number = 0; block_number < blocks; ++block_number) {
            const block here = block_at(block_number);
            room.groups.clear(here.results);
            for (std::int64_t group = 0; group < groups; ++group) {
                room.groups.add(values.data() + static_cast<std::size_t>(block_number * groups + group) * bytes());
            }
            room.groups.take(room.values.data());
            write(here, room.values.data());
        }
    }

private:
    /// Some adjacent results: where their outputs and their first elements are.
    struct block {
        pointers at{};
        std::int64_t results = 1;
    };
    struct scratch {
        explicit scratch(const host_reduction_run& of)
            : lanes(static_cast<std::size_t>(reduction_lanes) * of.bytes()),
              values(of.bytes()),
              chunks(of.plan_.program, of.bytes()),
              groups(of.plan_.program, of.bytes()) {}
        std::vector<std::byte> lanes;
        std::vector<std::byte> values;
        value_pairs chunks;
        value_pairs groups;
    };

    /// How many results make up a block. They do not depend on it.
    [[nodiscard]] std::int64_t results_beside() const {
        const std::int64_t columns = plan_.columns();
        if (!plan_.across()) {
            return std::min(columns, plan_.rows);
        }
        const std::int64_t threads = shares_ ? static_cast<std::int64_t>(backend::loop_threads()) : 1;
        return std::min(columns, std::clamp((columns - 1) / threads + 1, some_beside, most_beside));
    }
    /// Bytes of the values of one block.
    [[nodiscard]] std::size_t bytes() const noexcept { return static_cast<std::size_t>(beside_) * plan_.item; }

    [[nodiscard]] block block_at(std::int64_t number) const {
        const walk::large_plan& all = plan_.results;
        const std::int64_t column = number % blocks_in_row_ * beside_;
        block found;
        found.results = std::min(beside_, plan_.columns() - column);
        for (std::size_t k = 0; k < plan_.outputs + plan_.inputs; ++k) {
            if (all.first(k) == nullptr) {
                continue;  // a number
            }
            std::int64_t offset = column * all.column_stride(k);
            std::int64_t outer = number / blocks_in_row_;
            for (std::size_t d = all.dimensions(); d > 1; --d) {
                offset += outer % all.extent(d - 2) * all.stride(d - 2, k);
                outer /= all.extent(d - 2);
            }
            found.at[k] = all.first(k) + offset;
        }
        return found;
    }

    void reduce_block(std::int64_t number, std::int64_t groups, scratch& room) const {
        const block here = block_at(number);
        if (plan_.reduced.elements() == 0) {
            reduction_step none;
            none.what = reduction_step::no_elements;
            none.results = here.results;
            none.values = room.values.data();
            plan_.program(&none);
        } else if (groups == 1) {
            reduce_group(here, 0, room, room.values.data());
        } else {
            room.groups.clear(here.results);
            for (std::int64_t group = 0; group < groups; ++group) {
                reduce_group(here, group, room, room.values.data());
                room.groups.add(room.values.data());
            }
            room.groups.take(room.values.data());
        }
        write(here, room.values.data());
    }

    /// Reduces one group of chunks of the elements of each result to `values`.
    void reduce_group(const block& of, std::int64_t group, scratch& room, std::byte* values) const {
        const std::int64_t first = group * group_elements;
        const std::int64_t end = std::min(first + group_elements, plan_.reduced.elements());
        room.chunks.clear(of.results);
        for (std::int64_t at = first; at < end; at += chunk_elements) {
            reduce_chunk(of, at, std::min(at + chunk_elements, end), room, values);
            if (first + chunk_elements >= end) {
                return;
            }
            room.chunks.add(values);
        }
        room.chunks.take(values);
    }

    void reduce_chunk(const block& of, std::int64_t first, std::int64_t end, scratch& room, std::byte* values) const {
        const walk::large_plan& all = plan_.reduced;
        std::array<std::int64_t, most_parameters> result_strides{};
        std::array<std::int64_t, most_parameters> strides{};
        for (std::size_t k = 0; k < plan_.inputs; ++k) {
            result_strides[k] = plan_.results.column_stride(plan_.outputs + k);
            strides[k] = all.column_stride(k);
        }
        const std::int64_t inner = all.dimensions() > 0 ? all.extent(all.dimensions() - 1) : 1;
        pointers at{};
        reduction_step step;
        step.results = of.results;
        step.total = all.elements();
        step.first = at.data();
        step.result_strides = result_strides.data();
        step.strides = strides.data();
        step.lanes = room.lanes.data();
        step.values = values;
        for (std::int64_t now = first; now < end; now += step.count) {
            const std::int64_t column = now % inner;
            for (std::size_t k = 0; k < plan_.inputs; ++k) {
                if (all.first(k) == nullptr) {
                    at[k] = const_cast<std::byte*>(plan_.numbers[k].bytes.data());  // only read
                    continue;
                }
                std::int64_t offset = column * strides[k];
                std::int64_t outer = now / inner;
                for (std::size_t d = all.dimensions(); d > 1; --d) {
                    offset += outer % all.extent(d - 2) * all.stride(d - 2, k);
                    outer /= all.extent(d - 2);
                }
                at[k] = of.at[plan_.outputs + k] + offset;
            }
            step.count = std::min(inner - column, end - now);
            step.position = now - first;
            step.index = now;
            plan_.program(&step);
        }
        step.what = reduction_step::lanes_of_chunk;
        step.count = end - first;
        plan_.program(&step);
    }

    void write(const block& of, std::byte* values) const {
        std::array<std::int64_t, most_parameters> strides{};
        for (std::size_t k = 0; k < plan_.outputs; ++k) {
            strides[k] = plan_.results.column_stride(k);
        }
        reduction_step last;
        last.what = reduction_step::outputs;
        last.results = of.results;
        last.total = plan_.reduced.elements();
        last.first = of.at.data();
        last.result_strides = strides.data();
        last.values = values;
        plan_.program(&last);
    }

    const host_reduction_plan& plan_;
    bool shares_;          ///< on several threads
    std::int64_t beside_;  ///< results of a block
    std::int64_t blocks_in_row_;
};

}  // namespace

void reduce_on_host(const host_reduction_plan& plan, bool shares) { host_reduction_run(plan, shares)(); }

}  // namespace weir::elements
