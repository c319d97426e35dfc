// Hooks in torch: every operator that threads run which take part, and what torch itself reports of streams, events and memory. Compiled
// against the headers of the torch that is installed (_torch_build.py), and loaded beside it; calls the functions of _torch_hooks.h.
//
// Operators come through a fallback of a dispatch key that torch has for such wrappers and uses for nothing itself. What an operator reads
// and writes follows from its schema: annotated arguments, and results that alias none. The accesses to arguments are reported before the
// operator runs, since it may wait for the device; those to new results afterwards.
#include "_torch_hooks.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/GPUTrace.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/PyInterpreter.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace {

constexpr c10::DispatchKey wrapper = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

const weir_torch_calls* calls = nullptr;  // set once
std::atomic<bool> watching{false};
/// Tests on machines without a GPU: the tensors of the CPU count as memory of a device, and the operators run on this stream of it. Less
/// than 0: they do not.
std::atomic<std::int64_t> pretended{-1};
std::atomic<bool> knows_host_memory{false};  // memory of the host that a stream has used
thread_local std::uint64_t noted = 0;        // operations that this thread has reported

weir_torch_stream stream_of(const c10::Stream& stream) {
    return {stream.device_index(), reinterpret_cast<std::uint64_t>(stream.native_handle())};
}
weir_torch_stream current_stream(c10::Device on) {
    if (on.is_cpu()) {
        return {0, static_cast<std::uint64_t>(pretended.load(std::memory_order_relaxed))};
    }
    return stream_of(c10::impl::VirtualGuardImpl(on.type()).getStream(on));
}
c10::Device current_device(c10::DeviceType type) { return c10::impl::VirtualGuardImpl(type).getDevice(); }

/// Memory of the host that streams have used. torch does not report when it is freed; so whether it is the same memory still is seen by
/// its storage.
class host_memory {
public:
    static host_memory& instance() {
        static auto* const one = new host_memory;
        return *one;
    }
    void add(const c10::Storage& storage) {
        const std::lock_guard lock(mutex_);
        auto* const impl = storage.unsafeGetStorageImpl();
        const auto at = reinterpret_cast<std::uint64_t>(storage.data());
        const auto found = known_.find(at);
        if (found != known_.end() && (found->second.first != impl || found->second.second.expired())) {
            calls->freed(at);
            known_.erase(found);
        }
        known_.try_emplace(at, impl, storage.getWeakStorageImpl());
        knows_host_memory.store(true, std::memory_order_relaxed);
    }
    bool has(const c10::Storage& storage) {
        const std::lock_guard lock(mutex_);
        const auto at = reinterpret_cast<std::uint64_t>(storage.data());
        const auto found = known_.find(at);
        if (found == known_.end()) {
            return false;
        }
        if (found->second.first == storage.unsafeGetStorageImpl() && !found->second.second.expired()) {
            return true;
        }
        calls->freed(at);
        known_.erase(found);
        return false;
    }
    void clear() {
        const std::lock_guard lock(mutex_);
        known_.clear();
        knows_host_memory.store(false, std::memory_order_relaxed);
    }

private:
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::pair<c10::StorageImpl*, c10::weak_intrusive_ptr<c10::StorageImpl>>> known_;
};

enum class touch : std::uint8_t { nothing, reads, writes };

/// What an operator does to its operands, by its schema.
struct rules {
    enum class kind : std::uint8_t {
        nothing,  ///< calls other operators alone, or looks at no elements
        usual,
        composite,  ///< calls other operators, or works itself
        record_stream,
        copy,
    };
    kind what = kind::nothing;
    const char* name = nullptr;
    bool takes_part_of_memory = false;  ///< which elements depends on values
    std::vector<touch> arguments;
    std::vector<touch> results;
};

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }
bool ends(std::string_view text, std::string_view with) {
    return text.size() >= with.size() && text.substr(text.size() - with.size()) == with;
}
bool writes(const c10::AliasInfo& alias) {
    return alias.isWrite() || std::any_of(alias.containedTypes().begin(), alias.containedTypes().end(),
                                          [](const c10::AliasInfo& one) { return writes(one); });
}

