#include "array/cuda/body.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <mutex>
#include <shared_mutex>

#include "array/cuda/prelude.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::array_kernels {

namespace {

/// All bodies, indexed by the value of their function.
class known_bodies {
public:
    static known_bodies& instance() {
        static auto* const one = new known_bodies;  // never destroyed
        return *one;
    }

    const body& at(function what) const {
        const std::shared_lock lock(mutex_);
        return all_.at(index_of(what));
    }
    function find_or_add(const body& what) {
        const std::unique_lock lock(mutex_);
        const auto found = std::find(all_.begin(), all_.end(), what);
        if (found != all_.end()) {
            return static_cast<function>(found - all_.begin());
        }
        all_.push_back(what);
        return static_cast<function>(all_.size() - 1);
    }

private:
    known_bodies() {
        // In the order of `function`.
        constexpr std::array names = {"add",           "subtract",    "multiply",   "divide",      "power",
                                      "equal",         "not_equal",   "less",       "less_equal",  "greater",
                                      "greater_equal", "bitwise_and", "bitwise_or", "bitwise_xor", "negative",
                                      "invert",        "select",      "same",       "counted",     "random",
                                      "plus",          "lesser",      "larger"};
        static_assert(names.size() == static_cast<std::size_t>(function::larger) + 1);
        for (const char* const name : names) {
            all_.push_back({name, prelude_operations});
        }
        all_[index_of(of(binary_operation::power))].definition += prelude_power;
        all_[index_of(function::random)].definition = prelude_random;
        for (const function reduced : {function::plus, function::lesser, function::larger}) {
            all_[index_of(reduced)].definition = prelude_reductions;
        }
    }

    static std::size_t index_of(function what) noexcept { return static_cast<std::size_t>(what); }

    mutable detail::shared_mutex mutex_;  ///< guards all_; a leaf in the lock order
    std::deque<body> all_;                ///< a deque, so that its elements never move
};

}  // namespace

const body& body_of(function what) { return known_bodies::instance().at(what); }

function function_of(const body& what) { return known_bodies::instance().find_or_add(what); }

}  // namespace weir::array_kernels
