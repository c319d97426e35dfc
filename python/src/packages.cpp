#include "packages.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "attributes.hpp"
#include "devices.hpp"
#include "exchange.hpp"
#include "interpreter.hpp"
#include "module_function.hpp"
#include "numpy.hpp"
#include "reference.hpp"
#include "torch_order.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

namespace weir::python {

namespace {

bool has_queues(const device& of) { return of.kind() == device_kind::cuda; }

/// A package by its name. weir._packages says how to ask it.
class named_package final : public package {
public:
    explicit named_package(std::string name) : name_(std::move(name)), is_torch_(name_ == "torch") {}

    [[nodiscard]] std::string_view name() const noexcept override { return name_; }

    [[nodiscard]] std::optional<stream> current_stream(device of) override {
        if (!has_queues(of)) {
            return std::nullopt;
        }
        // A thread that Python does not know has no current stream of its own and must not wait for the GIL (rule L4): the best known
        // answer is the stream that the package named last.
        if (interpreter::is_ending() || PyGILState_GetThisThreadState() == nullptr) {
            return last(of.id());
        }
        const nb::gil_scoped_acquire gil;
        if (std::optional<stream> by_table = current_by_table(of)) {
            remember(of.id(), *by_table);
            return by_table;
        }
        if (std::optional<stream> by_number = current_of_torch(of)) {
            remember(of.id(), *by_number);
            return by_number;
        }
        static constinit module_function ask("weir._packages", "current_stream_of_package");
        const nb::object found = ask.get()(name_, of.id());
        if (found.is_none()) {
            return std::nullopt;
        }
        stream current = nb::cast<stream>(found);
        remember(of.id(), current);
        return current;
    }

    [[nodiscard]] weir::detail::package_order* order() noexcept override { return torch_order(is_torch_); }

    void ask_by(const exchange::dlpack::exchange_table& table) noexcept {
        table_.store(&table, std::memory_order_release);
    }

private:
    /// With the GIL. Nothing without a table, and if it fails.
    std::optional<stream> current_by_table(const device& of) {
        const exchange::dlpack::exchange_table* const table = table_.load(std::memory_order_acquire);
        void* handle = nullptr;
        if (table == nullptr || table->current_work_stream == nullptr) {
            return std::nullopt;
        }
        if (table->current_work_stream(exchange::dlpack::device_type::cuda, of.id(), &handle) != 0) {
            forget_raised();
            return std::nullopt;
        }
        return released([&] { return stream::adopt(native_stream{handle}, of); });
    }

    /// With the GIL. By the function that torch has for compilers, which gives the handle alone: a tenth of what a stream object of torch
    /// costs. torch's streams live as long as the process, so that nothing has to be kept. Nothing if there is no such function.
    [[nodiscard]] std::optional<stream> current_of_torch(const device& of) const {
        if (!is_torch_) {
            return std::nullopt;
        }
        static const attribute_name inner("_C");
        static const attribute_name function("_cuda_getCurrentRawStream");
        const nb::handle torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
        const nb::object part = torch.is_valid() ? attribute_of(torch, inner) : nb::object();
        const nb::object ask = part.is_valid() ? attribute_of(part, function) : nb::object();
        if (!ask.is_valid()) {
            return std::nullopt;
        }
        const nb::object number = nb::steal(PyObject_CallOneArg(ask.ptr(), nb::int_(of.id()).ptr()));
        void* const handle = number.is_valid() ? PyLong_AsVoidPtr(number.ptr()) : nullptr;
        if (PyErr_Occurred() != nullptr) {
            forget_raised();
            return std::nullopt;
        }
        return released([&] { return stream::adopt(native_stream{handle}, of); });
    }

    void remember(int id, const stream& current) {
        const std::lock_guard lock(mutex_);
        last_.insert_or_assign(id, current);
    }

    std::optional<stream> last(int id) {
        const std::lock_guard lock(mutex_);
        const auto found = last_.find(id);
        return found == last_.end() ? std::nullopt : std::optional(found->second);
    }

    std::string name_;
    bool is_torch_;
    std::atomic<const exchange::dlpack::exchange_table*> table_{nullptr};  ///< of another library; release, acquire
    detail::mutex mutex_;                                                  ///< guards last_; a leaf
    std::map<int, stream> last_;
};

class package_of_queue final : public package {
public:
    package_of_queue(std::string name, nb::object queue) : name_(std::move(name)), queue_(std::move(queue)) {}

    [[nodiscard]] std::string_view name() const noexcept override { return name_; }

