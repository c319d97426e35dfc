// Hooks in torch: every operator that threads run which take part, and what torch itself reports of streams, events and memory. Compiled
// against the headers of the torch that is installed (_torch_build.py), and loaded beside it; calls the functions of _torch_hooks.h.
//
// Operators come through a fallback of a dispatch key that torch has for such wrappers and uses for nothing itself. What an operator reads
// and writes follows from its schema: annotated arguments, and results that alias none. Its accesses are reported once it has run; those to
// its arguments before, if it waits, records an event or calls another operator.
#include "_torch_hooks.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/GPUTrace.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/PyInterpreter.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/SmallVector.h>
#include <torch/library.h>

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace {

constexpr c10::DispatchKey wrapper = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

const weir_torch_calls* calls = nullptr;        // set once
const weir_torch_ordering* ordering = nullptr;  // the same
std::atomic<bool> watching{false};
std::atomic<bool> keeps_order{false};
thread_local bool is_our_own = false;  // what torch reports now
/// Tests on machines without a GPU: the tensors of the CPU count as memory of a device, and the operators run on this stream of it. Less
/// than 0: they do not.
std::atomic<std::int64_t> pretended{-1};
std::atomic<bool> knows_host_memory{false};  // memory of the host that a stream has used
thread_local std::uint64_t noted = 0;        // operations that this thread has reported

weir_torch_stream stream_of(const c10::Stream& stream) {
    return {stream.device_index(), reinterpret_cast<std::uint64_t>(stream.native_handle())};
}
bool is_pretended() { return pretended.load(std::memory_order_relaxed) >= 0; }

void tell_unseen(const char* what) {
    if (watching.load(std::memory_order_relaxed)) {
        calls->unseen(what);
    }
    if (keeps_order.load(std::memory_order_relaxed)) {
        ordering->unseen(what);
    }
}

/// The streams that operators have run on, by device and handle.
class streams {
public:
    static void add(const c10::Stream& stream, const weir_torch_stream& known_as) {
        thread_local std::optional<c10::Stream> last;
        if (last != stream) {
            const std::lock_guard lock(mutex());
            all().insert_or_assign({known_as.device, known_as.handle}, stream);
            last = stream;
        }
    }
    static c10::Stream get(const weir_torch_stream& which) {
        const std::lock_guard lock(mutex());
        return all().at({which.device, which.handle});
    }

private:
    static std::mutex& mutex() {
        static auto* const one = new std::mutex;
        return *one;
    }
    static std::map<std::pair<std::int32_t, std::uint64_t>, c10::Stream>& all() {
        static auto* const one = new std::map<std::pair<std::int32_t, std::uint64_t>, c10::Stream>;
        return *one;
    }
};

weir_torch_stream current_stream(c10::Device on) {
    if (const std::int64_t stream = pretended.load(std::memory_order_relaxed); stream >= 0) {
        return {0, static_cast<std::uint64_t>(stream)};
    }
    const c10::Stream stream = c10::impl::VirtualGuardImpl(on.type()).getStream(on);
    const weir_torch_stream known_as = stream_of(stream);
    if (keeps_order.load(std::memory_order_relaxed)) {
        streams::add(stream, known_as);
    }
    return known_as;
}
c10::DeviceIndex current_device(c10::DeviceType type) {
    return is_pretended() ? c10::DeviceIndex{0} : c10::impl::VirtualGuardImpl(type).getDevice().index();
}

/// Whether a stream is being captured into a graph, by CUDA's driver, which torch has loaded. Also true for the legacy stream while others
/// are captured: it must not be used then.
bool is_capturing(const weir_torch_stream& stream) {
    using ask_driver = int (*)(void*, int*);
    static const auto ask = [] {
        void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        return reinterpret_cast<ask_driver>(driver == nullptr ? nullptr : dlsym(driver, "cuStreamIsCapturing"));
    }();
    int status = 0;
    return ask != nullptr && (ask(reinterpret_cast<void*>(stream.handle), &status) != 0 || status != 0);
}

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
            freed(at);
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
        freed(at);
        known_.erase(found);
        return false;
    }
    void clear() {
        const std::lock_guard lock(mutex_);
        known_.clear();
        knows_host_memory.store(false, std::memory_order_relaxed);
    }

