// The operators that threads run, and their accesses.
#pragma once

#include "hooks.h"
#include "host_memory.hpp"
#include "rules.hpp"
#include "state.hpp"

#include <ATen/ATen.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace weir_torch {

/// One operator that runs in this thread, and its accesses that are not reported yet. Holds no reference to tensors, since operators may
/// look at how many there are. Its larger functions are not inlined, since operators.hpp uses it for many operators.
class running {
public:
    explicit running(const rules& of, std::optional<weir_torch_stream> on = std::nullopt)
        : of_(&of), on_(on), outer_(innermost) {
        report_pending();
        innermost = this;
    }
    ~running() {
        end(all_.size());
        innermost = outer_;
    }
    running(const running&) = delete;
    running& operator=(const running&) = delete;

    /// Reports what the thread's operator does before what happens next.
    static void report_pending() {
        // An operator that only calls others does nothing itself.
        if (innermost != nullptr && innermost->of_->what != rules::kind::composite) {
            innermost->report();
        }
    }
    /// As before, if the operator uses the memory.
    static void report_pending(std::uint64_t storage) {
        if (innermost != nullptr && std::any_of(innermost->all_.begin(), innermost->all_.end(),
                                                [&](const access& one) { return one.what.storage == storage; })) {
            report_pending();
        }
    }
    /// Where the thread is.
    static weir_torch_place place() {
        if (innermost == nullptr) {
            return calls->place();
        }
        if (!innermost->has_place_) {
            innermost->place_ = calls->place();
            innermost->has_place_ = true;
        }
        return innermost->place_;
    }

