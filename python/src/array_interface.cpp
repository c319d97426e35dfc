// Arrays of other packages by the CUDA Array Interface (rule X3).
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "attributes.hpp"
#include "devices.hpp"
#include "dtypes.hpp"
#include "exchange.hpp"
#include "interpreter.hpp"
#include "ownership.hpp"
#include "packages.hpp"
#include "weir/borrow.hpp"
#include "weir/dlpack.hpp"
#include "weir/error.hpp"
#include "weir/explain.hpp"
#include "weir/sharing.hpp"

namespace weir::python {

namespace {

namespace dlpack = exchange::dlpack;

/// The element type that a text of the array interface names ("<f4"). Throws exchange_error.
dtype dtype_from_interface(const std::string& text) {
    for (const dtype type : arithmetic_dtypes()) {
        if (interface_name_of(type) == text) {
            return type;
        }
    }
    throw exchange_error("the CUDA Array Interface names the element type \"" + text + "\", which weir has not");
}

/// A tensor of what an array interface says, which keeps the object.
struct interface_tensor {
    imported of;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;

    explicit interface_tensor(nb::object owner) : of(dlpack::managed_tensor_versioned(), std::move(owner)) {
        of.managed.context = this;
        of.managed.deleter = [](dlpack::managed_tensor_versioned* self) {
            delete static_cast<interface_tensor*>(self->context);
        };
    }
};

/// What an object's `__cuda_array_interface__` says. Each entry is refused in words where it is not what the interface wants.
class interface_dict {
public:
    explicit interface_dict(nb::handle x)
        : of_(x), whose_("the __cuda_array_interface__ of a " + package_name_of(x) + " array ") {
        const nb::object said = asked_of_package(x, "the CUDA Array Interface",
                                                 [&] { return nb::object(x.attr("__cuda_array_interface__")); });
        if (PyDict_Check(said.ptr()) == 0) {
            throw exchange_error(whose_ + "is no dict");
        }
        said_ = nb::borrow<nb::dict>(said);
    }

    /// Throws exchange_error unless it says all that an array needs.
    void expect_whole() const {
        for (const char* const key : {"shape", "typestr", "data", "version"}) {
            if (entry(key).is_none()) {
                throw exchange_error(whose_ + "has no \"" + key + "\"");
            }
        }
        std::int64_t version = 0;
        if (PyLong_Check(entry("version").ptr()) == 0 || !nb::try_cast(entry("version"), version) || version < 1) {
            refuse("version", "a number such as 3");
        }
        if (!entry("mask").is_none()) {
            throw exchange_error(
                "the array has a mask, which weir does not know: fill it in the package that it is of");
        }
    }

    /// None if there is no such entry.
    [[nodiscard]] nb::object entry(const char* key) const {
        return said_.contains(key) ? nb::object(said_[key]) : nb::object(nb::none());
    }
    [[nodiscard]] dtype type() const {
        std::string text;
        if (!nb::try_cast(entry("typestr"), text)) {
            refuse("typestr", "a text such as \"<f4\"");
        }
        return dtype_from_interface(text);
    }
    [[nodiscard]] std::vector<std::int64_t> integers(const char* key) const {
        std::vector<std::int64_t> found;
        const nb::object all = entry(key);
        if (PyTuple_Check(all.ptr()) == 0 && PyList_Check(all.ptr()) == 0) {
            refuse(key, "a tuple of integers");
        }
        for (const nb::handle one : all) {
            const nb::object whole = nb::steal(PyNumber_Index(one.ptr()));
            std::int64_t value = 0;
            if (!whole.is_valid() || !nb::try_cast(whole, value)) {
                PyErr_Clear();
                refuse(key, "a tuple of integers");
            }
            found.push_back(value);
        }
        return found;
    }
    /// In elements of so many bytes; nothing for C order.
    [[nodiscard]] std::optional<std::vector<std::int64_t>> strides(std::int64_t item, std::size_t dimensions) const {
        if (entry("strides").is_none()) {
            return std::nullopt;
        }
        std::vector<std::int64_t> found = integers("strides");
        for (std::int64_t& stride : found) {
            if (stride % item != 0) {
                throw exchange_error("a stride of " + std::to_string(stride) +
                                     " bytes is no multiple of the element's size");
            }
            stride /= item;
        }
        if (found.size() != dimensions) {
            throw exchange_error(whose_ + "has another number of strides than of dimensions");
        }
        return found;
    }
    struct memory {
        void* first;
        bool read_only;
    };
    [[nodiscard]] memory data() const {
        const nb::object pair = entry("data");
        if (PyTuple_Check(pair.ptr()) != 0 && PyTuple_GET_SIZE(pair.ptr()) == 2) {
            const nb::object whole = nb::steal(PyNumber_Index(PyTuple_GET_ITEM(pair.ptr(), 0)));
            std::uintptr_t pointer = 0;
            const int read_only = whole.is_valid() && nb::try_cast(whole, pointer)
                                      ? PyObject_IsTrue(PyTuple_GET_ITEM(pair.ptr(), 1))
                                      : -1;
            if (read_only >= 0) {
                return {reinterpret_cast<void*>(pointer), read_only != 0};  // NOLINT(performance-no-int-to-ptr)
            }
            PyErr_Clear();
        }
        refuse("data", "(pointer, read-only)");
    }
    /// The number of the CUDA device whose memory it is; 0 if it names no memory.
    [[nodiscard]] int device_id() const {
        if (entry("data").is_none()) {
            return 0;
        }
        return released([address = data().first] { return exchange::cuda_device_of(address); });
    }
    /// The stream that it names; nothing if it names none.
    [[nodiscard]] std::optional<stream> named_stream(const device& on) const {
        const nb::object named = entry("stream");
        if (named.is_none()) {
            return std::nullopt;
        }
        if (std::int64_t number = 1; PyLong_Check(named.ptr()) != 0 && nb::try_cast(named, number) && number == 0) {
            throw exchange_error(whose_ +
                                 "names stream 0, which the interface forbids: 1 is the legacy default stream");
        }
        // Without the array as owner: it would live as long as anything uses the stream. The import keeps it.
        try {
            return adopt(named, on, nb::none());
        } catch (const argument_error& unknown) {
            throw exchange_error(whose_ + "names the stream " + repr_of(named) + ": " + unknown.what());
        }
    }

private:
    [[noreturn]] void refuse(const char* key, const char* wanted) const {
        throw exchange_error(whose_ + "has the \"" + key + "\" " + repr_of(entry(key)) + ", not " + wanted);
    }

