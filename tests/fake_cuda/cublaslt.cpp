// The fake cuBLASLt: multiplies matrices in columns, sum by sum, as work in the fake driver's streams (cuBLAS documentation 13.1, "Using
// the cuBLASLt API"). What the real library leaves open, this one does in the worst way: the result is no number while it is computed,
// a and b are read where alpha is 0, and the workspace is written at the beginning and looked at in the end. It has epilogues for real elements alone, and its GELU of
// float64 has a coefficient of float32, as the real one's seems to have.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "control.hpp"
#include "cublaslt_control.hpp"
#include "weir/float16.hpp"

namespace weir_fake {
namespace {

using number = std::complex<long double>;

enum cublas_status : int {
    cublas_success = 0,
    uninitialized = 1,
    wrong_value = 7,
    execution_failed = 13,
    unsupported = 15
};
enum number_type : int { r32f = 0, r64f = 1, r16f = 2, c32f = 4, c64f = 5, r16bf = 14 };
enum epilogue_bits : unsigned { plain = 1, relu = 2, bias = 4, gelu = 32 };

struct product_desc {
    int compute = 0;
    int scale = 0;
    std::int32_t turns_a = 0;
    std::int32_t turns_b = 0;
    unsigned epilogue = plain;
    const void* bias_pointer = nullptr;
};

struct matrix_layout {
    int type = r32f;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t leading = 0;
    std::int32_t count = 1;
    std::int64_t step = 0;
};

struct search_preference {
    std::uint64_t workspace = 0;
    std::array<std::uint32_t, 4> alignment{256, 256, 256, 256};  // of a, b, c, d
};

/// What the library writes into an algorithm's 64 bytes.
struct algorithm_words {
    std::uint64_t made_here;
    std::uint64_t id;
    std::uint64_t workspace;
    std::uint64_t problem;
    std::array<std::uint32_t, 4> alignment;
    std::array<std::uint64_t, 2> unused;
};
static_assert(sizeof(algorithm_words) == 64);
constexpr std::uint64_t mark = 0x77656972;

struct suggestion {
    algorithm_words algorithm;
    std::size_t workspace;
    int status;
    float waves;
    std::array<int, 4> reserved;
};
static_assert(sizeof(suggestion) == 96);

struct cublaslt_state {
    std::mutex lock;
    std::set<void*> objects;
    std::map<std::string, unsigned long long> calls;
    struct fault {
        std::string name;
        unsigned long long left;
        int status;
    };
    std::vector<fault> faults;
    std::size_t workspace = 0;
    std::atomic<int> fastest{-1};
    std::atomic<int> last_algorithm{-1};
    std::atomic<unsigned> last_epilogue{0};
    std::atomic<unsigned long long> mistakes{0};
    std::atomic<std::uint64_t> next_run{1};
};
cublaslt_state& state() {
    static auto* const one = new cublaslt_state;
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
    return cublas_success;
}

template <class Object>
int create(const char* name, Object&& made, void** to) {
    if (const int status = begin(name); status != cublas_success) {
        return status;
    }
    const std::lock_guard lock(state().lock);
    *to = new std::decay_t<Object>(made);
    state().objects.insert(*to);
    return cublas_success;
}

template <class Object>
int destroy(const char* name, void* what) {
    if (const int status = begin(name); status != cublas_success) {
        return status;
    }
    {
        const std::lock_guard lock(state().lock);
        if (state().objects.erase(what) == 0) {
            return wrong_value;
        }
    }
    delete static_cast<Object*>(what);
    return cublas_success;
}

template <class Value>
int set(Value& to, const void* from, std::size_t bytes) {
    if (bytes != sizeof to) {
        return wrong_value;
    }
    std::memcpy(&to, from, bytes);
    return cublas_success;
}

bool is_complex_type(int type) { return type == c32f || type == c64f; }
bool is_known_type(int type) {
    return type == r32f || type == r64f || type == r16f || type == r16bf || is_complex_type(type);
}
bool is_double_type(int type) { return type == r64f || type == c64f; }

number element(const void* from, int type, std::int64_t at) {
    switch (type) {
        case r32f:
            return static_cast<long double>(static_cast<const float*>(from)[at]);
        case r64f:
            return static_cast<long double>(static_cast<const double*>(from)[at]);
        case r16f:
            return static_cast<long double>(static_cast<float>(static_cast<const weir::float16*>(from)[at]));
        case r16bf:
            return static_cast<long double>(static_cast<float>(static_cast<const weir::bfloat16*>(from)[at]));
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
        case r16f:
            static_cast<weir::float16*>(to)[at] = weir::float16(static_cast<float>(value.real()));
            return;
        case r16bf:
            static_cast<weir::bfloat16*>(to)[at] = weir::bfloat16(static_cast<float>(value.real()));
            return;
        case c32f:
            static_cast<std::complex<float>*>(to)[at] = std::complex<float>(value);
            return;
        default:
            static_cast<std::complex<double>*>(to)[at] = std::complex<double>(value);
            return;
    }
}

/// What an algorithm is made for, in one number.
std::uint64_t hash_of(const product_desc& what, const matrix_layout& a, const matrix_layout& b,
                      const matrix_layout& d) {
    std::uint64_t hash = 14695981039346656037ULL;
    const auto add = [&](std::uint64_t value) { hash = (hash ^ value) * 1099511628211ULL; };
    add(static_cast<std::uint64_t>(what.turns_a));
    add(static_cast<std::uint64_t>(what.turns_b));
    add(what.epilogue);
    for (const matrix_layout* const each : {&a, &b, &d}) {
        add(static_cast<std::uint64_t>(each->type));
        add(static_cast<std::uint64_t>(each->rows));
        add(static_cast<std::uint64_t>(each->columns));
        add(static_cast<std::uint64_t>(each->leading));
        add(static_cast<std::uint64_t>(each->count));
        add(static_cast<std::uint64_t>(each->step));
    }
    return hash;
}

/// Whether the descriptions make sense together.
int check(const product_desc& what, const matrix_layout& a, const matrix_layout& b, const matrix_layout& d) {
    const bool is_double = is_double_type(d.type);
    const int scale = d.type == r16f || d.type == r16bf ? static_cast<int>(r32f) : d.type;
    if (a.type != d.type || b.type != d.type || what.compute != (is_double ? 70 : 68) || what.scale != scale) {
        return wrong_value;
    }
    const std::int64_t rows = what.turns_a != 0 ? a.columns : a.rows;
    const std::int64_t depth = what.turns_a != 0 ? a.rows : a.columns;
    const std::int64_t columns = what.turns_b != 0 ? b.rows : b.columns;
    if (rows != d.rows || columns != d.columns || depth != (what.turns_b != 0 ? b.columns : b.rows) || rows < 1 ||
        columns < 1 || depth < 1) {
        return wrong_value;
    }
    for (const matrix_layout* const each : {&a, &b, &d}) {
        if (each->leading < each->rows || each->count != d.count || each->step < 0) {
            return wrong_value;
        }
    }
    if ((what.epilogue & bias) != 0 && what.bias_pointer == nullptr) {
        return wrong_value;
    }
    return what.epilogue != plain && is_complex_type(d.type) ? unsupported : cublas_success;
}

/// One product in a stream. Keeps what the descriptions say, which may be gone by then.
struct execution {
    product_desc what;
    matrix_layout a;
    matrix_layout b;
    matrix_layout d;
    const char* a_memory = nullptr;
    const char* b_memory = nullptr;
    char* d_memory = nullptr;
    number alpha;
    number beta;
    std::uint64_t* workspace = nullptr;
    std::size_t words = 0;
    int algorithm = 0;