private:
    static void freed(std::uint64_t at) {
        calls->freed(at);
        ordering->freed(at);
    }

    std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::pair<c10::StorageImpl*, c10::weak_intrusive_ptr<c10::StorageImpl>>> known_;
};

enum class touch : std::uint8_t {
    nothing,
    reads,
    writes,
    made,   ///< a new result
    wrote,  ///< a result that is a written argument, which may have got other memory
};

/// What an operator does to its operands, by its schema.
struct rules {
    enum class kind : std::uint8_t {
        nothing,  ///< calls other operators alone, or looks at no elements
        usual,
        composite,  ///< calls other operators, or works itself
        record_stream,
        copy,
        collective,  ///< uses its operands on a stream of its own
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
    // Views, and changes of shape, that schemas do not tell from others.
    static const std::unordered_set<std::string_view> of_metadata{
        "resize_",      "resize_as_",   "set_",         "_resize_output_", "_reshape_alias",
        "detach",       "detach_",      "is_same_size", "is_pinned",       "lift_fresh",
        "_unsafe_view", "unsafe_split", "unsafe_chunk", "as_strided_",     "unsafe_split_with_sizes",
        "squeeze_",     "unsqueeze_",   "t_",           "transpose_",      "swapaxes_",
        "swapdims_",    "lift",         "rename_",      "requires_grad_"};
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
    if (begins(name, "c10d::") || begins(name, "_c10d_functional::")) {
        made->what = rules::kind::collective;
        return made;
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
        const c10::AliasInfo* const alias = one.alias_info();
        const bool is_new = alias == nullptr && !leaves_empty;
        made->results.push_back(is_new                               ? touch::made
                                : alias != nullptr && writes(*alias) ? touch::wrote
                                                                     : touch::nothing);
        has_results = has_results || one.type()->isSubtypeOf(*c10::TensorType::get()) ||
                      one.type()->kind() == c10::TypeKind::ListType;
    }
    const auto is_nothing = [](touch one) { return one == touch::nothing; };
    const bool touches_nothing = std::all_of(made->arguments.begin(), made->arguments.end(), is_nothing) &&
                                 std::all_of(made->results.begin(), made->results.end(), is_nothing);
    // Such as a view, or the size of a tensor.
    if (touches_nothing || (is_of_torch && !has_writes && !has_results && without_results.count(name) == 0)) {
        made->what = rules::kind::nothing;
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

/// Operators of torch that do nothing to memory themselves need not come here, which saves their calls the most of what it costs.
void pass_by_what_does_nothing() {
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
        const auto op = dispatcher.findSchema(name);
        if (op && begins(name.name, "aten::") && rules_of(*op)->what == rules::kind::nothing) {
            static auto* const kept = new std::vector<c10::RegistrationHandleRAII>;
            kept->push_back(dispatcher.registerImpl(name, wrapper, c10::KernelFunction::makeFallthrough(), std::nullopt,
                                                    nullptr, "weir"));
        }
    }
}

/// One operator that runs in this thread, and its accesses that are not reported yet. Holds no reference to tensors, since operators may
/// look at how many there are.
class running {
public:
    explicit running(const rules& of) : of_(&of), outer_(innermost) {
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
    /// As for `add`; also memory of the host, which the stream uses if the copy does not wait.
    void add_copied(const at::Tensor& tensor, touch what, bool is_later) {
        if (is_later && tensor.defined() && tensor.device().is_cpu() && tensor.is_pinned()) {
            host_memory::instance().add(tensor.storage());
            note(tensor, what, by_any_device);
        } else {
            add(tensor, what);
        }
    }
    /// The operator is about to run: streams, and the host, wait for what it must come after.
    void begin() {
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
    void end(std::size_t first) {
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

    void report() {
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
    static thread_local running* innermost;
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
    static std::optional<weir_torch_stream> stream_on(int by) {
        const weir_torch_stream on =
            current_stream(c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(by)));
        if (!is_pretended() && is_capturing(on)) {
            tell_unseen("operators that are captured into a CUDA graph, and what its replays do");
            return std::nullopt;
        }
        return on;
    }
    void begin_on(int by, bool has_no_operands = false) {
        thread_local weir_torch_stream last{-1, 0};
        const std::optional<weir_torch_stream> stream = stream_on(by);
        if (!stream) {
            return;
        }
        const weir_torch_stream on = *stream;
        if (last.device >= 0 && (last.device != on.device || last.handle != on.handle)) {
            ordering->leaves(last);
        }
        last = on;
        c10::SmallVector<weir_torch_access, 8> operands;
        if (!has_no_operands) {
            operands = those_by(by, 0);
        }
        begun_.push_back({by, on, ordering->begins(on, operands.data(), operands.size())});
    }

    void add(const at::Tensor& tensor, touch what) {
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
        const bool stands_for_device = device.is_cpu() && is_pretended();
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
    running* outer_;
    c10::SmallVector<begun, 2> begun_;
    c10::SmallVector<access, 8> all_;
    c10::SmallVector<std::int64_t, 32> numbers_;  ///< sizes and strides of accesses that are not contiguous
    weir_torch_place place_{};
    bool has_place_ = false;
};
thread_local running* running::innermost = nullptr;

void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const c10::DispatchKeySet rest = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, wrapper);
    const bool orders = keeps_order.load(std::memory_order_relaxed);
    if (!orders && !watching.load(std::memory_order_relaxed)) {
        op.redispatchBoxed(rest, stack);
        return;
    }
    const rules& of = known_rules(op);
    if (of.what == rules::kind::nothing) {
        op.redispatchBoxed(rest, stack);
        return;
    }
    if (of.what == rules::kind::record_stream) {
        const at::Tensor& tensor = torch::jit::peek(*stack, 0, 2).toTensor();
        const c10::IValue& stream = torch::jit::peek(*stack, 1, 2);
        if (tensor.has_storage() && tensor.is_cuda() && stream.isStream()) {
            running::report_pending();
            calls->kept_until(reinterpret_cast<std::uint64_t>(tensor.storage().data()), stream_of(stream.toStream()));
        }
        op.redispatchBoxed(rest, stack);
        return;
    }
    if (of.what == rules::kind::collective) {
        tell_unseen("collectives of torch.distributed, which run on streams of their own");
        op.redispatchBoxed(rest, stack);
        return;
    }
    const std::size_t count = of.arguments.size();
    const auto argument = [&](std::size_t i) -> const c10::IValue& { return torch::jit::peek(*stack, i, count); };
    const std::uint64_t noted_before = noted;
    running one(of);
    if (of.what == rules::kind::copy) {
        const bool is_later = argument(2).toBool();
        one.add_copied(argument(0).toTensor(), touch::writes, is_later);
        one.add_copied(argument(1).toTensor(), touch::reads, is_later);
    } else {
        for (std::size_t i = 0; i < count; ++i) {
            one.add(argument(i), of.arguments[i]);
        }
    }
    if (orders) {
        one.begin();
    }
    op.redispatchBoxed(rest, stack);
    if (of.what == rules::kind::composite && noted != noted_before && !orders) {
        return;  // the operators that it called have reported what they do
    }
    const std::size_t first = one.size();
    const std::size_t made = of.results.size();
    for (std::size_t i = 0; i < made; ++i) {
        one.add(torch::jit::peek(*stack, i, made), of.results[i]);
    }
    if (orders) {
        one.end(first);
    }
    if (of.what != rules::kind::composite || noted == noted_before) {
        one.report();
    }
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

    static bool watches() { return watching.load(std::memory_order_relaxed) && !is_our_own; }
    static bool orders() { return keeps_order.load(std::memory_order_relaxed) && !is_our_own; }
    static weir_torch_stream on(c10::DeviceType type, uintptr_t stream) { return {current_device(type), stream}; }

    void trace_gpu_event_creation(c10::DeviceType, uintptr_t) const override {}
    void trace_gpu_event_deletion(c10::DeviceType, uintptr_t event) const override {
        if (watches()) {
            calls->event_gone(event);
        }
        if (orders()) {
            ordering->event_gone(event);
        }
    }
    void trace_gpu_event_record(c10::DeviceType type, uintptr_t event, uintptr_t stream) const override {
        if (watches()) {
            running::report_pending();
            calls->event_recorded(event, on(type, stream), running::place());
        }
        if (orders()) {
            ordering->event_recorded(event, on(type, stream));
        }
    }
    void trace_gpu_event_wait(c10::DeviceType type, uintptr_t event, uintptr_t stream) const override {
        if (watches()) {
            running::report_pending();
            calls->stream_waits(event, on(type, stream), running::place());
        }
        if (orders()) {
            ordering->stream_waits(event, on(type, stream));
        }
    }
    void trace_gpu_memory_allocation(c10::DeviceType type, uintptr_t address) const override {
        const bool is_watched = watches();
        const bool is_ordered = orders();
        if (!is_watched && !is_ordered) {
            return;
        }
        const weir_torch_stream stream = current_stream(c10::Device(type, current_device(type)));
        if (is_watched) {
            calls->allocated(address, stream, running::place());
        }
        if (is_ordered) {
            ordering->allocated(address, stream);
        }
    }
    void trace_gpu_memory_deallocation(c10::DeviceType, uintptr_t address) const override {
        if (watches()) {
            running::report_pending(address);
            calls->freed(address);
        }
        if (orders()) {
            ordering->freed(address);
        }
    }
    void trace_gpu_stream_creation(c10::DeviceType, uintptr_t) const override {}
    void trace_gpu_device_synchronization(c10::DeviceType type) const override {
        if (watches()) {
            running::report_pending();
            calls->device_synchronized(current_device(type), running::place());
        }
        if (orders()) {
            ordering->device_synchronized(current_device(type));
        }
    }
    void trace_gpu_stream_synchronization(c10::DeviceType type, uintptr_t stream) const override {
        if (watches()) {
            running::report_pending();
            calls->stream_synchronized(on(type, stream), running::place());
        }
        if (orders()) {
            ordering->stream_synchronized(on(type, stream));
        }
    }
    void trace_gpu_event_synchronization(c10::DeviceType, uintptr_t event) const override {
        if (watches()) {
            running::report_pending();
            calls->event_synchronized(event, running::place());
        }
        if (orders()) {
            ordering->event_synchronized(event);
        }
    }
};

/// For tests without a GPU: events that do nothing, and that torch would report.
struct pretended_events {
    static inline std::atomic<bool> fail{false};
    static inline std::atomic<std::uint64_t> device_waits{0};

    static const c10::impl::PyInterpreterVTable& torch_reports() { return **c10::impl::GPUTrace::get_trace(); }
    static std::uintptr_t address(void* event) { return reinterpret_cast<std::uintptr_t>(event); }
};

/// Calls `act()`, whose effects are not reported, and returns 0; 1 if it throws.
template <class Act>
int on_our_own(Act&& act) {
    is_our_own = true;
    int failed = 0;
    try {
        act();
    } catch (...) {
        failed = 1;
    }
    is_our_own = false;
    return failed;
}
c10::impl::VirtualGuardImpl guard() { return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA); }

int record_event(weir_torch_stream on, void** event) {
    return on_our_own([&] {
        if (!is_pretended()) {
            const c10::Stream stream = streams::get(on);
            guard().record(event, stream, stream.device_index(), c10::EventFlag::PYTORCH_DEFAULT);
            return;
        }
        if (pretended_events::fail) {
            throw std::runtime_error("as the test wants");
        }
        *event = *event == nullptr ? new char : *event;
        pretended_events::torch_reports().trace_gpu_event_record(c10::DeviceType::CUDA,
                                                                 pretended_events::address(*event), on.handle);
    });
}
int wait_for_event(weir_torch_stream on, void* event) {
    return on_our_own([&] {
        if (!is_pretended()) {
            guard().block(event, streams::get(on));
        } else {
            pretended_events::torch_reports().trace_gpu_event_wait(c10::DeviceType::CUDA,
                                                                   pretended_events::address(event), on.handle);
        }
    });
}
int synchronize_event(void* event) {
    return is_pretended() ? 0 : on_our_own([&] { guard().synchronizeEvent(event); });
}
int is_event_complete(void* event, int* answer) {
    *answer = 0;
    return is_pretended() ? 0 : on_our_own([&] { *answer = guard().queryEvent(event) ? 1 : 0; });
}
void destroy_event(void* event) {
    if (is_pretended()) {
        delete static_cast<char*>(event);
    } else {
        on_our_own([&] { guard().destroyEvent(event, guard().getDevice().index()); });
    }
}
int synchronize_device(int32_t device) {
    if (is_pretended()) {
        ++pretended_events::device_waits;
        return 0;
    }
    return on_our_own([&] { guard().synchronizeDevice(static_cast<c10::DeviceIndex>(device)); });
}
constexpr weir_torch_events own_events{record_event,      wait_for_event, synchronize_event,
                                       is_event_complete, destroy_event,  synchronize_device};

}  // namespace

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericWrapper, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run>()); }

