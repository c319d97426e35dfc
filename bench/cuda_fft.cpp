// What a transform on a CUDA device costs through Weir, beside cuFFT called by hand with a plan made beforehand.
#include <algorithm>
#include <complex>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calls/fft/cufft_library.hpp"
#include "contest.hpp"
#include "cuda_device.hpp"

namespace weir::bench {

namespace {

/// Rows of complex numbers.
struct problem {
    std::int64_t rows;
    std::int64_t n;
    std::size_t times;  ///< in one turn
};

struct operands {
    device on = cuda_device();
    const driver::context* in = &context_of(on);
    stream s{on};
    raw_stream raw{*in};
    array a;
    array out;

    explicit operands(const problem& what)
        : a(zeros({what.rows, what.n}, dtype::complex64, s)), out(zeros(a.shape(), dtype::complex64, s)) {
        make_current(*in);
        static_cast<void>(library());  // throws std::runtime_error where there is none
        s.synchronize();
    }
    [[nodiscard]] const calls::cufft_functions& library() const {
        int version = 0;
        in->api().driver_version(&version);
        try {
            return calls::cufft(version);
        } catch (const missing_library& why) {
            throw std::runtime_error(why.what());
        }
    }
};

contestant through_weir(const problem& what) {
    const auto data = std::make_shared<operands>(what);
    return {"Weir", what.times, [data, times = what.times] {
                for (std::size_t i = 0; i < times; ++i) {
                    fft::fft(data->s, data->a, data->out);
                }
                data->s.synchronize();
            }};
}

contestant through_plan(const problem& what) {
    struct rig : operands {
        fft_plan plan;
        explicit rig(const problem& of) : operands(of), plan(a, {.axis = 1}) { plan.plan(s); }
    };
    const auto data = std::make_shared<rig>(what);
    return {"Weir, fft_plan", what.times, [data, times = what.times] {
                for (std::size_t i = 0; i < times; ++i) {
                    data->plan.execute(data->s, fft_direction::forward, data->out);
                }
                data->s.synchronize();
            }};
}

contestant through_library(const problem& what) {
    struct rig : operands {
        calls::cufft_handle plan = 0;
        buffer workspace;
        explicit rig(const problem& of) : operands(of) {
            const calls::cufft_functions& f = library();
            long long n = of.n;
            std::size_t bytes = 0;
            calls::expect_cufft(f.create(&plan), "cufftCreate");
            calls::expect_cufft(f.set_auto_allocation(plan, 0), "cufftSetAutoAllocation");
            calls::expect_cufft(
                f.make_plan_many(plan, 1, &n, &n, 1, n, &n, 1, n, calls::cufft_type::c2c, of.rows, &bytes),
                "cufftMakePlanMany64");
            workspace = buffer(std::max<std::size_t>(bytes, 1), s);
            s.synchronize();
            calls::expect_cufft(f.set_work_area(plan, workspace.device_data()), "cufftSetWorkArea");
            calls::expect_cufft(f.set_stream(plan, raw.handle()), "cufftSetStream");
        }
        ~rig() { library().destroy(plan); }
    };
    const auto data = std::make_shared<rig>(what);
    return {"cuFFT by hand", what.times, [data, f = &data->library(), times = what.times] {
                for (std::size_t i = 0; i < times; ++i) {
                    calls::expect_cufft(f->execute_c2c(data->plan, data->a.device_data(), data->out.device_data(),
                                                       calls::cufft_forward),
                                        "cufftExecC2C");
                }
                data->raw.synchronize();
            }};
}

/// 64 independent transforms of 16 rows of 16384, which leave most of the device unused, on so many streams in turn.
contestant over_streams(std::string name, std::size_t streams) {
    struct rig {
        device on = cuda_device();
        std::vector<stream> all;
        std::vector<array> in;
        std::vector<array> out;
    };
    constexpr std::size_t transforms = 64;
    const auto data = std::make_shared<rig>();
    for (std::size_t i = 0; i < streams; ++i) {
        data->all.emplace_back(data->on);
    }
    for (std::size_t i = 0; i < transforms; ++i) {
        data->in.push_back(zeros({16, 16384}, dtype::complex64, data->all[i % streams]));
        data->out.push_back(zeros({16, 16384}, dtype::complex64, data->all[i % streams]));
    }
    return {std::move(name), transforms, [data] {
                for (std::size_t i = 0; i < transforms; ++i) {
                    fft::fft(data->all[i % data->all.size()], data->in[i], data->out[i]);
                }
                data->on.synchronize();
            }};
}

std::vector<make_contestant> contestants_for(const problem& what) {
    return {[what] { return through_weir(what); }, [what] { return through_plan(what); },
            [what] { return through_library(what); }};
}

const contest small("cuda/fft_small", "forward transforms of 1024 complex64, one row", comparison::with_peers,
                    contestants_for({1, 1024, 500}));
const contest rows("cuda/fft_rows", "forward transforms of 4096 rows of 1024 complex64", comparison::with_peers,
                   contestants_for({4096, 1024, 100}));
const contest prime("cuda/fft_prime", "forward transforms of 64 rows of 4099 complex64", comparison::with_peers,
                    contestants_for({64, 4099, 200}));

const contest pipeline("cuda/fft_streams",
                       "64 independent transforms of 16 rows of 16384 complex64: on 4 streams, and on one",
                       comparison::with_peers,
                       {[] { return over_streams("Weir, 4 streams", 4); },
                        [] { return over_streams("Weir, one stream", 1); }});

}  // namespace

}  // namespace weir::bench
