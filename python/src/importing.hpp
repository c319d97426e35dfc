// What imports of arrays share, whichever protocol they use; and the import by DLPack.
#pragma once

#include "bind.hpp"

#include <optional>

#include "site.hpp"
#include "weir/array.hpp"
#include "weir/detail/observed.hpp"
#include "weir/source_location.hpp"

namespace weir::python {

/// The line of the program that calls. To find it costs as much as half of an import, and of memory of the host only observers ask for it.
class calling_line {
public:
    calling_line() = default;
    explicit calling_line(const source_location& known) : found_(known) {}

    [[nodiscard]] const source_location& get() {
        if (!found_) {
            found_ = here();
        }
        return *found_;
    }
    /// For an import of memory of the host.
    [[nodiscard]] source_location of_hosts() {
        return found_ || weir::detail::is_observed() ? get() : source_location{"", "", 0};
    }

private:
    std::optional<source_location> found_;
};

/// Whether an object hands over by DLPack: by its methods, or by the table of its class. Needs the GIL.
[[nodiscard]] bool has_dlpack(nanobind::handle x);
/// The array that an object with DLPack, or a capsule, hands over: the same memory, as far as DLPack can say it. `copied`: whether the
/// producer may, or must, copy what is not memory of the host. Needs the GIL. Throws exchange_error, copy_error.
[[nodiscard]] array from_dlpack_producer(nanobind::handle x, bool exclusive, std::optional<bool> copied,
                                         calling_line& where);

}  // namespace weir::python
