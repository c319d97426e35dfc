#include "calls/fft/fftw_provider.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "calls/fft/fft_call.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

namespace weir::calls {

namespace {

/// FFTW's planner (making and destroying plans) must be used by one thread at a time in the whole process. A leaf in the lock order,
/// never held while a transform is executed.
detail::mutex& planner() {
    static detail::mutex mutex;
    return mutex;
}

/// Dimensions in the form that the library takes.
class fftw_dimensions {
public:
    explicit fftw_dimensions(const fft_dimensions& from) {
        for (const fft_dimension& d : from) {
            all_.push_back({d.n, d.in_stride, d.out_stride});
        }
    }
    [[nodiscard]] int rank() const noexcept { return static_cast<int>(all_.size()); }
    [[nodiscard]] const fftw_dimension* data() const noexcept { return all_.begin(); }
    [[nodiscard]] std::string to_string() const {
        std::string text;
        for (const fftw_dimension& d : all_) {
            text += (text.empty() ? "" : " x ") + std::to_string(d.n);
        }
        return text.empty() ? "1" : text;
    }

private:
    detail::small_vector<fftw_dimension, 4> all_;
};

/// Sizes of the elements of both sides.
struct item_sizes {
    std::int64_t in;
    std::int64_t out;
};

template <class T>
item_sizes items_of(fft_kind kind) noexcept {
    constexpr auto real = static_cast<std::int64_t>(sizeof(T));
    return {kind == fft_kind::real_to_complex ? real : 2 * real, kind == fft_kind::complex_to_real ? real : 2 * real};
}

/// A plan of the library's. Some libraries have none for batches of several dimensions (MKL, "FFTW3 Interface", limitations): then it is one
/// for the longest dimension, and executed for each index of the others.
template <class T>
class fftw_plan {
    using complex = typename fftw_functions<T>::complex;

public:
    /// Throws device_error if the library has no plan.
    fftw_plan(const fftw_functions<T>& functions, const fft_problem& problem)
        : functions_(functions), kind_(problem.kind), items_(items_of<T>(problem.kind)), plan_(made(problem)) {
        if (plan_ == nullptr && problem.batch.size() > 1) {
            const fft_dimension* const longest =
                std::max_element(problem.batch.begin(), problem.batch.end(),
                                 [](const fft_dimension& a, const fft_dimension& b) { return a.n < b.n; });
            for (const fft_dimension& each : problem.batch) {
                if (&each != longest) {
                    loops_.push_back(each);
                }
            }
            fft_problem part = problem;
            part.batch = {*longest};
            part.aligned = false;
            plan_ = made(part);
        }
        if (plan_ == nullptr) {
            throw device_error((functions_.file.empty() ? "the FFT library" : functions_.file) +
                               " has no plan for transforms of " + fftw_dimensions(problem.transform).to_string() +
                               " in batches of " + fftw_dimensions(problem.batch).to_string() +
                               ": pass a copy of the operand if it is broadcast, else use FFTW");
        }
    }
    ~fftw_plan() {
        const std::lock_guard lock(planner());
        functions_.destroy_plan(plan_);
    }
    fftw_plan(const fftw_plan&) = delete;
    fftw_plan& operator=(const fftw_plan&) = delete;

    void execute(std::byte* in, std::byte* out) const { execute(in, out, loops_.begin()); }

private:
    typename fftw_functions<T>::plan made(const fft_problem& problem) const {
        // Planning with FFTW_ESTIMATE never touches the memory: only the alignment matters, and whether both addresses are the same.
        alignas(fft_alignment) static std::byte memory[2 * fft_alignment];
        std::byte* const in = memory;
        std::byte* const out = problem.in_place ? memory : memory + fft_alignment;
        const fftw_dimensions dims(problem.transform);
        const fftw_dimensions batch(problem.batch);
        unsigned flags = fftw_estimate | (problem.aligned ? 0U : fftw_unaligned);
        if (!problem.in_place) {
            flags |= problem.preserves_input ? fftw_preserve_input : fftw_destroy_input;
        }
        const std::lock_guard lock(planner());
        switch (problem.kind) {
            case fft_kind::complex_to_complex:
                break;
            case fft_kind::real_to_complex:
                return functions_.plan_dft_r2c(dims.rank(), dims.data(), batch.rank(), batch.data(), real_at(in),
                                               complex_at(out), flags);
            case fft_kind::complex_to_real:
                return functions_.plan_dft_c2r(dims.rank(), dims.data(), batch.rank(), batch.data(), complex_at(in),
                                               real_at(out), flags);
        }
        return functions_.plan_dft(dims.rank(), dims.data(), batch.rank(), batch.data(), complex_at(in),
                                   complex_at(out),
                                   problem.direction == fft_direction::forward ? fftw_forward : fftw_backward, flags);
    }

