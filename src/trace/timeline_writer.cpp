#include "trace/timeline_writer.hpp"

#include <ostream>
#include <string_view>

#include "trace/log_writer.hpp"
#include "trace/timeline_page.hpp"

namespace weir::trace {

void write_timeline(std::ostream& to, const log& from) {
    constexpr std::string_view mark = "@WEIR_LOG@";
    const std::string_view page = timeline_page();
    const std::size_t place = page.find(mark);
    to << page.substr(0, place);
    write_log(to, from);
    to << page.substr(place + mark.size());
}

}  // namespace weir::trace