    void add(const c10::IValue& operand, touch what) {
        if (what == touch::nothing) {
            return;
        }
        if (operand.isTensor()) {
            add(operand.toTensor(), what);
        } else if (operand.isList()) {
            for (const c10::IValue& one : operand.toListRef()) {
                if (one.isTensor()) {
                    add(one.toTensor(), what);
                }
            }
        }
    }
    [[gnu::noinline]] void add(const at::Tensor& tensor, touch what) {
        if (!tensor.defined()) {
            return;
        }
        const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
        const c10::Device device = impl->device();
        if (what == touch::wrote && impl->has_storage() && writes_to(impl->storage())) {
            return;
        }
        if (what == touch::made && impl->has_storage() && uses(impl->storage())) {
            return;  // a view, although the schema does not say so
        }
        // Numbers of the program stay with the host.
        const bool stands_for_device = device.is_cpu() && is_pretended() && !impl->is_wrapped_number();
        if (device.is_cpu() && !stands_for_device) {
            if (knows_host_memory.load(std::memory_order_relaxed) && impl->has_storage() &&
                host_memory::instance().has(tensor.storage())) {
                note(tensor, what, by_host);
            }
            return;
        }
        if (!device.is_cuda() && !stands_for_device) {
            return;
        }
        if (!impl->has_storage() || impl->key_set().has(c10::DispatchKey::Python) || impl->layout() != c10::kStrided) {
            tell_unseen("tensors without memory of their own (sparse ones, and those of subclasses that wrap others)");
            return;
        }
        if (impl->numel() > 0) {
            if (stands_for_device) {
                host_memory::instance().add(tensor.storage());
            }
            note(tensor, what, stands_for_device ? 0 : device.index());
        }
    }
    /// As for `add`, the operands of a copy; also memory of the host, which the stream uses if the copy does not wait.
    void add_copied(const at::Tensor& to, const at::Tensor& from, bool is_later) {
        for (const auto& [tensor, what] : {std::pair(&to, touch::writes), std::pair(&from, touch::reads)}) {
            if (is_later && tensor->defined() && tensor->device().is_cpu() && tensor->is_pinned()) {
                host_memory::instance().add(tensor->storage());
                note(*tensor, what, by_any_device);
            } else {
                add(*tensor, what);
            }
        }
    }
    /// What a kernel of another package gets.
    void add_launched(const weir_torch_operand& one) {
        const weir_torch_access& what = one.access;
        if (one.tensor != nullptr) {
            auto* const impl = static_cast<c10::TensorImpl*>(one.tensor);
            const at::Tensor tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(impl));
            const std::size_t before = all_.size();
            add(tensor, what.writes != 0 ? touch::writes : touch::reads);
            if (all_.size() != before) {
                all_.back().what.may_not_happen = what.may_not_happen;
            }
            return;
        }
        const std::size_t numbers = numbers_.size();
        numbers_.append(what.sizes, what.sizes + what.dimensions);
        numbers_.append(what.strides, what.strides + what.dimensions);
        all_.push_back({what, one.device, numbers});
    }
    /// The operator is about to run: streams, and the host, wait for what it must come after.
    [[gnu::noinline]] void begin() {
        for (access& one : all_) {
            complete(one.what, one.numbers);
            if (one.by == by_host) {
                ordering->host_needs(&one.what);
            }
        }
        for (std::size_t i = 0; i < all_.size(); ++i) {
            const int by = all_[i].by;
            if (by >= 0 && std::none_of(begun_.begin(), begun_.end(), [&](const begun& one) { return one.by == by; })) {
                begin_on(by);
            }
        }
    }
    /// It has run: from `first` on there are its results.
    [[gnu::noinline]] void end(std::size_t first) {
        for (const begun& one : begun_) {
            const c10::SmallVector<weir_torch_access, 8> results = those_by(one.by, first);
            ordering->ends(one.on, one.number, results.data(), results.size());
        }
        if (begun_.empty() && first < all_.size() && all_[first].by >= 0) {  // it has no operands
            begin_on(all_[first].by, true);
            const c10::SmallVector<weir_torch_access, 8> results = those_by(all_[first].by, first);
            if (!begun_.empty()) {
                ordering->ends(begun_.front().on, begun_.front().number, results.data(), results.size());
            }
        }
        begun_.clear();
    }
    [[nodiscard]] std::size_t size() const { return all_.size(); }

    [[gnu::noinline]] void report() {
        if (!watching.load(std::memory_order_relaxed)) {
            all_.clear();
            numbers_.clear();
            return;
        }
        for (const access& one : all_) {
            if (one.by >= 0) {
                report_on(one.by);
            }
        }
        for (access& one : all_) {
            if (one.by == by_host) {
                complete(one.what, one.numbers);
                calls->host_access(&one.what, place());
            }
        }
        all_.clear();
        numbers_.clear();
    }