    nb::handle of_;
    std::string whose_;
    nb::dict said_;
};

}  // namespace

bool has_cuda_array_interface(nb::handle object) {
    static const attribute_name name("__cuda_array_interface__");
    return look_up_attribute(object, name).is_there;
}

void enter_from(const array& x, package& by, const stream& theirs, const source_location& where) {
    if (x.buffer()) {
        released([&] {
            detail::gather(by, x.buffer(), theirs);
            used_on(x.buffer(), theirs, package_use::writes, where);
        });
    }
}

stream stream_of_interface(nb::handle x) {
    const interface_dict said(x);
    const device on = released([id = said.device_id()] { return cuda(id); });
    std::optional<stream> named = said.named_stream(on);
    if (!named) {
        throw argument_type_error("the __cuda_array_interface__ of this " + std::string(nb::inst_name(x).c_str()) +
                                  " names no stream: pass the stream that its package works on");
    }
    return *std::move(named);
}

array from_interface(nb::handle x, bool exclusive, const source_location& where) {
    const interface_dict said(x);
    said.expect_whole();
    auto made = std::make_unique<interface_tensor>(nb::borrow(x));
    dlpack::tensor& what = made->of.managed.what;
    const dtype type = said.type();
    made->shape = said.integers("shape");
    if (auto strides = said.strides(static_cast<std::int64_t>(size_of(type)), made->shape.size())) {
        made->strides = *std::move(strides);
        what.strides = made->strides.data();
    }
    what.dimensions = static_cast<std::int32_t>(made->shape.size());
    what.shape = made->shape.data();
    what.type = to_dlpack_dtype(type);
    const auto [first, read_only] = said.data();
    what.data = first;
    made->of.managed.flags = read_only ? dlpack::read_only : 0;
    what.on.type = dlpack::device_type::cuda;
    what.on.id = said.device_id();
    const device on = released([id = what.on.id] { return cuda(id); });
    // Version 2 names no stream: then it is the one that the package works on.
    std::optional<stream> theirs = said.named_stream(on);
    const std::shared_ptr<package> from =
        theirs ? package_on_stream("work on the stream of an array", *theirs, said.entry("stream")) : package_of(x);
    const bool let_go = exclusive && !read_only;
    if (let_go && !theirs) {
        theirs = from->current_stream(on);
    }
    exchange::dlpack_tensor tensor(&made.release()->of.managed);
    array taken = released([&] { return exchange::from_dlpack(std::move(tensor), let_go ? nullptr : from, where); });
    if (let_go && theirs) {
        enter_from(taken, *from, *theirs, where);
    }
    note_exchange(taken.buffer(), {exchange_protocol::cuda_array_interface});
    return taken;
}

}  // namespace weir::python