    void operator()() const {
        const std::uint64_t run = state().next_run++;
        std::fill_n(workspace, words, run);
        for (std::int64_t i = 0; i < d.count; ++i) {
            multiply(i);
        }
        const int fastest = state().fastest;
        if (fastest >= 0 && algorithm != fastest) {
            const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(8);
            while (std::chrono::steady_clock::now() < end) {
            }
        }
        if (std::any_of(workspace, workspace + words, [&](std::uint64_t word) { return word != run; })) {
            ++state().mistakes;
        }
    }

private:
    [[nodiscard]] number finished(number x, std::int64_t row) const {
        if ((what.epilogue & bias) != 0) {
            x += element(what.bias_pointer, d.type, row);
        }
        if ((what.epilogue & relu) != 0) {
            x = x.real() < 0 ? 0 : x.real();
        } else if ((what.epilogue & gelu) != 0) {
            const long double v = x.real();
            const long double cubic = is_double_type(d.type) ? static_cast<long double>(0.044715F) : 0.044715L;
            x = v / 2 * (1 + std::tanh(0.797884560802865355879892L * (v + cubic * v * v * v)));
        }
        return x;
    }
    void multiply(std::int64_t i) const {
        const std::int64_t depth = what.turns_a != 0 ? a.rows : a.columns;
        const std::int64_t a_first = i * a.step;
        const std::int64_t b_first = i * b.step;
        const std::int64_t d_first = i * d.step;
        std::vector<number> before;
        for (std::int64_t column = 0; column < d.columns; ++column) {
            for (std::int64_t row = 0; row < d.rows; ++row) {
                const std::int64_t at = d_first + column * d.leading + row;
                before.push_back(beta == number(0) ? number(0) : beta * element(d_memory, d.type, at));
                set_element(d_memory, d.type, at, std::numeric_limits<long double>::quiet_NaN());
            }
        }
        for (std::int64_t column = 0; column < d.columns; ++column) {
            for (std::int64_t row = 0; row < d.rows; ++row) {
                number sum = 0;
                for (std::int64_t k = 0; k < depth; ++k) {
                    const std::int64_t left = what.turns_a != 0 ? row * a.leading + k : k * a.leading + row;
                    const std::int64_t right = what.turns_b != 0 ? k * b.leading + column : column * b.leading + k;
                    sum += element(a_memory, a.type, a_first + left) * element(b_memory, b.type, b_first + right);
                }
                const number added = before[static_cast<std::size_t>(column * d.rows + row)];
                set_element(d_memory, d.type, d_first + column * d.leading + row, finished(alpha * sum + added, row));
            }
        }
    }
};

int run_product(void* with) {
    const std::unique_ptr<execution> one(static_cast<execution*>(with));
    (*one)();
    return success;
}

bool is_aligned(const void* address, std::uint32_t to) { return reinterpret_cast<std::uintptr_t>(address) % to == 0; }

}  // namespace
}  // namespace weir_fake

