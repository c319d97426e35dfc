// The fake cuSOLVER: solves sparse systems in device memory by elimination, as work in the fake driver's streams that the calling thread
// waits for (cuSOLVER documentation 13.1, "csrlsvqr" and "csrlsvchol"). The Cholesky functions refuse what is not positive definite, and
// read the lower triangle alone.
#include <dlfcn.h>

#include <atomic>
#include <complex>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "control.hpp"
#include "cusolver_control.hpp"

namespace weir_fake {
namespace {

using number = std::complex<long double>;

enum cusolver_status : int { cusolver_success = 0, uninitialized = 1, wrong_value = 3, execution_failed = 6 };

struct solver_handle {
    CUcontext context = nullptr;
    void* stream = nullptr;
};

std::mutex call_lock;
std::map<std::string, unsigned long long>& call_counts() {
    static auto* const all = new std::map<std::string, unsigned long long>;
    return *all;
}
void count(const char* name) {
    const std::lock_guard lock(call_lock);
    ++call_counts()[name];
}

template <class Function>
Function* of_driver(const char* name) {
    static void* const driver = ::dlopen(std::getenv("WEIR_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    return driver != nullptr ? reinterpret_cast<Function*>(::dlsym(driver, name)) : nullptr;
}

CUcontext context_now() {
    static auto* const ask = of_driver<CUresult(CUcontext*)>("cuCtxGetCurrent");
    CUcontext current = nullptr;
    return ask != nullptr && ask(&current) == success ? current : nullptr;
}

template <class T>
number exact(const T& value) {
    if constexpr (std::is_floating_point_v<T>) {
        return static_cast<long double>(value);
    } else {
        return number(value);
    }
}

/// One system, solved when its stream reaches it.
template <class T>
struct sparse_solution {
    bool is_definite;
    int n;
    const T* values;
    const int* offsets;
    const int* columns;
    const T* b;
    long double tolerance;
    T* x;
    int singular = -1;

    void run() {
        std::vector<std::vector<number>> rows(static_cast<std::size_t>(n),
                                              std::vector<number>(static_cast<std::size_t>(n) + 1));
        for (int row = 0; row < n; ++row) {
            auto& to = rows[static_cast<std::size_t>(row)];
            for (int k = offsets[row]; k < offsets[row + 1]; ++k) {
                const number value = exact(values[k]);
                if (!is_definite) {
                    to[static_cast<std::size_t>(columns[k])] = value;
                } else if (columns[k] <= row) {
                    to[static_cast<std::size_t>(columns[k])] = value;
                    rows[static_cast<std::size_t>(columns[k])][static_cast<std::size_t>(row)] = std::conj(value);
                }
            }
            to.back() = exact(b[row]);
        }
        for (std::size_t k = 0; k < rows.size(); ++k) {
            std::size_t best = k;
            for (std::size_t i = k; i < rows.size() && !is_definite; ++i) {
                best = std::abs(rows[i][k]) > std::abs(rows[best][k]) ? i : best;
            }
            std::swap(rows[k], rows[best]);
            if (is_definite ? rows[k][k].real() <= tolerance : std::abs(rows[k][k]) <= tolerance) {
                singular = static_cast<int>(k);
                return;
            }
            for (std::size_t i = k + 1; i < rows.size(); ++i) {
                const number factor = rows[i][k] / rows[k][k];
                for (std::size_t j = k; j < rows[i].size(); ++j) {
                    rows[i][j] -= factor * rows[k][j];
                }
            }
        }
        for (std::size_t k = rows.size(); k-- > 0;) {
            number sum = rows[k].back();
            for (std::size_t j = k + 1; j < rows.size(); ++j) {
                sum -= rows[k][j] * rows[j].back();
            }
            rows[k].back() = sum / rows[k][k];
            if constexpr (std::is_floating_point_v<T>) {
                x[k] = static_cast<T>(rows[k].back().real());
            } else {
                x[k] = T(rows[k].back());
            }
        }
    }
};

template <class T>
int run_solution(void* with) {
    static_cast<sparse_solution<T>*>(with)->run();
    return success;
}

template <class T, class Real>
int solve(const char* name, bool is_definite, void* handle, int n, int nonzeros, const void* description,
          const void* values, const int* offsets, const int* columns, const void* b, Real tolerance, void* x,
          int* singular) {
    count(name);
    const auto* const in = static_cast<const solver_handle*>(handle);
    if (in == nullptr || description == nullptr || n < 1 || nonzeros < n || in->context != context_now()) {
        return wrong_value;
    }
    sparse_solution<T> one{is_definite,
                           n,
                           static_cast<const T*>(values),
                           offsets,
                           columns,
                           static_cast<const T*>(b),
                           static_cast<long double>(tolerance),
                           static_cast<T*>(x)};
    static auto* const enqueue = of_driver<decltype(weir_fake_enqueue)>("weir_fake_enqueue");
    static auto* const wait = of_driver<CUresult(void*)>("cuStreamSynchronize");
    if (enqueue == nullptr || wait == nullptr || enqueue(in->stream, run_solution<T>, &one) != success ||
        wait(in->stream) != success) {
        return execution_failed;
    }
    *singular = one.singular;
    return cusolver_success;
}

}  // namespace
}  // namespace weir_fake

using namespace weir_fake;

unsigned long long weir_fake_cusolver_calls(const char* name) {
    const std::lock_guard lock(call_lock);
    return call_counts()[name];
}

WEIR_FAKE_EXPORT int cusolverSpCreate(void** handle) {
    count("cusolverSpCreate");
    if (context_now() == nullptr) {
        return uninitialized;
    }
    *handle = new solver_handle{context_now(), nullptr};
    return cusolver_success;
}
WEIR_FAKE_EXPORT int cusolverSpDestroy(void* handle) {
    count("cusolverSpDestroy");
    delete static_cast<solver_handle*>(handle);
    return cusolver_success;
}
WEIR_FAKE_EXPORT int cusolverSpSetStream(void* handle, void* stream) {
    static_cast<solver_handle*>(handle)->stream = stream;
    return cusolver_success;
}
WEIR_FAKE_EXPORT int cusparseCreateMatDescr(void** description) {
    *description = new int(0);
    return cusolver_success;
}
WEIR_FAKE_EXPORT int cusparseDestroyMatDescr(void* description) {
    delete static_cast<int*>(description);
    return cusolver_success;
}

#define WEIR_FAKE_SOLVER(name, type, real, is_definite)                                                               \
    WEIR_FAKE_EXPORT int name(void* handle, int n, int nonzeros, const void* description, const void* values,         \
                              const int* offsets, const int* columns, const void* b, real tolerance, int /*reorder*/, \
                              void* x, int* singular) {                                                               \
        return solve<type>(#name, is_definite, handle, n, nonzeros, description, values, offsets, columns, b,         \
                           tolerance, x, singular);                                                                   \
    }

WEIR_FAKE_SOLVER(cusolverSpScsrlsvqr, float, float, false)
WEIR_FAKE_SOLVER(cusolverSpDcsrlsvqr, double, double, false)
WEIR_FAKE_SOLVER(cusolverSpCcsrlsvqr, std::complex<float>, float, false)
WEIR_FAKE_SOLVER(cusolverSpZcsrlsvqr, std::complex<double>, double, false)
WEIR_FAKE_SOLVER(cusolverSpScsrlsvchol, float, float, true)
WEIR_FAKE_SOLVER(cusolverSpDcsrlsvchol, double, double, true)
WEIR_FAKE_SOLVER(cusolverSpCcsrlsvchol, std::complex<float>, float, true)
WEIR_FAKE_SOLVER(cusolverSpZcsrlsvchol, std::complex<double>, double, true)