std::unique_ptr<const rules> rules_of(const c10::OperatorHandle& op) {
    static const std::unordered_set<std::string_view> of_metadata{
        "resize_", "resize_as_", "set_",         "_resize_output_", "_reshape_alias",
        "detach",  "detach_",    "is_same_size", "is_pinned",       "lift_fresh"};
    static const std::unordered_set<std::string_view> without_results{"_local_scalar_dense", "equal", "_assert_async",
                                                                      "is_nonzero"};
    static const std::vector<std::string_view> indexed{"index", "_index_put", "scatter",   "gather",    "masked_",
                                                       "take",  "put_",       "embedding", "_embedding"};
    const c10::FunctionSchema& schema = op.schema();
    auto made = std::make_unique<rules>();
    static auto* const names = new std::unordered_set<std::string>;
    static auto* const mutex = new std::mutex;
    {
        const std::lock_guard lock(*mutex);
        made->name = names->emplace(schema.name()).first->c_str();
    }
    std::string_view name = schema.name();
    const bool is_of_torch = begins(name, "aten::");
    if (is_of_torch) {
        name.remove_prefix(6);
    }
    if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
        (is_of_torch && of_metadata.count(name) != 0)) {
        return made;
    }
    if (is_of_torch && name == "record_stream") {
        made->what = rules::kind::record_stream;
        return made;
    }
    const auto has = [&](c10::DispatchKey key) { return op.hasKernelForDispatchKey(key); };
    const bool is_composite = (has(c10::DispatchKey::CompositeExplicitAutograd) ||
                               has(c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) &&
                              !has(c10::DispatchKey::CPU) && !has(c10::DispatchKey::CUDA);
    made->what = is_of_torch && name == "copy_" ? rules::kind::copy
                 : is_composite                 ? rules::kind::composite
                                                : rules::kind::usual;
    // These look at the shape of what they are given alone.
    const bool makes = is_of_torch && (begins(name, "new_") || ends(name, "_like"));
    const bool leaves_empty =
        is_of_torch && (begins(name, "empty") || begins(name, "new_empty") || begins(name, "_empty"));
    made->takes_part_of_memory = is_of_torch && std::any_of(indexed.begin(), indexed.end(),
                                                            [&](std::string_view one) { return begins(name, one); });
    bool has_writes = false;
    for (const c10::Argument& one : schema.arguments()) {
        const c10::AliasInfo* const alias = one.alias_info();
        touch what = touch::nothing;
        if (alias == nullptr) {
            what = makes ? touch::nothing : touch::reads;
        } else if (writes(*alias)) {
            what = touch::writes;
            has_writes = true;
        }
        made->arguments.push_back(what);
    }
    bool has_results = false;
    for (const c10::Argument& one : schema.returns()) {
        const bool is_new = one.alias_info() == nullptr && !leaves_empty;
        made->results.push_back(is_new ? touch::writes : touch::nothing);
        has_results = has_results || one.type()->isSubtypeOf(*c10::TensorType::get()) ||
                      one.type()->kind() == c10::TypeKind::ListType;
    }
    if (is_of_torch && !has_writes && !has_results && without_results.count(name) == 0) {
        made->what = rules::kind::nothing;  // such as the size of a tensor
    }
    return made;
}

const rules& known_rules(const c10::OperatorHandle& op) {
    thread_local std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<const rules>> known;
    std::unique_ptr<const rules>& one = known[&op.schema()];
    if (one == nullptr) {
        one = rules_of(op);
    }
    return *one;
}

/// The accesses of one operator, those on each device by themselves.
class accesses {
public:
    explicit accesses(const rules& of) : of_(&of) {}