    /// There is no stream of Weir's for the queue: what is in it is over when this returns.
    [[nodiscard]] std::optional<stream> current_stream(device /*of*/) override {
        // A thread that Python does not know must not wait for the GIL (rule L4).
        if (!interpreter::is_ending() && PyGILState_GetThisThreadState() != nullptr) {
            const nb::gil_scoped_acquire gil;
            queue_.get().attr("wait")();
        }
        return std::nullopt;
    }

private:
    std::string name_;
    reference queue_;
};

}  // namespace

namespace {

/// The array of which an object is a view by cuda.core: its package's work counts, and not cuda.core's. No object if it is none.
nb::object exporter_of(nb::handle object) {
    static const attribute_name name_of_module("__module__");
    static const attribute_name exporter("exporting_obj");
    const nb::object module = attribute_of(object.type(), name_of_module);
    const std::optional<std::string_view> name = module.is_valid() ? text_in(module) : std::nullopt;
    return name && name->starts_with("cuda.core") ? attribute_of(object, exporter) : nb::object();
}

}  // namespace

bool is_view_of_another(nb::handle object) { return exporter_of(object).is_valid(); }

std::string package_name_of(nb::handle object) {
    if (numpy::is_array(object)) {
        return "numpy";
    }
    static const attribute_name name_of_module("__module__");
    const nb::object module = attribute_of(object.type(), name_of_module);
    if (const std::optional<std::string_view> name = module.is_valid() ? text_in(module) : std::nullopt) {
        const std::string_view first = name->substr(0, name->find('.'));
        constexpr std::string_view known[] = {"numpy", "torch", "cupy", "numba"};
        if (std::find(std::begin(known), std::end(known), first) != std::end(known)) {
            return std::string(first);
        }
    }
    if (const nb::object of = exporter_of(object); of.is_valid()) {
        return package_name_of(of);
    }
    const nb::object found(nb::module_::import_("weir._packages").attr("package_name_of")(object));
    return std::string(text_in(found).value_or("an unknown package"));
}

namespace {

std::shared_ptr<named_package> known_package(const std::string& name) {
    static detail::mutex mutex;  // guards `known`; a leaf
    static auto& known = *new std::map<std::string, std::shared_ptr<named_package>>();
    const std::lock_guard lock(mutex);
    std::shared_ptr<named_package>& one = known[name];
    if (!one) {
        one = std::make_shared<named_package>(name);
    }
    return one;
}

}  // namespace

std::shared_ptr<package> package_named(const std::string& name) { return known_package(name); }

void ask_by_table(const std::string& name, const exchange::dlpack::exchange_table& table) {
    known_package(name)->ask_by(table);
}

namespace {

/// A package that is known by the handle of its stream alone. The handle is looked up at each use (rule S5): the package may destroy the
/// stream, and then has none that Weir knows.
class package_by_handle final : public package {
public:
    package_by_handle(std::string name, const stream& of)
        : name_(std::move(name)), on_(of.device()), native_(released([&] { return native_stream{of.handle()}; })) {}

    [[nodiscard]] std::string_view name() const noexcept override { return name_; }
    [[nodiscard]] std::optional<stream> current_stream(device of) override {
        if (of != on_) {
            return std::nullopt;
        }
        try {
            return stream::adopt(native_, of);
        } catch (const argument_error&) {  // there is no such stream any more
            return std::nullopt;
        }
    }

private:
    std::string name_;
    device on_;
    native_stream native_;
};

/// A package that works on one stream.
class package_on final : public package {
public:
    package_on(std::string name, stream by) : name_(std::move(name)), by_(std::move(by)) {}

    [[nodiscard]] std::string_view name() const noexcept override { return name_; }
    [[nodiscard]] std::optional<stream> current_stream(device of) override {
        return of == by_.device() ? std::optional(by_) : std::nullopt;
    }

private:
    std::string name_;
    stream by_;
};

/// A consumer on the default stream of the thread that makes this object (handle 2), which other threads can put nothing into. For them
/// the legacy default stream stands in for it: what enters that comes after all that is in the default streams of threads, and before
/// all that enters these later.
class package_of_thread final : public package {
public:
    package_of_thread(std::string name, stream own)
        : name_(std::move(name)),
          own_(std::move(own)),
          elsewhere_(released([&] { return stream::adopt(native_stream{legacy_default}, own_.device()); })) {}

    [[nodiscard]] std::string_view name() const noexcept override { return name_; }
    [[nodiscard]] std::optional<stream> current_stream(device of) override {
        if (of != own_.device()) {
            return std::nullopt;
        }
        return std::this_thread::get_id() == thread_ ? own_ : elsewhere_;
    }

private:
    static inline void* const legacy_default = reinterpret_cast<void*>(std::uintptr_t{1});

