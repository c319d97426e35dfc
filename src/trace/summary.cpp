#include "trace/summary.hpp"

#include <algorithm>

#include "observe/observer.hpp"
#include "trace/minimal_waits.hpp"

namespace weir::trace {

namespace {

struct summing {
    trace_summary sum;
    std::chrono::nanoseconds first = std::chrono::nanoseconds::max();
    std::chrono::nanoseconds last = std::chrono::nanoseconds::min();

    void operator()(const stream_made&) { ++sum.streams; }
    void operator()(const operation& one) {
        bool hands_back = false;
        for (const issued_wait& wait : one.waits) {
            if (wait.why == order::reason::entry || wait.why == order::reason::exit) {
                ++sum.waits_for_packages;
                hands_back = hands_back || wait.why == order::reason::exit;
            } else if (wait.why == order::reason::reuse) {
                ++sum.waits_for_memory;
            } else if (!wait.for_check) {
                ++sum.waits_issued;
            }
        }
        sum.operations += hands_back ? 0 : 1;
        sum.waits_elided += static_cast<std::uint64_t>(
            std::count_if(one.elisions.begin(), one.elisions.end(), [&](const elided_wait& elided) {
                return elided.why != order::reason::reuse && elided.why != order::reason::entry &&
                       elided.target.stream != one.at.stream;
            }));
    }
    void operator()(const stream_wait& one) {
        if (one.target.at != 0 && one.target.stream != one.at.stream && one.how != observe::wait_made::by_device) {
            ++(one.how == observe::wait_made::issued ? sum.waits_issued : sum.waits_elided);
        }
    }
    void operator()(const execution& one) {
        first = std::min(first, one.start);
        last = std::max(last, one.end);
    }
    template <class Other>
    void operator()(const Other&) {}
};

}  // namespace

trace_summary summarise(const log& of) {
    summing counting;
    for (const record& one : of.records) {
        std::visit(counting, one.what);
    }
    if (counting.first <= counting.last) {
        counting.sum.span = counting.last - counting.first;
    }
    counting.sum.waits_minimal = minimal_waits(of);
    return counting.sum;
}

}  // namespace weir::trace
