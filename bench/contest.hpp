// The folder bench/ measures what Weir costs beside what other libraries cost for the same work. contest.hpp is the method:
// contestants take turns within one run, so that disturbances of the machine affect all of them, and the result is their ratio.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::bench {

/// One implementation of the work that is compared.
struct contestant {
    std::string name;
    std::size_t operations = 1;  ///< in one turn
    std::function<void()> turn;  ///< does them, and returns when they are over; the only part that is measured
    std::function<void()> before = [] {};
    std::function<void()> after = [] {};
};

/// Called when the contest begins. Throws std::runtime_error, with the reason, if the contestant cannot take part.
using make_contestant = std::function<contestant()>;

/// What the ratios of a contest compare.
enum class comparison {
    with_peers,  ///< the first contestant, Weir, over the others: below 1, Weir costs less
    with_first,  ///< the others over the first: 1 where the cost does not depend on what is varied
};

/// A contest. Made as a global object; runs when the program is asked for it by its name.
class contest {
public:
    contest(std::string_view name, std::string_view what, comparison ratios, std::vector<make_contestant> contestants);
};

/// Another contestant, from a file that the build may leave out. `contest` may be made before or after it.
class peer {
public:
    peer(std::string_view contest, make_contestant make);
};

}  // namespace weir::bench
