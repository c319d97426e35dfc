#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "random_programs/host_thread.hpp"
#include "random_programs/program.hpp"

namespace random_programs {

/// Counts arrays in memory of a former array that another stream had used.
class reuse_counter {
public:
    void before(const step& one, const shared_state& all) {
        if (one.memory != none && one.kind == step_kind::drop_array) {
            const weir::array& gone = all.arrays[at(one.array)];
            const std::byte* const begin = gone.buffer().data();
            dead_.push_back({begin, begin + gone.buffer().bytes(), std::move(users_[one.memory])});
        }
    }
    void after(const step& one, const shared_state& all) {
        if (!is_operation(one.kind)) {
            return;
        }
        for (const touch& mine : one.touches) {
            users_[mine.memory].push_back(one.stream_number);
        }
        if (one.kind == step_kind::allocate) {
            const std::byte* const begin = all.arrays[at(one.array)].buffer().data();
            const std::byte* const end = begin + all.arrays[at(one.array)].buffer().bytes();
            for (const former& past : dead_) {
                if (past.begin < end && begin < past.end &&
                    std::any_of(past.streams.begin(), past.streams.end(),
                                [&](int stream) { return stream != one.stream_number; })) {
                    ++count;
                    break;
                }
            }
        }
    }
    int count = 0;

private:
    struct former {
        const std::byte* begin;
        const std::byte* end;
        std::vector<int> streams;
    };
    std::vector<former> dead_;
    std::map<int, std::vector<int>> users_;
};

}  // namespace random_programs
