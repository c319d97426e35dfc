#include "random_programs/oracle.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "random_programs/arithmetic.hpp"

namespace random_programs {

namespace {

class serial_machine {
public:
    void run(const step& one) {
        std::vector<std::span<const double>> reads;
        std::vector<std::span<double>> writes;
        for (const touch& part : one.touches) {
            std::vector<double>& memory = memory_[part.memory];
            if (one.kind == step_kind::allocate) {
                memory.resize(static_cast<std::size_t>(one.size));
            }
            const auto at = std::span(memory).subspan(static_cast<std::size_t>(part.begin),
                                                      static_cast<std::size_t>(part.end - part.begin));
            if (part.write) {
                writes.push_back(at);
            } else {
                reads.emplace_back(at);
            }
        }
        switch (one.kind) {
            case step_kind::allocate:
                slots_[at(one.array)] = {one.memory, 0, one.size, true, false};
                [[fallthrough]];
            case step_kind::copy_from_host:
                for (std::size_t i = 0; i < writes[0].size(); ++i) {
                    writes[0][i] = fresh(one.number, 0, i);
                }
                break;
            case step_kind::fill:
                std::fill(writes[0].begin(), writes[0].end(), fresh(one.number, 0, 0));
                break;
            case step_kind::copy: {
                const std::vector<double> source(reads[0].begin(), reads[0].end());
                std::copy(source.begin(), source.end(), writes[0].begin());
                break;
            }
            case step_kind::operate:
            case step_kind::write_host:
                compute(one, reads, writes);
                break;
            case step_kind::alias:
                slots_[at(one.array)] = one.touches[0];
                break;
            case step_kind::drop_array:
                slots_[at(one.array)].memory = none;
                break;
            case step_kind::read_host:
                result_.seen[one.number].assign(reads[0].begin(), reads[0].end());
                break;
            case step_kind::open_view:
                views_[at(one.other)] = one.touches[0];
                break;
            case step_kind::touch_view:
                touch_view(one);
                break;
            default:
                break;
        }
    }

    expectation result() && {
        for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
            if (slots_[slot].memory != none) {
                const std::span<double> left = elements(slots_[slot]);
                result_.finally[static_cast<int>(slot)].assign(left.begin(), left.end());
            }
        }
        return std::move(result_);
    }

private:
    static std::size_t at(int slot) noexcept { return static_cast<std::size_t>(slot); }

    std::span<double> elements(const touch& part) {
        return std::span(memory_[part.memory])
            .subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.end - part.begin));
    }

    static void compute(const step& one, std::span<const std::span<const double>> reads,
                        std::span<const std::span<double>> writes) {
        for (std::size_t i = 0; i < extent(writes); ++i) {
            compute_at<plain_memory>(one.number, one.adds, i, reads, writes);
        }
    }

    void touch_view(const step& one) {
        const touch& view = views_[at(one.other)];
        const std::span<double> part = elements(view);
        result_.seen[one.number].assign(part.begin(), part.end());
        if (view.write) {
            compute(one, {}, std::array{part});
        }
    }

    std::map<int, std::vector<double>> memory_;
    std::array<touch, slots> slots_{};
    std::array<touch, slots> views_{};
    expectation result_;
};

}  // namespace

expectation expected(const program& completed) {
    serial_machine machine;
    for (const auto& phase : completed.phases) {
        for (const auto& thread : phase) {
            for (const step& one : thread) {
                machine.run(one);
            }
        }
    }
    return std::move(machine).result();
}

}  // namespace random_programs
