#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "frontier/point.hpp"
#include "observe/observer.hpp"

namespace weir::observe {

/// For observers: the ends of streams that are gone and that no wait for their device has covered yet. Not synchronized.
class gone_streams {
public:
    /// To be called from observer::stream_gone. Throws std::bad_alloc.
    void add(const stream_info& stream, frontiers::point last) { all_.push_back({stream.device, last}); }

    /// To be called from observer::device_waited: calls `covered(end)` for each stream of the device, and forgets it. If `covered` throws,
    /// nothing is forgotten.
    template <class Covered>
    void waited(std::string_view device, Covered&& covered) {
        for (const one& each : all_) {
            if (each.device == device) {
                covered(each.last);
            }
        }
        std::erase_if(all_, [&](const one& each) { return each.device == device; });
    }

private:
    struct one {
        std::string_view device;  ///< points to the device's own text, which lives for ever
        frontiers::point last;
    };
    std::vector<one> all_;
};

}  // namespace weir::observe
