// The fake cuFFT: transforms by their definition, as work in the fake driver's streams (cuFFT documentation, 13.0). Where the
// documentation leaves a behaviour open, this library has the worst one.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numbers>
#include <string>
#include <thread>
#include <vector>

#include "control.hpp"
#include "cufft_control.hpp"

namespace weir_fake {
namespace {

using number = std::complex<long double>;

enum status : int {
    cufft_success = 0,
    invalid_plan = 1,
    invalid_type = 3,
    invalid_argument = 4,
    internal_error = 5,
    exec_failed = 6,
    setup_failed = 7,
    invalid_size = 8,
    invalid_device = 11,
    no_workspace = 13,
};

enum plan_type : int { r2c = 0x2a, c2r = 0x2c, c2c = 0x29, d2z = 0x6a, z2d = 0x6c, z2z = 0x69 };

bool is_double(int type) { return (type & 0x40) != 0; }
bool has_real_input(int type) { return type == r2c || type == d2z; }
bool has_real_output(int type) { return type == c2r || type == z2d; }

struct side {
    std::array<long long, 3> embed{};
    long long stride = 1;
    long long distance = 1;
};

/// The data of a plan that an execution needs: kept until it is over.
struct work_of_plan {
    int type = z2z;
    std::vector<long long> n;
    side in;
    side out;
    long long batch = 1;
    std::size_t workspace = 0;
    std::atomic<int> pending{0};
};

struct plan {
    std::shared_ptr<work_of_plan> what;  ///< null: not made yet
    bool allocates = true;
    CUcontext in = nullptr;  ///< the context in which it was made, and can be executed
    void* stream = nullptr;
    std::map<std::thread::id, void*> wanted;  ///< for each thread the stream that it has set and not executed in yet
    void* work_area = nullptr;
};

struct library_state {
    std::mutex lock;
    std::map<int, plan> plans;
    int next = 1;
    std::map<std::string, unsigned long long> calls;
    struct fault {
        std::string name;
        unsigned long long left;
        int error;
    };
    std::vector<fault> faults;
    std::size_t workspace = 0;
    std::atomic<unsigned long long> mistakes{0};
};
library_state& library() {
    static auto* const one = new library_state;
    return *one;
}

template <class Function>
Function* of_driver(const char* name) {
    static void* const driver = ::dlopen(std::getenv("WEIR_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    return driver != nullptr ? reinterpret_cast<Function*>(::dlsym(driver, name)) : nullptr;
}

/// The calling thread's context; null if it has none.
CUcontext context_now() {
    static auto* const ask = of_driver<CUresult(CUcontext*)>("cuCtxGetCurrent");
    CUcontext current = nullptr;
    return ask != nullptr && ask(&current) == success ? current : nullptr;
}

/// Begins a function: counts it, fails on purpose, and finds the plan.
class entered {
public:
    entered(const char* name, int handle) : lock_(library().lock) {
        library_state& all = library();
        ++all.calls[name];
        for (auto each = all.faults.begin(); each != all.faults.end(); ++each) {
            if (each->name == name && --each->left == 0) {
                error_ = each->error;
                all.faults.erase(each);
                return;
            }
        }
        if (handle != 0) {
            const auto found = all.plans.find(handle);
            if (found == all.plans.end()) {
                error_ = invalid_plan;
            } else {
                plan_ = &found->second;
            }
        }
        if (error_ == cufft_success && context_now() == nullptr) {
            error_ = setup_failed;
        }
    }
    [[nodiscard]] int error() const { return error_; }
    [[nodiscard]] plan& of() const { return *plan_; }

private:
    std::lock_guard<std::mutex> lock_;
    plan* plan_ = nullptr;
    int error_ = cufft_success;
};

/// exp(sign 2 pi i j / n): exact where it is 1, i, -1 or -i.
number root(std::size_t j, std::size_t n, int sign) {
    const long double angle =
        sign * 2 * std::numbers::pi_v<long double> * static_cast<long double>(j) / static_cast<long double>(n);
    const number exact = {std::cos(angle), std::sin(angle)};
    return 4 * j % n == 0 ? number(std::round(exact.real()), std::round(exact.imag())) : exact;
}

/// X[k] = sum of x[j] exp(sign 2 pi i j k / n). Even lengths are halved, so that the transform of equal numbers is exact.
std::vector<number> transformed(const std::vector<number>& x, int sign) {
    const std::size_t n = x.size();
    std::vector<number> result(n);
    if (n % 2 == 0) {
        std::array<std::vector<number>, 2> halves;
        for (std::size_t j = 0; j < n; ++j) {
            halves[j % 2].push_back(x[j]);
        }
        const std::vector<number> even = transformed(halves[0], sign);
        const std::vector<number> odd = transformed(halves[1], sign);
        for (std::size_t k = 0; k < n / 2; ++k) {
            const number turned = root(k, n, sign) * odd[k];
            result[k] = even[k] + turned;
            result[k + n / 2] = even[k] - turned;
        }
        return result;
    }
    std::vector<number> roots(n);
    for (std::size_t j = 0; j < n; ++j) {
        roots[j] = root(j, n, sign);
    }
    for (std::size_t k = 0; k < n; ++k) {
        for (std::size_t j = 0; j < n; ++j) {
            result[k] += x[j] * roots[j * k % n];
        }
    }
    return result;
}

/// The same for each line along an axis.
void transform(std::vector<number>& x, const std::vector<long long>& extents, std::size_t axis, int sign) {
    const auto n = static_cast<std::size_t>(extents[axis]);
    std::size_t inner = 1;
    for (std::size_t i = axis + 1; i < extents.size(); ++i) {
        inner *= static_cast<std::size_t>(extents[i]);
    }
    std::vector<number> line(n);
    for (std::size_t first = 0; first < x.size(); first += n * inner) {
        for (std::size_t at = first; at < first + inner; ++at) {
            for (std::size_t j = 0; j < n; ++j) {
                line[j] = x[at + j * inner];
            }
            const std::vector<number> made = transformed(line, sign);
            for (std::size_t k = 0; k < n; ++k) {
                x[at + k * inner] = made[k];
            }
        }
    }
}

/// The positions of the elements of one transform, in C order, in a side's layout.
template <class Visit>
void for_each(const std::vector<long long>& extents, const side& at, long long batch, Visit visit) {
    std::array<long long, 3> e{1, 1, 1};
    std::array<long long, 3> embed{1, 1, 1};
    const std::size_t missing = 3 - extents.size();
    for (std::size_t i = 0; i < extents.size(); ++i) {
        e[missing + i] = extents[i];
        embed[missing + i] = at.embed[i];
    }
    std::size_t index = 0;
    for (long long a = 0; a < e[0]; ++a) {
        for (long long b = 0; b < e[1]; ++b) {
            for (long long c = 0; c < e[2]; ++c) {
                visit(index++, batch * at.distance + ((a * embed[1] + b) * embed[2] + c) * at.stride);
            }
        }
    }
}

/// The whole spectrum along the last axis from its half. An element that would be needed and does not exist makes the result NaN.
std::vector<number> mirrored(const std::vector<number>& half, std::vector<long long> extents) {
    const auto n = static_cast<std::size_t>(extents.back());
    const std::size_t h = n / 2 + 1;
    std::vector<number> whole(half.size() / h * n);
    for (std::size_t row = 0; row < half.size() / h; ++row) {
        for (std::size_t k = 0; k < h; ++k) {
            number value = half[row * h + k];
            if ((k == 0 || 2 * k == n) && value.imag() != 0) {
                value = std::numeric_limits<long double>::quiet_NaN();
            }
            whole[row * n + k] = value;
            if (k > 0) {
                whole[row * n + n - k] = std::conj(value);
            }
        }
    }
    return whole;
}

template <class T>
void run(const work_of_plan& what, T* in, T* out, int direction) {
    std::vector<long long> read = what.n;
    std::vector<long long> written = what.n;
    if (has_real_output(what.type)) {
        read.back() = what.n.back() / 2 + 1;
    }
    if (has_real_input(what.type)) {
        written.back() = what.n.back() / 2 + 1;
    }
    for (long long b = 0; b < what.batch; ++b) {
        std::vector<number> x;
        for_each(read, what.in, b, [&](std::size_t, long long at) {
            has_real_input(what.type) ? x.emplace_back(in[at]) : x.emplace_back(in[2 * at], in[2 * at + 1]);
        });
        if (has_real_output(what.type) && static_cast<void*>(in) != out) {
            // The operand is overwritten.
            for_each(read, what.in, b, [&](std::size_t, long long at) {
                in[2 * at] = in[2 * at + 1] = std::numeric_limits<T>::quiet_NaN();
            });
        }
        const int sign = has_real_input(what.type) ? -1 : has_real_output(what.type) ? 1 : direction;
        for (std::size_t axis = 0; axis + 1 < what.n.size(); ++axis) {
            transform(x, read, axis, sign);
        }
        if (has_real_output(what.type)) {
            x = mirrored(x, what.n);
        }
        transform(x, what.n, what.n.size() - 1, sign);
        if (has_real_input(what.type)) {
            std::vector<number> half;
            const auto n = static_cast<std::size_t>(what.n.back());
            for (std::size_t i = 0; i < x.size(); ++i) {
                if (i % n <= n / 2) {
                    half.push_back(x[i]);
                }
            }
            x = std::move(half);
        }
        for_each(written, what.out, b, [&](std::size_t i, long long at) {
            if (has_real_output(what.type)) {
                out[at] = static_cast<T>(x[i].real());
            } else {
                out[2 * at] = static_cast<T>(x[i].real());
                out[2 * at + 1] = static_cast<T>(x[i].imag());
            }
        });
    }
}

/// One execution in a stream.
struct execution {
    std::shared_ptr<work_of_plan> what;
    void* in;
    void* out;
    int direction;
    void* workspace;

    void operator()() const {
        // Each execution writes a mark of its own into the workspace while it computes; no other work may change it.
        std::vector<unsigned char> mark(what->workspace);
        const auto* const self = this;
        for (std::size_t i = 0; i < mark.size(); ++i) {
            mark[i] = reinterpret_cast<const unsigned char*>(&self)[i % sizeof self];
        }
        if (!mark.empty()) {
            std::memcpy(workspace, mark.data(), mark.size());
        }
        if (is_double(what->type)) {
            run(*what, static_cast<double*>(in), static_cast<double*>(out), direction);
        } else {
            run(*what, static_cast<float*>(in), static_cast<float*>(out), direction);
        }
        if (!mark.empty() && std::memcmp(workspace, mark.data(), mark.size()) != 0) {
            ++library().mistakes;
        }
    }
};

int run_in_stream(void* with) {
    const std::unique_ptr<execution> one(static_cast<execution*>(with));
    (*one)();
    --one->what->pending;
    return success;
}

int execute(const char* name, int handle, int type, void* in, void* out, int direction) {
    auto one = std::make_unique<execution>();
    void* stream = nullptr;
    {
        const entered here(name, handle);
        if (here.error() != cufft_success) {
            return here.error();
        }
        plan& by = here.of();
        const std::size_t complex = is_double(type) ? 2 * sizeof(double) : 2 * sizeof(float);
        if (by.what == nullptr || by.what->type != type) {
            return invalid_plan;
        }
        if (by.in != context_now()) {
            return invalid_device;
        }
        if (in == nullptr || out == nullptr || reinterpret_cast<std::uintptr_t>(in) % complex != 0 ||
            reinterpret_cast<std::uintptr_t>(out) % complex != 0 || (direction != 1 && direction != -1)) {
            return invalid_argument;
        }
        if (by.what->workspace > 0 && by.work_area == nullptr) {
            return no_workspace;
        }
        const auto wanted = by.wanted.find(std::this_thread::get_id());
        if (wanted != by.wanted.end()) {
            library().mistakes += wanted->second != by.stream ? 1 : 0;
            by.wanted.erase(wanted);
        }
        ++by.what->pending;
        *one = {by.what, in, out, direction, by.work_area};
        stream = by.stream;
    }
    // May block, so the lock is not held.
    static auto* const enqueue = of_driver<decltype(weir_fake_enqueue)>("weir_fake_enqueue");
    if (enqueue == nullptr || enqueue(stream, run_in_stream, one.get()) != success) {
        --one->what->pending;
        return exec_failed;
    }
    static_cast<void>(one.release());
    return cufft_success;
}

/// Whether a side's layout is one that the library accepts.
bool is_sound(const side& at, const std::vector<long long>& extents, long long batch) {
    bool good = at.stride > 0 && (batch == 1 || at.distance > 0);
    for (std::size_t i = 1; i < extents.size(); ++i) {
        good = good && at.embed[i] >= extents[i];
    }
    return good;
}

}  // namespace
}  // namespace weir_fake

using namespace weir_fake;

unsigned long long weir_fake_cufft_calls(const char* name) {
    const std::lock_guard lock(library().lock);
    return library().calls[name];
}

void weir_fake_cufft_fail(const char* name, unsigned long long nth, int error) {
    const std::lock_guard lock(library().lock);
    library().faults.push_back({name, nth, error});
}

std::size_t weir_fake_cufft_plans() {
    const std::lock_guard lock(library().lock);
    return library().plans.size();
}

void weir_fake_cufft_set_workspace(std::size_t bytes) {
    const std::lock_guard lock(library().lock);
    library().workspace = bytes;
}

unsigned long long weir_fake_cufft_mistakes() { return library().mistakes; }

WEIR_FAKE_EXPORT int cufftGetVersion(int* version) {
    *version = 12000;
    return cufft_success;
}

WEIR_FAKE_EXPORT int cufftCreate(int* handle) {
    const entered here("cufftCreate", 0);
    if (here.error() != cufft_success) {
        return here.error();
    }
    *handle = library().next++;
    library().plans.emplace(*handle, plan());
    return cufft_success;
}

WEIR_FAKE_EXPORT int cufftDestroy(int handle) {
    const entered here("cufftDestroy", handle);
    if (here.error() != cufft_success) {
        return here.error();
    }
    if (here.of().what != nullptr && here.of().what->pending > 0) {
        ++library().mistakes;
    }
    library().plans.erase(handle);
    return cufft_success;
}

WEIR_FAKE_EXPORT int cufftSetAutoAllocation(int handle, int on) {
    const entered here("cufftSetAutoAllocation", handle);
    if (here.error() == cufft_success) {
        here.of().allocates = on != 0;
    }
    return here.error();
}

WEIR_FAKE_EXPORT int cufftMakePlanMany64(int handle, int rank, long long* n, long long* in_embed, long long in_stride,
                                         long long in_distance, long long* out_embed, long long out_stride,
                                         long long out_distance, int type, long long batch, std::size_t* workspace) {
    const entered here("cufftMakePlanMany64", handle);
    if (here.error() != cufft_success) {
        return here.error();
    }
    if (here.of().what != nullptr || here.of().allocates) {
        return invalid_plan;  // this fake has no memory of its own
    }
    if (type != r2c && type != c2r && type != c2c && type != d2z && type != z2d && type != z2z) {
        return invalid_type;
    }
    if (rank < 1 || rank > 3 || batch < 1) {
        return invalid_size;
    }
    auto made = std::make_shared<work_of_plan>();
    made->type = type;
    made->batch = batch;
    made->workspace = library().workspace;
    made->in = {{}, in_stride, in_distance};
    made->out = {{}, out_stride, out_distance};
    for (int i = 0; i < rank; ++i) {
        if (n[i] < 1) {
            return invalid_size;
        }
        made->n.push_back(n[i]);
        made->in.embed[static_cast<std::size_t>(i)] = in_embed[i];
        made->out.embed[static_cast<std::size_t>(i)] = out_embed[i];
    }
    std::vector<long long> read = made->n;
    std::vector<long long> written = made->n;
    (has_real_output(type) ? read : written).back() /= has_real_output(type) || has_real_input(type) ? 2 : 1;
    (has_real_output(type) ? read : written).back() += has_real_output(type) || has_real_input(type) ? 1 : 0;
    if (!is_sound(made->in, read, batch) || !is_sound(made->out, written, batch)) {
        return invalid_argument;
    }
    *workspace = made->workspace;
    here.of().what = std::move(made);
    here.of().in = context_now();
    return cufft_success;
}

WEIR_FAKE_EXPORT int cufftSetStream(int handle, void* stream) {
    const entered here("cufftSetStream", handle);
    if (here.error() == cufft_success) {
        here.of().stream = stream;
        here.of().wanted[std::this_thread::get_id()] = stream;
    }
    return here.error();
}

WEIR_FAKE_EXPORT int cufftSetWorkArea(int handle, void* memory) {
    const entered here("cufftSetWorkArea", handle);
    if (here.error() == cufft_success) {
        here.of().work_area = memory;
    }
    return here.error();
}

WEIR_FAKE_EXPORT int cufftExecC2C(int handle, void* in, void* out, int direction) {
    return execute("cufftExecC2C", handle, c2c, in, out, direction);
}
WEIR_FAKE_EXPORT int cufftExecZ2Z(int handle, void* in, void* out, int direction) {
    return execute("cufftExecZ2Z", handle, z2z, in, out, direction);
}
WEIR_FAKE_EXPORT int cufftExecR2C(int handle, void* in, void* out) {
    return execute("cufftExecR2C", handle, r2c, in, out, -1);
}
WEIR_FAKE_EXPORT int cufftExecD2Z(int handle, void* in, void* out) {
    return execute("cufftExecD2Z", handle, d2z, in, out, -1);
}
WEIR_FAKE_EXPORT int cufftExecC2R(int handle, void* in, void* out) {
    return execute("cufftExecC2R", handle, c2r, in, out, 1);
}
WEIR_FAKE_EXPORT int cufftExecZ2D(int handle, void* in, void* out) {
    return execute("cufftExecZ2D", handle, z2d, in, out, 1);
}
