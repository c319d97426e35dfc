// The fake cuDSS: solves dense systems by elimination, as work in the fake driver's streams (cuDSS documentation, 0.7 and 1.0). Where the
// documentation leaves a behaviour open, this library has the worst one: the analysis reads the indices at once, on the calling thread.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "control.hpp"
#include "cudss_control.hpp"
#include "support/elimination.hpp"

namespace weir_fake {
namespace {

enum cudss_status : int {
    cudss_success = 0,
    uninitialized = 1,
    alloc_failed = 2,
    wrong_value = 3,
    unsupported = 4,
    execution_failed = 5,
};

enum number_type : int { r32f = 0, r64f = 1, c32f = 4, c64f = 5, r32i = 10, r64i = 24 };
enum matrix_type : int { general = 0, symmetric = 1, hermitian = 2, spd = 3, hpd = 4 };
enum matrix_view : int { full_view = 0, lower_view = 1, upper_view = 2 };
enum phase : int { analysis = 3, factorization = 4, solve_all = 1008 };

/// A matrix or columns, as the program described them to the library.
struct described {
    bool is_csr = false;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t ahead = 0;  ///< of columns; of a matrix: the number of elements
    void* offsets = nullptr;
    void* indices = nullptr;
    void* values = nullptr;
    int index_type = r32i;
    int value_type = r64f;
    int type = general;
    int view = full_view;
    std::atomic<int> pending{0};
};

/// The data that the phases of one system share. Read and written in stream order.
struct system_data {
    bool is_analyzed = false;
    bool is_factorized = false;   ///< a factorization was put into a stream
    std::atomic<int> running{0};  ///< phases that run now
    std::atomic<int> pending{0};
    std::int64_t n = 0;
    std::vector<std::size_t> matched;  ///< of a general matrix: for each column a row, by the values at the analysis
    std::vector<std::int64_t> offsets;
    std::vector<std::int64_t> indices;
    elimination factors;
    std::atomic<int> info{0};
    std::atomic<std::int64_t> replaced{0};  ///< pivots
    int index_type = r32i;
    void* last_stream = nullptr;
};

struct handle_data {
    CUcontext in = nullptr;
    void* stream = nullptr;
    std::map<std::thread::id, void*> wanted;  ///< for each thread the stream that it has set and not executed in yet
};

struct cudss_state {
    std::mutex lock;
    std::set<void*> objects;
    std::map<std::string, unsigned long long> calls;
    std::map<int, unsigned long long> phases;
    struct fault {
        std::string name;
        unsigned long long left;
        int status;
    };
    std::vector<fault> faults;
    std::atomic<unsigned long long> mistakes{0};
};
cudss_state& state() {
    static auto* const one = new cudss_state;
    return *one;
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

/// Counts a call, and fails it on purpose.
int begin(const char* name) {
    const std::lock_guard lock(state().lock);
    ++state().calls[name];
    for (auto each = state().faults.begin(); each != state().faults.end(); ++each) {
        if (each->name == name && --each->left == 0) {
            const int status = each->status;
            state().faults.erase(each);
            return status;
        }
    }
    return cudss_success;
}

template <class Object>
int create(const char* name, Object made, void** to) {
    if (const int status = begin(name); status != cudss_success) {
        return status;
    }
    const std::lock_guard lock(state().lock);
    *to = made.release();
    state().objects.insert(*to);
    return cudss_success;
}

template <class Object>
int destroy(const char* name, void* what) {
    if (const int status = begin(name); status != cudss_success) {
        return status;
    }
    {
        const std::lock_guard lock(state().lock);
        if (state().objects.erase(what) == 0) {
            return wrong_value;
        }
    }
    delete static_cast<Object*>(what);
    return cudss_success;
}

std::vector<std::int64_t> integers(const void* from, int type, std::int64_t count) {
    std::vector<std::int64_t> made;
    for (std::int64_t i = 0; i < count; ++i) {
        made.push_back(type == r32i ? static_cast<const std::int32_t*>(from)[i]
                                    : static_cast<const std::int64_t*>(from)[i]);
    }
    return made;
}

number element(const void* from, int type, std::int64_t at) {
    switch (type) {
        case r32f:
            return static_cast<long double>(static_cast<const float*>(from)[at]);
        case r64f:
            return static_cast<long double>(static_cast<const double*>(from)[at]);
        case c32f:
            return number(static_cast<const std::complex<float>*>(from)[at]);
        default:
            return number(static_cast<const std::complex<double>*>(from)[at]);
    }
}

void set_element(void* to, int type, std::int64_t at, number value) {
    switch (type) {
        case r32f:
            static_cast<float*>(to)[at] = static_cast<float>(value.real());
            return;
        case r64f:
            static_cast<double*>(to)[at] = static_cast<double>(value.real());
            return;
        case c32f:
            static_cast<std::complex<float>*>(to)[at] = std::complex<float>(value);
            return;
        default:
            static_cast<std::complex<double>*>(to)[at] = std::complex<double>(value);
            return;
    }
}

/// All elements of the matrix, from those that its view stores.
std::vector<number> dense(const system_data& of, const described& a) {
    const auto n = static_cast<std::size_t>(of.n);
    std::vector<number> made(n * n);
    for (std::size_t row = 0; row < n; ++row) {
        for (std::int64_t k = of.offsets[row]; k < of.offsets[row + 1]; ++k) {
            const auto column = static_cast<std::size_t>(of.indices[static_cast<std::size_t>(k)]);
            if ((a.view == lower_view && column > row) || (a.view == upper_view && column < row)) {
                continue;
            }
            const number value = element(a.values, a.value_type, k);
            made[row * n + column] = value;
            if (a.view != full_view && column != row) {
                made[column * n + row] = a.type == hermitian || a.type == hpd ? std::conj(value) : value;
            }
        }
    }
    return made;
}

/// Below this the library replaces pivots. It has scaled general matrices, so that their largest elements are near 1.
long double least_pivot(const std::vector<number>& of, const described& a) {
    const bool is_single = a.value_type == r32f || a.value_type == c32f;
    return (is_single ? 1e-5L : 1e-13L) * (a.type == general ? largest_of(of) : 1);
}

/// Elimination. The pivots of positive definite matrices must all be positive.
void factorize(system_data& of, const described& a) {
    const auto n = static_cast<std::size_t>(of.n);
    of.factors = {dense(of, a)};
    of.info = 0;
    of.replaced = 0;
    if (a.type == general && of.matched.empty()) {
        // Nothing tells that no rows were matched.
        of.factors.factors.assign(n * n, std::numeric_limits<long double>::quiet_NaN());
        of.factors.pivots.assign(n, 0);
        return;
    }
    const std::int64_t unordered = a.type == general ? unmatched(of.factors.factors, of.matched) : 0;
    of.factors.factorize(n, a.type == spd || a.type == hpd, least_pivot(of.factors.factors, a));
    of.info = static_cast<int>(of.factors.bad_row);
    of.replaced = of.factors.replaced + unordered;
}

void solve_columns(const system_data& of, const described& b, const described& x) {
    const auto n = static_cast<std::size_t>(of.n);
    for (std::int64_t c = 0; c < b.columns; ++c) {
        std::vector<number> y;
        for (std::size_t i = 0; i < n; ++i) {
            y.push_back(element(b.values, b.value_type, c * b.ahead + static_cast<std::int64_t>(i)));
            // As if the library used the solution for intermediate results.
            set_element(x.values, x.value_type, c * x.ahead + static_cast<std::int64_t>(i),
                        std::numeric_limits<long double>::quiet_NaN());
        }
        of.factors.solve(y);
        for (std::size_t i = 0; i < n; ++i) {
            set_element(x.values, x.value_type, c * x.ahead + static_cast<std::int64_t>(i), y[i]);
        }
    }
}

/// One phase in a stream.
struct execution {
    int what = 0;
    system_data* data = nullptr;
    described* a = nullptr;
    described* x = nullptr;
    described* b = nullptr;

    void operator()() const {
        if (data->running++ != 0) {
            ++state().mistakes;
        }
        if (what == factorization) {
            factorize(*data, *a);
        } else if (data->info == 0) {
            solve_columns(*data, *b, *x);
        }
        --data->running;
    }
    void begin() const {
        for (std::atomic<int>* const each : {&data->pending, &a->pending, &x->pending, &b->pending}) {
            ++*each;
        }
    }
    void end() const {
        for (std::atomic<int>* const each : {&data->pending, &a->pending, &x->pending, &b->pending}) {
            --*each;
        }
    }
};

int run_phase(void* with) {
    const std::unique_ptr<execution> one(static_cast<execution*>(with));
    (*one)();
    one->end();
    return success;
}

bool is_index(int type) { return type == r32i || type == r64i; }
bool is_value(int type) { return type == r32f || type == r64f || type == c32f || type == c64f; }

}  // namespace
}  // namespace weir_fake

using namespace weir_fake;

unsigned long long weir_fake_cudss_calls(const char* name) {
    const std::lock_guard lock(state().lock);
    return state().calls[name];
}

unsigned long long weir_fake_cudss_phases(int which) {
    const std::lock_guard lock(state().lock);
    return state().phases[which];
}

void weir_fake_cudss_fail(const char* name, unsigned long long nth, int status) {
    const std::lock_guard lock(state().lock);
    state().faults.push_back({name, nth, status});
}

std::size_t weir_fake_cudss_objects() {
    const std::lock_guard lock(state().lock);
    return state().objects.size();
}

unsigned long long weir_fake_cudss_mistakes() { return state().mistakes; }

#ifdef WEIR_FAKE_CUDSS_0_7
WEIR_FAKE_EXPORT int cudssGetProperty(int which, int* value) {
    *value = which == 1 ? 7 : 0;
    return cudss_success;
}
#else
WEIR_FAKE_EXPORT int cudssGetProperty(int which, int* value) {
    *value = which == 0 ? 1 : 0;
    return cudss_success;
}
#endif

WEIR_FAKE_EXPORT int cudssCreate(void** handle) {
    if (context_now() == nullptr) {
        return uninitialized;
    }
    auto made = std::make_unique<handle_data>();
    made->in = context_now();
    return create("cudssCreate", std::move(made), handle);
}
WEIR_FAKE_EXPORT int cudssDestroy(void* handle) { return destroy<handle_data>("cudssDestroy", handle); }

WEIR_FAKE_EXPORT int cudssConfigCreate(void** config) {
    return create("cudssConfigCreate", std::make_unique<int>(0), config);
}
WEIR_FAKE_EXPORT int cudssConfigSet(void* config, int what, const void* value, std::size_t bytes) {
    constexpr int matching = 3;
    if (what != matching || bytes != sizeof(int)) {
        return wrong_value;
    }
    *static_cast<int*>(config) = *static_cast<const int*>(value);
    return cudss_success;
}
WEIR_FAKE_EXPORT int cudssConfigDestroy(void* config) { return destroy<int>("cudssConfigDestroy", config); }

WEIR_FAKE_EXPORT int cudssDataCreate(void* /*handle*/, void** data) {
    return create("cudssDataCreate", std::make_unique<system_data>(), data);
}
WEIR_FAKE_EXPORT int cudssDataDestroy(void* /*handle*/, void* data) {
    state().mistakes += static_cast<system_data*>(data)->pending > 0 ? 1 : 0;
    return destroy<system_data>("cudssDataDestroy", data);
}

WEIR_FAKE_EXPORT int cudssSetStream(void* handle, void* stream) {
    if (const int status = begin("cudssSetStream"); status != cudss_success) {
        return status;
    }
    const std::lock_guard lock(state().lock);
    auto& of = *static_cast<handle_data*>(handle);
    of.stream = stream;
    of.wanted[std::this_thread::get_id()] = stream;
    return cudss_success;
}

WEIR_FAKE_EXPORT int cudssMatrixCreateDn(void** matrix, std::int64_t rows, std::int64_t columns, std::int64_t ahead,
                                         void* values, int type, int layout) {
    if (layout != 0) {
        return unsupported;
    }
    if (rows < 1 || columns < 1 || ahead < rows || !is_value(type)) {
        return wrong_value;
    }
    auto made = std::make_unique<described>();
    made->rows = rows;
    made->columns = columns;
    made->ahead = ahead;
    made->values = values;
    made->value_type = type;
    return create("cudssMatrixCreateDn", std::move(made), matrix);
}

namespace {

int create_csr(void** matrix, std::int64_t rows, std::int64_t columns, std::int64_t nonzeros, const void* offsets,
               const void* indices, const void* values, int index_type, int value_type, int type, int view, int base) {
    if (rows < 1 || rows != columns || base != 0 || !is_index(index_type) || !is_value(value_type) ||
        offsets == nullptr || indices == nullptr || values == nullptr || (type == general && view != full_view)) {
        return wrong_value;
    }
    auto made = std::make_unique<described>();
    made->is_csr = true;
    made->rows = rows;
    made->columns = columns;
    made->ahead = nonzeros;
    made->offsets = const_cast<void*>(offsets);
    made->indices = const_cast<void*>(indices);
    made->values = const_cast<void*>(values);
    made->index_type = index_type;
    made->value_type = value_type;
    made->type = type;
    made->view = view;
    return create("cudssMatrixCreateCsr", std::move(made), matrix);
}

}  // namespace

#ifdef WEIR_FAKE_CUDSS_0_7
WEIR_FAKE_EXPORT int cudssMatrixCreateCsr(void** matrix, std::int64_t rows, std::int64_t columns, std::int64_t nonzeros,
                                          void* offsets, void* /*ends*/, void* indices, void* values, int index_type,
                                          int value_type, int type, int view, int base) {
    return create_csr(matrix, rows, columns, nonzeros, offsets, indices, values, index_type, value_type, type, view,
                      base);
}
#else
WEIR_FAKE_EXPORT int cudssMatrixCreateCsr(void** matrix, std::int64_t rows, std::int64_t columns, std::int64_t nonzeros,
                                          const void* offsets, const void* /*ends*/, const void* indices,
                                          const void* values, int offset_type, int index_type, int value_type, int type,
                                          int view, int base) {
    return offset_type != index_type ? static_cast<int>(unsupported)
                                     : create_csr(matrix, rows, columns, nonzeros, offsets, indices, values, index_type,
                                                  value_type, type, view, base);
}
#endif

WEIR_FAKE_EXPORT int cudssMatrixSetValues(void* matrix, const void* values) {
    if (const int status = begin("cudssMatrixSetValues"); status != cudss_success) {
        return status;
    }
    static_cast<described*>(matrix)->values = const_cast<void*>(values);
    return cudss_success;
}

WEIR_FAKE_EXPORT int cudssMatrixDestroy(void* matrix) {
    state().mistakes += static_cast<described*>(matrix)->pending > 0 ? 1 : 0;
    return destroy<described>("cudssMatrixDestroy", matrix);
}

#ifdef WEIR_FAKE_CUDSS_0_7
constexpr int memory_estimates = 12;
#else
constexpr int memory_estimates = 13;
#endif

WEIR_FAKE_EXPORT int cudssDataGet(void* /*handle*/, void* data, int what, void* value, std::size_t bytes,
                                  std::size_t* written) {
    if (const int status = begin("cudssDataGet"); status != cudss_success) {
        return status;
    }
    auto& of = *static_cast<system_data*>(data);
    if (what == memory_estimates) {
        constexpr std::size_t numbers = 16;
        if (bytes != numbers * sizeof(std::int64_t) || !of.is_analyzed) {
            return wrong_value;
        }
        // Of the device: what stays, and what it takes at most.
        auto* const estimates = static_cast<std::int64_t*>(value);
        std::fill_n(estimates, numbers, 0);
        estimates[0] = of.n * of.n * 16;
        estimates[1] = 2 * estimates[0];
        *written = bytes;
        return cudss_success;
    }
    const bool asks_for_pivots = what == 2;
    const std::size_t expected = asks_for_pivots && of.index_type == r64i ? sizeof(std::int64_t) : sizeof(std::int32_t);
    if ((what != 0 && !asks_for_pivots) || bytes != expected) {
        return wrong_value;
    }
    static auto* const synchronize = of_driver<CUresult(void*)>("cuStreamSynchronize");
    if (synchronize == nullptr || synchronize(of.last_stream) != success) {
        return execution_failed;
    }
    if (expected == sizeof(std::int64_t)) {
        *static_cast<std::int64_t*>(value) = of.replaced;
    } else {
        *static_cast<std::int32_t*>(value) = asks_for_pivots ? static_cast<std::int32_t>(of.replaced) : of.info.load();
    }
    *written = expected;
    return cudss_success;
}

WEIR_FAKE_EXPORT int cudssExecute(void* handle, int what, void* config, void* data, void* matrix, void* solution,
                                  void* right_hand_side) {
    if (const int status = begin("cudssExecute"); status != cudss_success) {
        return status;
    }
    auto& of = *static_cast<handle_data*>(handle);
    auto& with = *static_cast<system_data*>(data);
    auto& a = *static_cast<described*>(matrix);
    auto one = std::make_unique<execution>();
    *one = {what, &with, &a, static_cast<described*>(solution), static_cast<described*>(right_hand_side)};
    if (config == nullptr || !a.is_csr || one->x == nullptr || one->b == nullptr || of.in != context_now()) {
        return wrong_value;
    }
    void* stream = nullptr;
    {
        const std::lock_guard lock(state().lock);
        ++state().phases[what];
        const auto wanted = of.wanted.find(std::this_thread::get_id());
        if (wanted != of.wanted.end()) {
            state().mistakes += wanted->second != of.stream ? 1 : 0;
            of.wanted.erase(wanted);
        }
        stream = of.stream;
    }
#ifdef WEIR_FAKE_CUDSS_0_7
    constexpr int matching_is_on = 1;
#else
    constexpr int matching_is_on = 6;
#endif
    if (a.type == general && *static_cast<const int*>(config) != matching_is_on) {
        return unsupported;  // the library gives wrong solutions then, where the diagonal has zeros
    }
    if (what == analysis) {
        if (with.running++ != 0) {
            ++state().mistakes;
        }
        with.n = a.rows;
        with.index_type = a.index_type;
        with.offsets = integers(a.offsets, a.index_type, a.rows + 1);
        with.indices = integers(a.indices, a.index_type, a.ahead);
        with.matched = a.type == general ? matched_rows(dense(with, a), static_cast<std::size_t>(a.rows))
                                         : std::vector<std::size_t>();
        with.is_analyzed = true;
        with.last_stream = stream;
        --with.running;
        return cudss_success;
    }
    const bool is_ready = what == factorization ? with.is_analyzed : what == solve_all && with.is_factorized;
    if (!is_ready || (what == solve_all &&
                      (one->b->values == nullptr || one->x->values == nullptr || one->b->values == one->x->values))) {
        return wrong_value;
    }
    with.is_factorized = true;
    if (what == solve_all) {
        stream =
            with.last_stream;  // as versions 0.7.1 and 1.0 seem to do, which solve out of the order of the stream that was set last
    }
    with.last_stream = stream;
    one->begin();
    static auto* const enqueue = of_driver<decltype(weir_fake_enqueue)>("weir_fake_enqueue");
    if (enqueue == nullptr || enqueue(stream, run_phase, one.get()) != success) {
        one->end();
        return execution_failed;
    }
    static_cast<void>(one.release());
    return cudss_success;
}