using namespace weir_fake;

unsigned long long weir_fake_cublaslt_calls(const char* name) {
    const std::lock_guard lock(state().lock);
    return state().calls[name];
}

void weir_fake_cublaslt_fail(const char* name, unsigned long long nth, int status) {
    const std::lock_guard lock(state().lock);
    state().faults.push_back({name, nth, status});
}

std::size_t weir_fake_cublaslt_objects() {
    const std::lock_guard lock(state().lock);
    return state().objects.size();
}

void weir_fake_cublaslt_set_workspace(std::size_t bytes) {
    const std::lock_guard lock(state().lock);
    state().workspace = bytes;
}

void weir_fake_cublaslt_set_fastest(int algorithm) { state().fastest = algorithm; }
int weir_fake_cublaslt_last_algorithm() { return state().last_algorithm; }
unsigned weir_fake_cublaslt_last_epilogue() { return state().last_epilogue; }
unsigned long long weir_fake_cublaslt_mistakes() { return state().mistakes; }

WEIR_FAKE_EXPORT std::size_t cublasLtGetVersion() { return 130100; }

WEIR_FAKE_EXPORT int cublasLtCreate(void** handle) {
    if (context_now() == nullptr) {
        return uninitialized;
    }
    if (const int status = begin("cublasLtCreate"); status != cublas_success) {
        return status;
    }
    *handle = new CUcontext(context_now());
    return cublas_success;
}

WEIR_FAKE_EXPORT int cublasLtMatmulDescCreate(void** desc, int compute, int scale) {
    return create("cublasLtMatmulDescCreate", product_desc{compute, scale}, desc);
}
WEIR_FAKE_EXPORT int cublasLtMatmulDescDestroy(void* desc) {
    return destroy<product_desc>("cublasLtMatmulDescDestroy", desc);
}
WEIR_FAKE_EXPORT int cublasLtMatmulDescSetAttribute(void* desc, int which, const void* value, std::size_t bytes) {
    if (const int status = begin("cublasLtMatmulDescSetAttribute"); status != cublas_success) {
        return status;
    }
    auto& of = *static_cast<product_desc*>(desc);
    switch (which) {
        case 3:
            return set(of.turns_a, value, bytes);
        case 4:
            return set(of.turns_b, value, bytes);
        case 7:
            return set(of.epilogue, value, bytes);
        case 8:
            return set(of.bias_pointer, value, bytes);
        default:
            return wrong_value;
    }
}

WEIR_FAKE_EXPORT int cublasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows, std::uint64_t columns,
                                                std::int64_t leading) {
    if (!is_known_type(type)) {
        return wrong_value;
    }
    return create("cublasLtMatrixLayoutCreate",
                  matrix_layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading},
                  layout);
}
WEIR_FAKE_EXPORT int cublasLtMatrixLayoutDestroy(void* layout) {
    return destroy<matrix_layout>("cublasLtMatrixLayoutDestroy", layout);
}
WEIR_FAKE_EXPORT int cublasLtMatrixLayoutSetAttribute(void* layout, int which, const void* value, std::size_t bytes) {
    auto& of = *static_cast<matrix_layout*>(layout);
    switch (which) {
        case 5:
            return set(of.count, value, bytes);
        case 6:
            return set(of.step, value, bytes);
        default:
            return wrong_value;
    }
}