    void add(const c10::IValue& operand, touch what) {
        if (what == touch::nothing) {
            return;
        }
        if (operand.isTensor()) {
            add(operand.toTensor(), what);
        } else if (operand.isTensorList()) {
            for (const at::Tensor& one : operand.toTensorVector()) {
                add(one, what);
            }
        } else if (operand.isList()) {
            for (const c10::IValue& one : operand.toListRef()) {
                if (one.isTensor()) {
                    add(one.toTensor(), what);
                }
            }
        }
    }
    /// As for `add`; also memory of the host, which the stream uses if the copy does not wait.
    void add_copied(const at::Tensor& tensor, touch what, bool is_later) {
        if (is_later && tensor.defined() && tensor.device().is_cpu() && tensor.is_pinned()) {
            host_memory::instance().add(tensor.storage());
            by_stream_of_host_.push_back({tensor, what});
        } else {
            add(tensor, what);
        }
    }
    void report() {
        for (const kept& one : all_) {
            if (one.is_reported) {
                continue;
            }
            std::vector<weir_torch_access> found;
            for (kept& other : all_) {
                if (!other.is_reported && other.tensor.device() == one.tensor.device()) {
                    found.push_back(described(other));
                    other.is_reported = true;
                }
            }
            for (const kept& other : by_stream_of_host_) {
                found.push_back(described(other));
            }
            by_stream_of_host_.clear();
            report_on(one.tensor.device(), found);
        }
        for (const kept& one : of_host_) {
            const weir_torch_access what = described(one);
            calls->host_access(of_->name, &what);
        }
        all_.clear();  // the operator may look at how many others have its operands
        of_host_.clear();
    }

private:
    struct kept {
        at::Tensor tensor;
        touch what;
        bool is_reported = false;
    };

    void add(const at::Tensor& tensor, touch what) {
        if (!tensor.defined()) {
            return;
        }
        c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
        const c10::Device device = impl->device();
        if (device.is_cpu() && pretended.load(std::memory_order_relaxed) >= 0) {
            if (impl->has_storage() && impl->numel() > 0) {
                host_memory::instance().add(tensor.storage());
                all_.push_back({tensor, what});
            }
            return;
        }
        if (device.is_cpu()) {
            if (knows_host_memory.load(std::memory_order_relaxed) && impl->has_storage() &&
                host_memory::instance().has(tensor.storage())) {
                of_host_.push_back({tensor, what});
            }
            return;
        }
        if (!device.is_cuda()) {
            return;
        }
        if (!impl->has_storage() || impl->key_set().has(c10::DispatchKey::Python) || impl->layout() != c10::kStrided) {
            calls->unseen(
                "tensors without memory of their own (sparse ones, and those of subclasses that wrap others)");
            return;
        }
        if (impl->numel() > 0) {
            all_.push_back({tensor, what});
        }
    }
    [[nodiscard]] weir_torch_access described(const kept& one) const {
        const c10::Storage& storage = one.tensor.storage();
        const auto item = static_cast<std::int32_t>(one.tensor.itemsize());
        return {reinterpret_cast<std::uint64_t>(storage.data()),
                storage.nbytes(),
                static_cast<std::uint64_t>(one.tensor.storage_offset()) * static_cast<std::uint64_t>(item),
                one.tensor.sizes().data(),
                one.tensor.strides().data(),
                static_cast<std::int32_t>(one.tensor.dim()),
                item,
                one.what == touch::writes ? 1 : 0,
                of_->takes_part_of_memory ? 1 : 0};
    }
    void report_on(c10::Device device, const std::vector<weir_torch_access>& found) const {
        if (device.is_cuda()) {
            const c10::impl::VirtualGuardImpl guard(device.type());
            if (guard.isStreamCapturing(guard.getStream(device))) {
                calls->unseen("operators that are captured into a CUDA graph, and what its replays do");
                return;
            }
        }
        calls->operation(of_->name, current_stream(device), found.data(), found.size());
        ++noted;
    }

    const rules* of_;
    std::vector<kept> all_;
    std::vector<kept> by_stream_of_host_;
    std::vector<kept> of_host_;
};

