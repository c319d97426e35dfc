#include "calls/matmul/cublaslt_provider.hpp"

#include <array>

#include "backend/backend.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/error.hpp"
#include "weir/memory.hpp"

namespace weir::calls {

namespace {

template <class Value>
void set_desc(const cublaslt_functions& by, void* desc, cublaslt_desc which, const Value& value) {
    expect_cublaslt(by.desc_set(desc, static_cast<int>(which), &value, sizeof value), "cublasLtMatmulDescSetAttribute");
}

template <class Value>
void set_layout(const cublaslt_functions& by, void* layout, cublaslt_layout which, const Value& value) {
    expect_cublaslt(by.layout_set(layout, static_cast<int>(which), &value, sizeof value),
                    "cublasLtMatrixLayoutSetAttribute");
}

/// What the library is to keep to when it looks for an algorithm.
class cublaslt_search {
public:
    cublaslt_search(const cublaslt_functions& by, const cublaslt_problem& problem) : by_(&by) {
        expect_cublaslt(by.preference_create(&made_), "cublasLtMatmulPreferenceCreate");
        try {
            set(cublaslt_preference::workspace_bytes, problem.most_workspace);
            set(cublaslt_preference::alignment_a, problem.a.alignment);
            set(cublaslt_preference::alignment_b, problem.b.alignment);
            set(cublaslt_preference::alignment_c, problem.d.alignment);
            set(cublaslt_preference::alignment_d, problem.d.alignment);
        } catch (...) {
            by.preference_destroy(made_);
            throw;
        }
    }
    ~cublaslt_search() { by_->preference_destroy(made_); }
    cublaslt_search(const cublaslt_search&) = delete;
    cublaslt_search& operator=(const cublaslt_search&) = delete;
    [[nodiscard]] void* get() const noexcept { return made_; }

private:
    template <class Value>
    void set(cublaslt_preference which, const Value& value) {
        expect_cublaslt(by_->preference_set(made_, static_cast<int>(which), &value, sizeof value),
                        "cublasLtMatmulPreferenceSetAttribute");
    }
    const cublaslt_functions* by_;
    void* made_ = nullptr;
};

}  // namespace

cublaslt_number cublaslt_number_of(dtype type) noexcept {
    if (type == dtype::float16) {
        return cublaslt_number::r16f;
    }
    if (type == dtype::bfloat16) {
        return cublaslt_number::r16bf;
    }
    if (is_complex(type)) {
        return type == dtype::complex64 ? cublaslt_number::c32f : cublaslt_number::c64f;
    }
    return type == dtype::float32 ? cublaslt_number::r32f : cublaslt_number::r64f;
}

cublaslt_descriptions::cublaslt_descriptions(const cublaslt_functions& by, const cublaslt_problem& problem,
                                             const std::byte* bias)
    : by_(&by) {
    try {
        make(problem, bias);
    } catch (...) {
        destroy();
        throw;
    }
}

cublaslt_descriptions::~cublaslt_descriptions() { destroy(); }

void cublaslt_descriptions::destroy() noexcept {
    for (void* const layout : {a, b, d}) {
        if (layout != nullptr) {
            by_->layout_destroy(layout);
        }
    }
    if (product != nullptr) {
        by_->desc_destroy(product);
    }
}

void cublaslt_descriptions::make(const cublaslt_problem& problem, const std::byte* bias) {
    const bool is_double = problem.number == static_cast<int>(cublaslt_number::r64f) ||
                           problem.number == static_cast<int>(cublaslt_number::c64f);
    const bool is_short = problem.number == static_cast<int>(cublaslt_number::r16f) ||
                          problem.number == static_cast<int>(cublaslt_number::r16bf);
    expect_cublaslt(by_->desc_create(&product, is_double ? cublaslt_compute_64f : cublaslt_compute_32f,
                                     is_short ? static_cast<int>(cublaslt_number::r32f) : problem.number),
                    "cublasLtMatmulDescCreate");
    const auto operation = [](bool is_turned) { return is_turned ? cublaslt_transpose : cublaslt_no_transpose; };
    set_desc(*by_, product, cublaslt_desc::transpose_a, operation(problem.turns_a));
    set_desc(*by_, product, cublaslt_desc::transpose_b, operation(problem.turns_b));
    set_desc(*by_, product, cublaslt_desc::epilogue, problem.epilogue);
    if ((problem.epilogue & cublaslt_epilogue_bias) != 0) {
        set_desc(*by_, product, cublaslt_desc::bias_pointer, bias);
    }
    const auto add = [&](void*& layout, const cublaslt_matrix& what, std::int64_t rows, std::int64_t columns) {
        expect_cublaslt(by_->layout_create(&layout, problem.number, static_cast<std::uint64_t>(rows),
                                           static_cast<std::uint64_t>(columns), what.leading),
                        "cublasLtMatrixLayoutCreate");
        if (problem.count > 1) {
            set_layout(*by_, layout, cublaslt_layout::batch_count, static_cast<std::int32_t>(problem.count));
            set_layout(*by_, layout, cublaslt_layout::batch_offset, what.step);
        }
    };
    add(a, problem.a, problem.turns_a ? problem.depth : problem.rows, problem.turns_a ? problem.rows : problem.depth);
    add(b, problem.b, problem.turns_b ? problem.columns : problem.depth,
        problem.turns_b ? problem.depth : problem.columns);
    add(d, problem.d, problem.rows, problem.columns);
}

cublaslt_provider::cublaslt_provider(const backend::capability::libraries& in)
    : in_(&in), library_(&cublaslt(in.version())) {
    const auto create = [this] {
        in_->run_in_context([this] { expect_cublaslt(library_->create(&handle_), "cublasLtCreate"); });
    };
    try {
        create();
    } catch (const out_of_memory&) {
        // The library asks the driver, which does not know what Weir keeps for later (rule L6).
        memory::trim(cuda(in_->number()));
        create();
    }
}

std::vector<cublaslt_choice> cublaslt_provider::suggested(const cublaslt_problem& problem, int most) const {
    // An address that is never read, as much aligned as the bias.
    const std::byte* const bias = reinterpret_cast<const std::byte*>(
        static_cast<std::uintptr_t>(problem.bias_alignment) | std::uintptr_t{1} << 20U);
    std::vector<cublaslt_suggestion> found(static_cast<std::size_t>(most));
    int count = 0;
    in_->run_in_context([&] {
        const cublaslt_descriptions what(*library_, problem, bias);
        const cublaslt_search search(*library_, problem);
        const cublaslt_status status = library_->suggest(handle_, what.product, what.a, what.b, what.d, what.d,
                                                         search.get(), most, found.data(), &count);
        if (status == cublaslt_not_supported) {
            count = 0;
            return;
        }
        expect_cublaslt(status, "cublasLtMatmulAlgoGetHeuristic");
    });
    std::vector<cublaslt_choice> choices;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        if (found[i].status == cublaslt_success) {
            choices.push_back({found[i].algorithm, found[i].workspace_bytes});
        }
    }
    return choices;
}

