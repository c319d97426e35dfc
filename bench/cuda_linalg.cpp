// What a product of matrices on a CUDA device costs through Weir, beside cuBLASLt called by hand with an algorithm chosen beforehand.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "calls/matmul/cublaslt_provider.hpp"
#include "contest.hpp"
#include "cuda_device.hpp"
#include "weir/linalg.hpp"

namespace weir::bench {

namespace {

/// Square matrices of float32.
struct multiplied {
    std::int64_t side;
    std::int64_t batch;
    std::size_t times;  ///< in one turn
};

struct matrices {
    device on = cuda_device();
    const driver::context* in = &context_of(on);
    stream s{on};
    raw_stream raw{*in};
    array a;
    array out;

    explicit matrices(const multiplied& what)
        : a(ones({what.batch, what.side, what.side}, dtype::float32, s)), out(zeros(a.shape(), dtype::float32, s)) {
        make_current(*in);
        static_cast<void>(library());  // throws std::runtime_error where there is none
        s.synchronize();
    }
    [[nodiscard]] calls::cublaslt_provider& library() const {
        try {
            return calls::cublaslt_provider::of(on);
        } catch (const missing_library& why) {
            throw std::runtime_error(why.what());
        }
    }
};

contestant products_through_weir(const multiplied& what) {
    const auto data = std::make_shared<matrices>(what);
    return {"Weir", what.times, [data, times = what.times] {
                for (std::size_t i = 0; i < times; ++i) {
                    matmul(data->s, data->a, data->a, data->out);
                }
                data->s.synchronize();
            }};
}

contestant products_through_plan(const multiplied& what) {
    struct rig : matrices {
        matmul_plan plan;
        explicit rig(const multiplied& of) : matrices(of), plan(a, a) { plan.plan(s); }
    };
    const auto data = std::make_shared<rig>(what);
    return {"Weir, matmul_plan", what.times, [data, times = what.times] {
                for (std::size_t i = 0; i < times; ++i) {
                    data->plan.execute(data->s, data->out);
                }
                data->s.synchronize();
            }};
}

contestant products_by_hand(const multiplied& what) {
    struct rig : matrices {
        calls::cublaslt_problem problem;
        calls::cublaslt_choice choice;
        std::unique_ptr<calls::cublaslt_descriptions> described;
        buffer workspace;

        explicit rig(const multiplied& of) : matrices(of) {
            problem.number = static_cast<int>(calls::cublaslt_number::r32f);
            problem.rows = problem.columns = problem.depth = of.side;
            problem.count = of.batch;
            problem.a = problem.b = problem.d = {of.side, of.side * of.side, 256};
            problem.most_workspace = std::uint64_t{32} << 20U;
            const std::vector<calls::cublaslt_choice> all = library().suggested(problem, 1);
            if (all.empty()) {
                throw std::runtime_error("cuBLASLt has no algorithm");
            }
            choice = all.front();
            described = std::make_unique<calls::cublaslt_descriptions>(library().library(), problem, nullptr);
            workspace = buffer(std::max<std::size_t>(choice.workspace_bytes, 1), s);
            s.synchronize();
        }
        void enqueue() const {
            const float alpha = 1;
            const float beta = 0;
            calls::cublaslt_provider& by = library();
            calls::expect_cublaslt(
                by.library().multiply(by.handle(), described->product, &alpha, a.device_data(), described->a,
                                      a.device_data(), described->b, &beta, out.device_data(), described->d,
                                      out.device_data(), described->d, &choice.algorithm, workspace.device_data(),
                                      choice.workspace_bytes, raw.handle()),
                "cublasLtMatmul");
        }
    };
    const auto data = std::make_shared<rig>(what);
    return {"cuBLASLt", what.times, [data, times = what.times] {
                for (std::size_t i = 0; i < times; ++i) {
                    data->enqueue();
                }
                data->raw.synchronize();
            }};
}

contest products_beside_library(const char* name, const char* text, const multiplied& what) {
    return {name,
            text,
            comparison::with_peers,
            {[what] { return products_through_weir(what); }, [what] { return products_through_plan(what); },
             [what] { return products_by_hand(what); }}};
}

const contest small_cuda_product =
    products_beside_library("cuda/linalg_small", "a product of 32 x 32 matrices", {32, 1, 1000});
const contest batched_cuda_product =
    products_beside_library("cuda/linalg_batch", "64 products of 64 x 64 matrices", {64, 64, 500});
const contest large_cuda_product =
    products_beside_library("cuda/linalg_large", "a product of 2048 x 2048 matrices", {2048, 1, 20});

}  // namespace

}  // namespace weir::bench