WEIR_FAKE_EXPORT int cublasLtMatmulPreferenceCreate(void** preference) {
    return create("cublasLtMatmulPreferenceCreate", search_preference{}, preference);
}
WEIR_FAKE_EXPORT int cublasLtMatmulPreferenceDestroy(void* preference) {
    return destroy<search_preference>("cublasLtMatmulPreferenceDestroy", preference);
}
WEIR_FAKE_EXPORT int cublasLtMatmulPreferenceSetAttribute(void* preference, int which, const void* value,
                                                          std::size_t bytes) {
    auto& of = *static_cast<search_preference*>(preference);
    if (which == 1) {
        return set(of.workspace, value, bytes);
    }
    if (which >= 5 && which <= 8) {
        return set(of.alignment[static_cast<std::size_t>(which - 5)], value, bytes);
    }
    return wrong_value;
}

WEIR_FAKE_EXPORT int cublasLtMatmulAlgoGetHeuristic(void* handle, void* desc, void* a, void* b, void* c, void* d,
                                                    void* preference, int wanted, suggestion* results, int* found) {
    *found = 0;
    if (const int status = begin("cublasLtMatmulAlgoGetHeuristic"); status != cublas_success) {
        return status;
    }
    const auto& what = *static_cast<product_desc*>(desc);
    const auto& search = *static_cast<search_preference*>(preference);
    const auto& left = *static_cast<matrix_layout*>(a);
    const auto& right = *static_cast<matrix_layout*>(b);
    const auto& result = *static_cast<matrix_layout*>(d);
    if (handle == nullptr || c != d || wanted < 1) {
        return wrong_value;
    }
    if (const int status = check(what, left, right, result); status != cublas_success) {
        return status;
    }
    const std::lock_guard lock(state().lock);
    if (state().workspace > search.workspace) {
        return unsupported;
    }
    for (int i = 0; i < std::min(wanted, 4); ++i) {
        results[i] = {{mark,
                       static_cast<std::uint64_t>(i),
                       state().workspace,
                       hash_of(what, left, right, result),
                       search.alignment,
                       {}},
                      state().workspace,
                      cublas_success,
                      1.0F,
                      {}};
        ++*found;
    }
    return cublas_success;
}

WEIR_FAKE_EXPORT int cublasLtMatmul(void* handle, void* desc, const void* alpha, const void* a, void* a_layout,
                                    const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                                    void* d, void* d_layout, const algorithm_words* algorithm, void* workspace,
                                    std::size_t workspace_bytes, void* stream) {
    if (const int status = begin("cublasLtMatmul"); status != cublas_success) {
        return status;
    }
    auto one = std::make_unique<execution>();
    one->what = *static_cast<product_desc*>(desc);
    one->a = *static_cast<matrix_layout*>(a_layout);
    one->b = *static_cast<matrix_layout*>(b_layout);
    one->d = *static_cast<matrix_layout*>(d_layout);
    if (*static_cast<CUcontext*>(handle) != context_now() || a == nullptr || b == nullptr || d == nullptr || c != d ||
        c_layout != d_layout || algorithm == nullptr || algorithm->made_here != mark ||
        algorithm->problem != hash_of(one->what, one->a, one->b, one->d) || workspace_bytes < algorithm->workspace ||
        (algorithm->workspace > 0 && (workspace == nullptr || !is_aligned(workspace, 16)))) {
        return wrong_value;
    }
    if (const int status = check(one->what, one->a, one->b, one->d); status != cublas_success) {
        return status;
    }
    if (!is_aligned(a, algorithm->alignment[0]) || !is_aligned(b, algorithm->alignment[1]) ||
        !is_aligned(d, algorithm->alignment[3])) {
        ++state().mistakes;
    }
    one->a_memory = static_cast<const char*>(a);
    one->b_memory = static_cast<const char*>(b);
    one->d_memory = static_cast<char*>(d);
    one->alpha = element(alpha, one->what.scale, 0);
    one->beta = element(beta, one->what.scale, 0);
    one->workspace = static_cast<std::uint64_t*>(workspace);
    one->words = algorithm->workspace / sizeof(std::uint64_t);
    one->algorithm = static_cast<int>(algorithm->id);
    state().last_algorithm = one->algorithm;
    state().last_epilogue = one->what.epilogue;
    static auto* const enqueue = of_driver<decltype(weir_fake_enqueue)>("weir_fake_enqueue");
    if (enqueue == nullptr || enqueue(stream, run_product, one.get()) != success) {
        return execution_failed;
    }
    static_cast<void>(one.release());
    return cublas_success;
}
