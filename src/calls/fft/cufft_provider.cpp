#include "calls/fft/cufft_provider.hpp"

#include <array>
#include <utility>

#include "backend/backend.hpp"
#include "backend/native.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"
#include "weir/memory.hpp"

namespace weir::calls {

namespace {

std::array<long long, 3> as_long(const std::array<std::int64_t, 3>& numbers) noexcept {
    return {numbers[0], numbers[1], numbers[2]};
}

}  // namespace

/// One of the library's plans, on loan to one thread.
class cufft_plan::lent {
public:
    explicit lent(const cufft_plan& of) : of_(&of), plan_(of.last_.exchange(nullptr, std::memory_order_acquire)) {
        if (plan_ != nullptr) {
            return;
        }
        {
            const std::lock_guard lock(of.mutex_);
            if (!of.idle_.empty()) {
                plan_ = of.idle_.back();
                of.idle_.pop_back();
                return;
            }
        }
        plan_ = of.make(nullptr);
    }
    ~lent() {
        if (prepared* const other = of_->last_.exchange(plan_, std::memory_order_acq_rel)) {
            const std::lock_guard lock(of_->mutex_);
            of_->idle_.push_back(other);  // make() has reserved room for all plans
        }
    }
    lent(const lent&) = delete;
    lent& operator=(const lent&) = delete;
    [[nodiscard]] cufft_handle handle() const noexcept { return plan_->handle; }

    /// Sets the stream and the workspace of the plan's next executions.
    void set(void* stream, std::byte* work_area) {
        const cufft_functions& f = *of_->library_;
        if (stream != plan_->stream) {
            plan_->stream.reset();
            expect_cufft(f.set_stream(plan_->handle, stream), "cufftSetStream");
            plan_->stream = stream;
        }
        if (work_area != plan_->work_area) {
            plan_->work_area.reset();
            expect_cufft(f.set_work_area(plan_->handle, work_area), "cufftSetWorkArea");
            plan_->work_area = work_area;
        }
    }

private:
    const cufft_plan* of_;
    prepared* plan_;
};

cufft_plan::cufft_plan(const backend::capability::libraries& in, const cufft_layout& layout)
    : in_(&in), library_(&cufft(in.version())), layout_(layout) {
    last_.store(make(&workspace_bytes_), std::memory_order_release);
}

cufft_plan::~cufft_plan() {
    try {
        in_->run_in_context([this] {
            for (const std::unique_ptr<prepared>& each : all_) {
                library_->destroy(each->handle);
            }
        });
    } catch (const device_error&) {
        // The context is lost, and so are the plans.
    }
}

cufft_plan::prepared* cufft_plan::make(std::size_t* workspace) const {
    auto made = std::make_unique<prepared>();
    try {
        made->handle = make_once(workspace);
    } catch (const out_of_memory&) {
        // The library allocates from the driver, which does not know the memory that Weir keeps for later use (rule L6).
        memory::trim(cuda(in_->number()));
        made->handle = make_once(workspace);
    }
    prepared* const one = made.get();
    const std::lock_guard lock(mutex_);
    try {
        idle_.reserve(all_.size() + 1);  // for all plans on loan, so that returning them cannot fail
        all_.push_back(std::move(made));
    } catch (...) {
        in_->run_in_context([&] { library_->destroy(one->handle); });
        throw;
    }
    return one;
}

cufft_handle cufft_plan::make_once(std::size_t* workspace) const {
    cufft_handle handle = 0;
    in_->run_in_context([&] {
        expect_cufft(library_->create(&handle), "cufftCreate");
        try {
            expect_cufft(library_->set_auto_allocation(handle, 0), "cufftSetAutoAllocation");
            auto n = as_long(layout_.n);
            auto in_embed = as_long(layout_.in.embed);
            auto out_embed = as_long(layout_.out.embed);
            std::size_t bytes = 0;
            expect_cufft(library_->make_plan_many(handle, layout_.rank, n.data(), in_embed.data(), layout_.in.stride,
                                                  layout_.in.distance, out_embed.data(), layout_.out.stride,
                                                  layout_.out.distance, layout_.type, layout_.batch, &bytes),
                         "cufftMakePlanMany64");
            if (workspace != nullptr) {
                *workspace = bytes;
            }
        } catch (...) {
            library_->destroy(handle);
            throw;
        }
    });
    return handle;
}

void cufft_plan::run(cufft_handle handle, const execution& one, int direction) const {
    void* const in = const_cast<std::byte*>(one.in);  // the interface does not use const
    switch (layout_.type) {
        case cufft_type::c2c:
            return expect_cufft(library_->execute_c2c(handle, in, one.out, direction), "cufftExecC2C");
        case cufft_type::z2z:
            return expect_cufft(library_->execute_z2z(handle, in, one.out, direction), "cufftExecZ2Z");
        case cufft_type::r2c:
            return expect_cufft(library_->execute_r2c(handle, in, one.out), "cufftExecR2C");
        case cufft_type::d2z:
            return expect_cufft(library_->execute_d2z(handle, in, one.out), "cufftExecD2Z");
        case cufft_type::c2r:
            return expect_cufft(library_->execute_c2r(handle, in, one.out), "cufftExecC2R");
        case cufft_type::z2d:
            return expect_cufft(library_->execute_z2d(handle, in, one.out), "cufftExecZ2D");
    }
}

void cufft_plan::execute(const std::vector<execution>& all, const shift& by, int direction,
                         std::byte* workspace) const {
    lent one(*this);
    one.set(backend::submitting_to::current(), workspace_bytes_ > 0 ? workspace : nullptr);
    for (const execution& each : all) {
        run(one.handle(), {each.in + by.in, each.out + by.out}, direction);
    }
}

std::shared_ptr<const cufft_plan> cufft_provider::prepare(const cufft_layout& layout) {
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = kept_.find(layout); found != kept_.end()) {
            return found->second;
        }
    }
    auto made = std::make_shared<const cufft_plan>(*in_, layout);
    // The plans taken out are destroyed after the lock is released.
    std::map<cufft_layout, std::shared_ptr<const cufft_plan>> let_go;
    const std::lock_guard lock(mutex_);
    if (kept_.size() >= most_kept) {
        let_go.swap(kept_);
    }
    return kept_.try_emplace(layout, std::move(made)).first->second;
}

cufft_provider& cufft_provider::of(const device& where) {
    const backend::capability::libraries* const in = where.state(detail::key).driver().can().libraries;
    // Never destroyed: transforms may be pending until the process ends.
    static detail::mutex mutex;  // guards the list; a leaf in the lock order
    static auto* const all = new std::map<const backend::capability::libraries*, std::unique_ptr<cufft_provider>>();
    const std::lock_guard lock(mutex);
    std::unique_ptr<cufft_provider>& one = (*all)[in];
    if (!one) {
        one = std::make_unique<cufft_provider>(*in);
    }
    return *one;
}

}  // namespace weir::calls