    std::string name_;
    std::thread::id thread_ = std::this_thread::get_id();
    stream own_;
    stream elsewhere_;
};

/// Python's number for the state of a class; 0 if it has none now.
unsigned version_of(const PyTypeObject* type) noexcept {
#if PY_VERSION_HEX < 0x030d0000
    if ((type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) == 0) {
        return 0;
    }
#endif
    return type->tp_version_tag;
}

/// Remembered classes. Each has one of a few places, by its address. Entries stay for ever, so that readers need no lock; a place that is
/// taken stays so, but for a class that has changed, and of those only so many are made room for.
class array_classes {
public:
    [[nodiscard]] const array_class* find(PyTypeObject* type, unsigned version) const noexcept {
        for (std::size_t at = 0; at < tries; ++at) {
            const array_class* const known = place(type, at).load(std::memory_order_acquire);
            if (known == nullptr) {
                return nullptr;
            }
            if (known->type == type) {
                return known->version == version ? known : nullptr;
            }
        }
        return nullptr;
    }
    /// Keeps it, and its class, for ever; null, and `made` as it was, if there is no room.
    [[nodiscard]] const array_class* keep(std::unique_ptr<array_class>& made) noexcept {
        for (std::size_t at = 0; at < tries; ++at) {
            std::atomic<const array_class*>& here = place(made->type, at);
            const array_class* known = here.load(std::memory_order_acquire);
            const bool is_it = known != nullptr && known->type == made->type;
            if ((known == nullptr || (is_it && changes_.fetch_add(1, std::memory_order_relaxed) < most_changes)) &&
                here.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
                Py_INCREF(made->type);
                return made.release();
            }
            if (is_it) {
                return nullptr;
            }
        }
        return nullptr;
    }

private:
    static constexpr std::size_t places = 64;
    static constexpr std::size_t tries = 4;
    static constexpr int most_changes = 256;

    [[nodiscard]] static std::size_t index(const PyTypeObject* type, std::size_t at) noexcept {
        return (reinterpret_cast<std::uintptr_t>(type) / 64 + at) % places;
    }
    [[nodiscard]] const std::atomic<const array_class*>& place(const PyTypeObject* type,
                                                               std::size_t at) const noexcept {
        return all_[index(type, at)];
    }
    [[nodiscard]] std::atomic<const array_class*>& place(const PyTypeObject* type, std::size_t at) noexcept {
        return all_[index(type, at)];
    }

    std::array<std::atomic<const array_class*>, places> all_{};
    std::atomic<int> changes_{0};
};

std::unique_ptr<array_class> described(nb::handle object) {
    const attribute_name method("__dlpack__");
    const attribute_name device_method("__dlpack_device__");
    const nb::handle type = object.type();
    const bool speaks = attribute_of(type, method).is_valid() && attribute_of(type, device_method).is_valid();
    if (!speaks || has_arrow(object)) {
        return nullptr;
    }
    auto made = std::make_unique<array_class>();
    made->name = package_name_of(object);
    made->of = package_named(made->name);
    made->table = table_header_of(object);
    const bool is_view = is_view_of_another(object);
    if (made->table != nullptr && !is_view) {
        if (const exchange::dlpack::exchange_table* const table = exchange::readable_table(made->table)) {
            ask_by_table(made->name, *table);
        }
    }
    made->is_plain_numpy = made->table == nullptr && numpy::is_plain(type);
    made->type = Py_TYPE(object.ptr());
    // Last: to be asked for an attribute gives a class its number. Views are of a package each.
    made->version = is_view ? 0 : version_of(made->type);
    return made;
}

}  // namespace

std::shared_ptr<const array_class> array_class_of(nb::handle object) {
    static array_classes remembered;
    // What is remembered needs no count of its users.
    const auto forever = [](const array_class* one) {
        return std::shared_ptr<const array_class>(std::shared_ptr<void>(), one);
    };
    PyTypeObject* const type = Py_TYPE(object.ptr());
    if (const array_class* const known = remembered.find(type, version_of(type))) [[likely]] {
        return forever(known);
    }
    std::unique_ptr<array_class> made = described(object);
    if (!made) {
        return nullptr;
    }
    if (made->version != 0) {
        if (const array_class* const kept = remembered.keep(made)) {
            return forever(kept);
        }
    }
    return made;
}

std::vector<std::shared_ptr<package>> packages_with_streams() {
    static constinit module_function names("weir._packages", "names_with_streams");
    std::vector<std::shared_ptr<package>> found;
    for (const nb::handle name : names.get()()) {
        found.push_back(package_named(nb::cast<std::string>(name)));
    }
    return found;
}

std::shared_ptr<package> package_of(nb::handle object) { return package_named(package_name_of(object)); }

std::shared_ptr<package> package_on_stream(std::string name, const stream& on, nb::handle given) {
    std::int64_t number = 0;
    if (PyLong_Check(given.ptr()) != 0 && nb::try_cast(given, number) && number > 2) {
        return std::make_shared<package_by_handle>(std::move(name), on);
    }
    if (released([&] { return on.handle(); }) == reinterpret_cast<void*>(std::uintptr_t{2})) {
        return std::make_shared<package_of_thread>(std::move(name), on);
    }
    return package_working_on(std::move(name), on);
}

std::shared_ptr<package> package_working_on(std::string name, const stream& on) {
    return std::make_shared<package_on>(std::move(name), on);
}

std::shared_ptr<package> package_with_queue(std::string name, nb::object queue) {
    return std::make_shared<package_of_queue>(std::move(name), std::move(queue));
}

std::shared_ptr<package> host_consumer() { return package_named("a consumer on the CPU"); }

}  // namespace weir::python