void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const c10::DispatchKeySet rest = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, wrapper);
    if (!watching.load(std::memory_order_relaxed)) {
        op.redispatchBoxed(rest, stack);
        return;
    }
    const rules& of = known_rules(op);
    if (of.what == rules::kind::nothing) {
        op.redispatchBoxed(rest, stack);
        return;
    }
    const std::size_t count = op.schema().arguments().size();
    const auto argument = [&](std::size_t i) -> const c10::IValue& { return torch::jit::peek(*stack, i, count); };
    if (of.what == rules::kind::record_stream) {
        const at::Tensor tensor = argument(0).toTensor();
        if (tensor.has_storage() && tensor.is_cuda() && argument(1).isStream()) {
            calls->kept_until(reinterpret_cast<std::uint64_t>(tensor.storage().data()),
                              stream_of(argument(1).toStream()));
        }
        op.redispatchBoxed(rest, stack);
        return;
    }
    accesses before(of);
    if (of.what == rules::kind::copy) {
        const bool is_later = argument(2).toBool();
        before.add_copied(argument(0).toTensor(), touch::writes, is_later);
        before.add_copied(argument(1).toTensor(), touch::reads, is_later);
    } else {
        for (std::size_t i = 0; i < count; ++i) {
            before.add(argument(i), of.arguments[i]);
        }
    }
    const std::uint64_t noted_before = noted;
    if (of.what != rules::kind::composite) {
        before.report();
    }
    op.redispatchBoxed(rest, stack);
    if (of.what == rules::kind::composite) {
        if (noted != noted_before) {
            return;  // the operators that it called have reported what they do
        }
        before.report();
    }
    accesses after(of);
    const std::size_t made = of.results.size();
    for (std::size_t i = 0; i < made; ++i) {
        after.add(torch::jit::peek(*stack, i, made), of.results[i]);
    }
    after.report();
}

/// What torch reports of streams, events and memory. It takes the interface of an interpreter of Python for that, of which it calls these
/// functions alone.
struct reports final : c10::impl::PyInterpreterVTable {
    [[noreturn]] static void refuse() { std::abort(); }

    std::string name() const override { return "weir"; }
    void incref(PyObject*) const override { refuse(); }
    void decref(PyObject*) const override { refuse(); }
    bool try_incref(const c10::impl::PyObjectSlot&) const override { refuse(); }
    size_t refcnt(PyObject*) const override { refuse(); }
    c10::intrusive_ptr<c10::TensorImpl> detach(const c10::TensorImpl*) const override { refuse(); }
    void dispatch(const c10::OperatorHandle&, torch::jit::Stack*) const override { refuse(); }
    void reportErrorCallback(PyObject*, c10::DispatchKey) const override { refuse(); }
    void python_op_registration_trampoline(const c10::OperatorHandle&, c10::DispatchKey, c10::DispatchKeySet,
                                           torch::jit::Stack*, bool, bool) const override {
        refuse();
    }
    void throw_abstract_impl_not_imported_error(std::string, const char*, const char*) const override { refuse(); }
    void python_dispatcher(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*) const override {
        refuse();
    }
    bool is_contiguous(const c10::TensorImpl*, at::MemoryFormat) const override { refuse(); }
    c10::SymBool sym_is_contiguous(const c10::TensorImpl*, at::MemoryFormat) const override { refuse(); }
    bool is_strides_like(const c10::TensorImpl*, at::MemoryFormat) const override { refuse(); }
    bool is_non_overlapping_and_dense(const c10::TensorImpl*) const override { refuse(); }
    c10::Device device(const c10::TensorImpl*) const override { refuse(); }
    int64_t dim(const c10::TensorImpl*) const override { refuse(); }
    c10::IntArrayRef strides(const c10::TensorImpl*) const override { refuse(); }
    c10::IntArrayRef sizes(const c10::TensorImpl*) const override { refuse(); }
    c10::SymIntArrayRef sym_sizes(const c10::TensorImpl*) const override { refuse(); }
    c10::Layout layout(const c10::TensorImpl*) const override { refuse(); }
    int64_t numel(const c10::TensorImpl*) const override { refuse(); }
    c10::SymInt sym_numel(const c10::TensorImpl*) const override { refuse(); }
    c10::SymIntArrayRef sym_strides(const c10::TensorImpl*) const override { refuse(); }
    c10::SymInt sym_storage_offset(const c10::TensorImpl*) const override { refuse(); }
    void reset_backward_hooks(const c10::TensorImpl*) const override { refuse(); }