    void execute(std::byte* in, std::byte* out, const fft_dimension* loop) const {
        if (loop == loops_.end()) {
            execute_once(in, out);
            return;
        }
        for (std::int64_t i = 0; i < loop->n; ++i) {
            execute(in + i * loop->in_stride * items_.in, out + i * loop->out_stride * items_.out, loop + 1);
        }
    }
    void execute_once(std::byte* in, std::byte* out) const {
        switch (kind_) {
            case fft_kind::complex_to_complex:
                functions_.execute_dft(plan_, complex_at(in), complex_at(out));
                break;
            case fft_kind::real_to_complex:
                functions_.execute_dft_r2c(plan_, real_at(in), complex_at(out));
                break;
            case fft_kind::complex_to_real:
                functions_.execute_dft_c2r(plan_, complex_at(in), real_at(out));
                break;
        }
    }

    static T* real_at(std::byte* memory) noexcept { return reinterpret_cast<T*>(memory); }
    static complex* complex_at(std::byte* memory) noexcept { return reinterpret_cast<complex*>(memory); }

    const fftw_functions<T>& functions_;
    fft_kind kind_;
    item_sizes items_;
    fft_dimensions loops_;
    typename fftw_functions<T>::plan plan_ = nullptr;
};

/// The transforms of all but the last dimension of an inverse real one, in place on the operand.
fft_problem leading_part_of(const fft_problem& problem) {
    fft_problem part = problem;
    part.kind = fft_kind::complex_to_complex;
    part.direction = fft_direction::inverse;
    part.in_place = true;
    part.transform = {};
    part.batch = {};
    const auto on_the_operand = [](const fft_dimension& of) { return fft_dimension{of.n, of.in_stride, of.in_stride}; };
    for (std::size_t i = 0; i + 1 < problem.transform.size(); ++i) {
        part.transform.push_back(on_the_operand(problem.transform[i]));
    }
    for (const fft_dimension& each : problem.batch) {
        part.batch.push_back(on_the_operand(each));
    }
    fft_dimension last = on_the_operand(problem.transform[problem.transform.size() - 1]);
    last.n = last.n / 2 + 1;
    part.batch.push_back(last);
    return part;
}

/// The transforms of the last dimension.
fft_problem last_part_of(const fft_problem& problem) {
    fft_problem part = problem;
    part.transform = {problem.transform[problem.transform.size() - 1]};
    for (std::size_t i = 0; i + 1 < problem.transform.size(); ++i) {
        part.batch.push_back(problem.transform[i]);
    }
    return part;
}

template <class T>
class fftw_transform final : public fft_transform {
public:
    fftw_transform(const fftw_functions<T>& functions, const fft_problem& problem) {
        // Of an operand that is not conjugate symmetric, FFTW's result is that of one dimension after the other, as NumPy's is. MKL's is
        // another.
        const bool is_fftw = functions.version.empty() || functions.version.starts_with("fftw");
        const bool may_change = problem.in_place || !problem.preserves_input;
        if (problem.kind == fft_kind::complex_to_real && problem.transform.size() > 1 && !is_fftw && may_change) {
            leading_.emplace(functions, leading_part_of(problem));
            last_.emplace(functions, last_part_of(problem));
        } else {
            last_.emplace(functions, problem);
        }
    }

    void execute(const std::byte* in, std::byte* out) const override {
        // The interface does not use const; the plan's flags decide whether the operand is preserved.
        auto* const source = const_cast<std::byte*>(in);
        if (leading_) {
            leading_->execute(source, source);
        }
        last_->execute(source, out);
    }

private:
    std::optional<fftw_plan<T>> leading_;
    std::optional<fftw_plan<T>> last_;
};

fftw_provider& fftw_of_the_process() {
    const detail::fork_section whole;
    // Never destroyed: transforms may be pending until the process ends.
    static auto* const provider = new fftw_provider();
    return *provider;
}

std::atomic<fft_provider*> replacement{nullptr};

}  // namespace

std::shared_ptr<const fft_transform> fftw_provider::prepare(const fft_problem& problem) {
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = kept_.find(problem); found != kept_.end()) {
            return found->second;
        }
    }
    std::shared_ptr<const fft_transform> made;
    if (problem.double_precision) {
        made = std::make_shared<fftw_transform<double>>(double_ != nullptr ? *double_ : fftw<double>(), problem);
    } else {
        made = std::make_shared<fftw_transform<float>>(single_ != nullptr ? *single_ : fftw<float>(), problem);
    }
    // The transforms taken out are destroyed after the lock is released, since that takes the planner's lock.
    std::map<fft_problem, std::shared_ptr<const fft_transform>> let_go;
    const std::lock_guard lock(mutex_);
    if (kept_.size() >= most_kept) {
        let_go.swap(kept_);
    }
    return kept_.try_emplace(problem, std::move(made)).first->second;
}

fft_provider& cpu_fft_provider() {
    fft_provider* const other = replacement.load(std::memory_order_acquire);
    return other != nullptr ? *other : fftw_of_the_process();
}

// Calls that were made before have prepared the transforms of the provider that is replaced.
replaced_fft_provider::replaced_fft_provider(fft_provider& by) noexcept : previous_(replacement.exchange(&by)) {
    kept_ffts().clear();
}

replaced_fft_provider::~replaced_fft_provider() {
    replacement.store(previous_);
    kept_ffts().clear();
}

}  // namespace weir::calls