extern "C" {

__attribute__((visibility("default"))) int weir_torch_install(const weir_torch_calls* to,
                                                              const weir_torch_ordering* by) {
    calls = to;
    ordering = by;
    static const reports table;
    static const c10::impl::PyInterpreter interpreter(&table);
    c10::impl::GPUTrace::set_trace(&interpreter);  // the first caller's counts
    if (c10::impl::GPUTrace::get_trace() != &interpreter) {
        return 0;
    }
    pass_by_what_does_nothing();
    // In the child of a fork nothing is watched or ordered: other threads may have held locks, and the devices are the parent's.
    pthread_atfork(nullptr, nullptr, [] {
        watching.store(false);
        keeps_order.store(false);
    });
    return 1;
}

__attribute__((visibility("default"))) void weir_torch_watch(int on) {
    watching.store(on != 0);
    if (!keeps_order) {
        host_memory::instance().clear();
    }
}

__attribute__((visibility("default"))) void weir_torch_order(int on) {
    keeps_order.store(on != 0);
    if (!watching) {
        host_memory::instance().clear();
    }
}

__attribute__((visibility("default"))) const weir_torch_events* weir_torch_own_events(void) { return &own_events; }

__attribute__((visibility("default"))) void weir_torch_thread(int on) {
    thread_local int parts = 0;  // checks that the thread takes part in
    parts += on != 0 ? 1 : -1;
    c10::impl::tls_set_dispatch_key_included(wrapper, parts > 0);
}

__attribute__((visibility("default"))) void weir_torch_event_done(uint64_t event) {
    if (watching.load(std::memory_order_relaxed)) {
        calls->event_synchronized(event, running::place());
    }
    if (keeps_order.load(std::memory_order_relaxed)) {
        ordering->event_synchronized(event);
    }
}

__attribute__((visibility("default"))) void weir_torch_stream_done(int32_t device, uint64_t stream) {
    if (watching.load(std::memory_order_relaxed)) {
        calls->stream_synchronized({device, stream}, running::place());
    }
    if (keeps_order.load(std::memory_order_relaxed)) {
        ordering->stream_synchronized({device, stream});
    }
}

__attribute__((visibility("default"))) void weir_torch_pretend(int64_t stream) { pretended.store(stream); }

__attribute__((visibility("default"))) void weir_torch_fail(int fails) {
    pretended_events::fail.store(fails != 0);
    pretended_events::device_waits.store(0);
}

__attribute__((visibility("default"))) uint64_t weir_torch_device_waits(void) {
    return pretended_events::device_waits.load();
}

__attribute__((visibility("default"))) void weir_torch_report(int32_t kind, uint64_t what, uint64_t stream) {
    constexpr c10::DeviceType type = c10::DeviceType::CUDA;
    const c10::impl::PyInterpreter& to = *c10::impl::GPUTrace::get_trace();
    switch (kind) {
        case WEIR_TORCH_ALLOCATED:
            to->trace_gpu_memory_allocation(type, what);
            break;
        case WEIR_TORCH_KEPT:
            calls->kept_until(what, {0, stream});
            break;
        case WEIR_TORCH_FREED:
            to->trace_gpu_memory_deallocation(type, what);
            break;
        case WEIR_TORCH_RECORDED:
            to->trace_gpu_event_record(type, what, stream);
            break;
        case WEIR_TORCH_WAITS:
            to->trace_gpu_event_wait(type, what, stream);
            break;
        case WEIR_TORCH_EVENT_GONE:
            to->trace_gpu_event_deletion(type, what);
            break;
        case WEIR_TORCH_EVENT_SYNCHRONIZED:
            to->trace_gpu_event_synchronization(type, what);
            break;
        case WEIR_TORCH_STREAM_SYNCHRONIZED:
            to->trace_gpu_stream_synchronization(type, stream);
            break;
        case WEIR_TORCH_DEVICE_SYNCHRONIZED:
            to->trace_gpu_device_synchronization(type);
            break;
        default:
            break;
    }
}

}  // extern "C"