    static bool watches() { return watching.load(std::memory_order_relaxed); }
    static weir_torch_stream on(c10::DeviceType type, uintptr_t stream) {
        return {current_device(type).index(), stream};
    }

    void trace_gpu_event_creation(c10::DeviceType, uintptr_t) const override {}
    void trace_gpu_event_deletion(c10::DeviceType, uintptr_t event) const override {
        if (watches()) {
            calls->event_gone(event);
        }
    }
    void trace_gpu_event_record(c10::DeviceType type, uintptr_t event, uintptr_t stream) const override {
        if (watches()) {
            calls->event_recorded(event, on(type, stream));
        }
    }
    void trace_gpu_event_wait(c10::DeviceType type, uintptr_t event, uintptr_t stream) const override {
        if (watches()) {
            calls->stream_waits(event, on(type, stream));
        }
    }
    void trace_gpu_memory_allocation(c10::DeviceType type, uintptr_t address) const override {
        if (watches()) {
            calls->allocated(address, current_stream(current_device(type)));
        }
    }
    void trace_gpu_memory_deallocation(c10::DeviceType, uintptr_t address) const override {
        if (watches()) {
            calls->freed(address);
        }
    }
    void trace_gpu_stream_creation(c10::DeviceType, uintptr_t) const override {}
    void trace_gpu_device_synchronization(c10::DeviceType type) const override {
        if (watches()) {
            calls->device_synchronized(current_device(type).index());
        }
    }
    void trace_gpu_stream_synchronization(c10::DeviceType type, uintptr_t stream) const override {
        if (watches()) {
            calls->stream_synchronized(on(type, stream));
        }
    }
    void trace_gpu_event_synchronization(c10::DeviceType, uintptr_t event) const override {
        if (watches()) {
            calls->event_synchronized(event);
        }
    }
};

}  // namespace

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericWrapper, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run>()); }

extern "C" {

__attribute__((visibility("default"))) int weir_torch_install(const weir_torch_calls* to) {
    calls = to;
    static const reports table;
    static const c10::impl::PyInterpreter interpreter(&table);
    c10::impl::GPUTrace::set_trace(&interpreter);  // the first caller's counts
    return c10::impl::GPUTrace::get_trace() == &interpreter ? 1 : 0;
}

__attribute__((visibility("default"))) void weir_torch_watch(int on) {
    watching.store(on != 0);
    host_memory::instance().clear();
}

__attribute__((visibility("default"))) void weir_torch_thread(int on) {
    thread_local int parts = 0;  // checks that the thread takes part in
    parts += on != 0 ? 1 : -1;
    c10::impl::tls_set_dispatch_key_included(wrapper, parts > 0);
}

__attribute__((visibility("default"))) void weir_torch_event_done(uint64_t event) {
    if (watching.load(std::memory_order_relaxed)) {
        calls->event_synchronized(event);
    }
}

__attribute__((visibility("default"))) void weir_torch_stream_done(int32_t device, uint64_t stream) {
    if (watching.load(std::memory_order_relaxed)) {
        calls->stream_synchronized({device, stream});
    }
}

__attribute__((visibility("default"))) void weir_torch_pretend(int64_t stream) { pretended.store(stream); }

__attribute__((visibility("default"))) const weir_torch_calls* weir_torch_installed(void) { return calls; }

}  // extern "C"
