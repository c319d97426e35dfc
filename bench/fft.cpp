// What a transform costs through Weir, beside the same library called directly with a plan made beforehand.
#include <algorithm>
#include <complex>
#include <memory>
#include <string>
#include <vector>

#include "calls/fft/fftw_library.hpp"
#include "contest.hpp"
#include "weir/weir.hpp"

namespace weir::bench {

namespace {

using calls::fftw_dimension;
using complex = std::complex<double>;

/// A forward transform of complex numbers along some axes of an array in C order.
struct problem {
    std::vector<std::int64_t> extents;
    std::vector<std::int64_t> axes;
    std::size_t times;  ///< in one turn
};

struct operands {
    stream on;
    array a;
    array out;

    explicit operands(const problem& what)
        : a(zeros(shape(std::span<const std::int64_t>(what.extents)), dtype::complex128, on)),
          out(zeros(a.shape(), dtype::complex128, on)) {
        on.synchronize();
    }
};

contestant through_weir(const problem& what) {
    auto data = std::make_shared<operands>(what);
    fft::options how;
    how.axes = what.axes;
    return {"Weir", what.times, [data, how, times = what.times] {
                for (std::size_t i = 0; i < times; ++i) {
                    fft::fft(data->on, data->a, data->out, how);
                }
                data->on.synchronize();
            }};
}

contestant through_plan(const problem& what) {
    struct rig : operands {
        fft_plan plan;
        explicit rig(const problem& of, const fft::options& how) : operands(of), plan(a, how) { plan.plan(on); }
    };
    fft::options how;
    how.axes = what.axes;
    auto data = std::make_shared<rig>(what, how);
    return {"Weir, fft_plan", what.times, [data, times = what.times] {
                for (std::size_t i = 0; i < times; ++i) {
                    data->plan.execute(data->on, fft_direction::forward, data->out);
                }
                data->on.synchronize();
            }};
}

/// The library itself, on the calling thread, in memory of the same kind.
contestant through_library(const problem& what) {
    struct rig : operands {
        calls::fftw_functions<double>::plan plan = nullptr;
        using operands::operands;
        ~rig() { calls::fftw<double>().destroy_plan(plan); }
        static calls::fftw_functions<double>::complex* at(const array& x) {
            return reinterpret_cast<calls::fftw_functions<double>::complex*>(x.data());
        }
    };
    auto data = std::make_shared<rig>(what);
    std::vector<fftw_dimension> transformed;
    std::vector<fftw_dimension> batch;
    std::int64_t stride = data->a.size();
    for (std::size_t axis = 0; axis < what.extents.size(); ++axis) {
        stride /= what.extents[axis];
        const bool is_transformed =
            std::find(what.axes.begin(), what.axes.end(), static_cast<std::int64_t>(axis)) != what.axes.end();
        (is_transformed ? transformed : batch).push_back({what.extents[axis], stride, stride});
    }
    data->plan = calls::fftw<double>().plan_dft(
        static_cast<int>(transformed.size()), transformed.data(), static_cast<int>(batch.size()), batch.data(),
        rig::at(data->a), rig::at(data->out), calls::fftw_forward, calls::fftw_estimate | calls::fftw_preserve_input);
    return {"FFTW", what.times, [data, times = what.times] {
                for (std::size_t i = 0; i < times; ++i) {
                    calls::fftw<double>().execute_dft(data->plan, rig::at(data->a), rig::at(data->out));
                }
            }};
}

contest compare(const char* name, const char* text, const problem& what) {
    return {name,
            text,
            comparison::with_peers,
            {[what] { return through_weir(what); }, [what] { return through_plan(what); },
             [what] { return through_library(what); }}};
}

const contest small = compare("fft/small", "a forward transform of 64 complex128", {{64}, {0}, 2000});
const contest rows = compare("fft/rows", "forward transforms of 256 rows of 1024 complex128", {{256, 1024}, {1}, 4});
const contest columns =
    compare("fft/columns", "forward transforms of 256 columns of 1024 complex128", {{1024, 256}, {0}, 4});
const contest plane = compare("fft/plane", "a forward transform of 512 x 512 complex128", {{512, 512}, {0, 1}, 4});
const contest slabs = compare("fft/slabs", "forward transforms along the first two axes of 64 x 64 x 32 complex128",
                              {{64, 64, 32}, {0, 1}, 4});

}  // namespace

}  // namespace weir::bench
