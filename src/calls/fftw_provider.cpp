#include "calls/fftw_provider.hpp"

#include <atomic>
#include <string>

#include "weir/detail/fork_section.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

namespace weir::calls {

namespace {

/// The planner of FFTW, making and destroying, takes one thread at a time in the whole process. A leaf in the lock order,
/// never held while a transform is executed.
detail::mutex& planner() {
    static detail::mutex mutex;
    return mutex;
}

/// Dimensions as the library takes them.
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

template <class T>
class fftw_transform final : public fft_transform {
    using complex = typename fftw_functions<T>::complex;

public:
    fftw_transform(const fftw_functions<T>& functions, const fft_problem& problem)
        : functions_(functions), kind_(problem.kind) {
        // Planning by estimate never touches the memory: it looks at alignment, and at whether both are the same.
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
        switch (kind_) {
            case fft_kind::complex_to_complex:
                plan_ = functions_.plan_dft(
                    dims.rank(), dims.data(), batch.rank(), batch.data(), complex_at(in), complex_at(out),
                    problem.direction == fft_direction::forward ? fftw_forward : fftw_backward, flags);
                break;
            case fft_kind::real_to_complex:
                plan_ = functions_.plan_dft_r2c(dims.rank(), dims.data(), batch.rank(), batch.data(), real_at(in),
                                                complex_at(out), flags);
                break;
            case fft_kind::complex_to_real:
                plan_ = functions_.plan_dft_c2r(dims.rank(), dims.data(), batch.rank(), batch.data(), complex_at(in),
                                                real_at(out), flags);
                break;
        }
        if (plan_ == nullptr) {
            throw device_error((functions_.file.empty() ? "the FFT library" : functions_.file) +
                               " has no plan for transforms of " + dims.to_string() + " in batches of " +
                               batch.to_string());
        }
    }

    ~fftw_transform() override {
        const std::lock_guard lock(planner());
        functions_.destroy_plan(plan_);
    }

    void execute(const std::byte* in, std::byte* out) const override {
        // The interface knows no const; whether the operand is preserved, the flags have said.
        std::byte* const source = const_cast<std::byte*>(in);
        switch (kind_) {
            case fft_kind::complex_to_complex:
                functions_.execute_dft(plan_, complex_at(source), complex_at(out));
                break;
            case fft_kind::real_to_complex:
                functions_.execute_dft_r2c(plan_, real_at(source), complex_at(out));
                break;
            case fft_kind::complex_to_real:
                functions_.execute_dft_c2r(plan_, complex_at(source), real_at(out));
                break;
        }
    }

private:
    static T* real_at(std::byte* memory) noexcept { return reinterpret_cast<T*>(memory); }
    static complex* complex_at(std::byte* memory) noexcept { return reinterpret_cast<complex*>(memory); }

    const fftw_functions<T>& functions_;
    fft_kind kind_;
    typename fftw_functions<T>::plan plan_ = nullptr;
};

fftw_provider& fftw_of_the_process() {
    const detail::fork_section whole;
    // Never destroyed: transforms may be pending until the very end.
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
    // What is let go of is destroyed after the lock is: destroying takes the planner's.
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

replaced_fft_provider::replaced_fft_provider(fft_provider& by) noexcept : previous_(replacement.exchange(&by)) {}

replaced_fft_provider::~replaced_fft_provider() { replacement.store(previous_); }

}  // namespace weir::calls
