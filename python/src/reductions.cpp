// Sums, extremes and means of arrays.
#include "weir/reduction.hpp"

#include <string>

#include "arguments.hpp"
#include "arithmetic.hpp"
#include "arrays.hpp"
#include "interpreter.hpp"
#include "labels.hpp"
#include "site.hpp"

namespace weir::python {

namespace {

template <reduction What>
void bind_reduction(nb::class_<array>& cls, const char* name, const char* doc) {
    const std::string signature = "def " + std::string(name) +
                                  "(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array";
    cls.def(
        name,
        [](const array& self, nb::handle axis, nb::handle keepdims) {
            along axes;
            if (!axis.is_none()) {
                axes.axes = integers_from(axis, "axis");
            }
            axes.keep = flag_from(keepdims, "keepdims");
            const stream current = stream_of(self);
            return released([&, where = here()] { return reduce(called(What, on(current, where)), What, self, axes); });
        },
        nb::arg("axis").none() = nb::none(), nb::arg("keepdims").none() = false, nb::sig(signature.c_str()), doc);
}

}  // namespace

void bind_reductions(nb::class_<array>& cls) {
    bind_reduction<reduction::sum>(
        cls, "sum",
        "The sum along the axes, all of them without `axis`: of bool and integers int64, of unsigned ones uint64. "
        "Enqueued on the current stream; does not block.");
    bind_reduction<reduction::min>(cls, "min", "The smallest element along the axes; NaN wins. See sum.");
    bind_reduction<reduction::max>(cls, "max", "The largest element along the axes; NaN wins. See sum.");
    bind_reduction<reduction::mean>(cls, "mean", "The mean along the axes: of bool and integers float64. See sum.");
}

}  // namespace weir::python