private:
    static inline thread_local running* innermost = nullptr;
    /// What uses memory, where that is no device.
    static constexpr int by_any_device = -1;  ///< the one that the operator runs on
    static constexpr int by_host = -2;
    static constexpr int reported = -3;

    struct access {
        weir_torch_access what;
        int by;  ///< the index of a device, or one of the constants
        std::size_t numbers;
    };
    /// The operator on one device, while it is under way.
    struct begun {
        int by;
        weir_torch_stream on;
        std::uint64_t number;
    };

    c10::SmallVector<weir_torch_access, 8> those_by(int by, std::size_t first) {
        c10::SmallVector<weir_torch_access, 8> found;
        for (std::size_t i = first; i < all_.size(); ++i) {
            if (all_[i].by == by || (all_[i].by == by_any_device && first == 0)) {
                complete(all_[i].what, all_[i].numbers);
                found.push_back(all_[i].what);
            }
        }
        return found;
    }
    /// The stream that the operator runs on, on this device; none if it is captured.
    [[nodiscard]] std::optional<weir_torch_stream> stream_on(int by) const {
        const weir_torch_stream on =
            on_ ? *on_ : current_stream(c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(by)));
        if (!is_pretended() && is_capturing(on)) {
            tell_unseen("operators that are captured into a CUDA graph, and what its replays do");
            return std::nullopt;
        }
        return on;
    }
    void begin_on(int by, bool has_no_operands = false) {
        thread_local weir_torch_stream last{-1, 0, 0};
        thread_local std::uint64_t last_in = 0;  // of another program nothing is known, even whether it is there
        if (const std::uint64_t now = kept_in_order.load(std::memory_order_relaxed); last_in != now) {
            last_in = now;
            last.device = -1;
        }
        const std::optional<weir_torch_stream> stream = stream_on(by);
        if (!stream) {
            return;
        }
        const weir_torch_stream on = *stream;
        const bool is_other = last.device >= 0 && (last.device != on.device || last.handle != on.handle);
        if (is_other && last.may_end == 0 && (is_pretended() || !is_capturing(last))) {
            ordering->leaves(last);
        }
        last = on;
        c10::SmallVector<weir_torch_access, 8> operands;
        if (!has_no_operands) {
            operands = those_by(by, 0);
        }
        begun_.push_back({by, on, ordering->begins(on, operands.data(), operands.size())});
    }

    void note(const at::Tensor& tensor, touch what, int by) {
        const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
        const c10::Storage& storage = impl.storage();
        const auto item = static_cast<std::int64_t>(impl.itemsize());
        weir_torch_access one{};
        one.storage = reinterpret_cast<std::uint64_t>(storage.data());
        one.bytes = storage.nbytes();
        one.offset = static_cast<std::uint64_t>(impl.storage_offset() * item);
        one.writes = what == touch::reads ? 0 : 1;
        one.may_not_happen = of_->takes_part_of_memory ? 1 : 0;
        const std::size_t numbers = numbers_.size();
        if (impl.is_contiguous()) {
            one.run = impl.numel() * item;
        } else {
            one.run = item;
            one.dimensions = static_cast<std::int32_t>(impl.dim());
            numbers_.append(impl.sizes().begin(), impl.sizes().end());
            numbers_.append(impl.strides().begin(), impl.strides().end());
            for (std::size_t i = numbers_.size() - impl.strides().size(); i < numbers_.size(); ++i) {
                numbers_[i] *= item;
            }
        }
        all_.push_back({one, by, numbers});
    }
    [[nodiscard]] bool uses(const c10::Storage& storage) const {
        const auto at = reinterpret_cast<std::uint64_t>(storage.data());
        return std::any_of(all_.begin(), all_.end(), [&](const access& one) { return one.what.storage == at; });
    }
    [[nodiscard]] bool writes_to(const c10::Storage& storage) const {
        const auto at = reinterpret_cast<std::uint64_t>(storage.data());
        return std::any_of(all_.begin(), all_.end(),
                           [&](const access& one) { return one.what.storage == at && one.what.writes != 0; });
    }
    void complete(weir_torch_access& one, std::size_t numbers) const {
        one.sizes = numbers_.data() + numbers;
        one.strides = one.sizes + one.dimensions;
    }
    /// Reports the accesses that are by this device.
    void report_on(int by) {
        c10::SmallVector<weir_torch_access, 8> found;
        for (access& one : all_) {
            if (one.by == by || one.by == by_any_device) {
                complete(one.what, one.numbers);
                found.push_back(one.what);
                one.by = reported;
            }
        }
        if (const std::optional<weir_torch_stream> on = stream_on(by)) {
            calls->operation(of_->name, *on, found.data(), found.size(), place());
            ++noted;
        }
    }

    const rules* of_;
    std::optional<weir_torch_stream> on_;  ///< of a launch of another package
    running* outer_;
    c10::SmallVector<begun, 2> begun_;
    c10::SmallVector<access, 8> all_;
    c10::SmallVector<std::int64_t, 32> numbers_;  ///< sizes and strides of accesses that are not contiguous
    weir_torch_place place_{};
    bool has_place_ = false;
};

}  // namespace weir_torch