std::optional<cublaslt_choice> cublaslt_provider::choose(const cublaslt_problem& problem) {
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = kept_.find(problem); known != kept_.end()) {
            return known->second;
        }
    }
    const std::vector<cublaslt_choice> all = suggested(problem, 1);
    const std::optional<cublaslt_choice> first = all.empty() ? std::nullopt : std::optional(all.front());
    const std::lock_guard lock(mutex_);
    if (kept_.size() >= most_kept) {
        kept_.clear();
    }
    return kept_.try_emplace(problem, first).first->second;
}

void cublaslt_provider::keep(const cublaslt_problem& problem, const cublaslt_choice& choice) {
    const std::lock_guard lock(mutex_);
    kept_[problem] = choice;
}

cublaslt_provider& cublaslt_provider::of(const device& where) {
    const backend::capability::libraries* const in = where.state(detail::key).driver().can().libraries;
    // Never destroyed: products may be pending until the very end.
    static detail::mutex mutex;  // guards the list; a leaf in the lock order
    static auto* const all = new std::map<const backend::capability::libraries*, std::unique_ptr<cublaslt_provider>>();
    {
        const std::lock_guard lock(mutex);
        if (const auto known = all->find(in); known != all->end()) {
            return *known->second;
        }
    }
    // Made without the lock, since the driver may block. Of two that are made at once, one is let go of; its handle is not.
    auto made = std::make_unique<cublaslt_provider>(*in);
    const std::lock_guard lock(mutex);
    return *all->try_emplace(in, std::move(made)).first->second;
}

}  // namespace weir::calls
