// weir.torch: kernels that other packages launch on torch's memory (weir/_torch_launches.py), told to the hooks in torch.
#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "../weir/_torch_hooks/hooks.h"
#include "bind.hpp"
#include "checking.hpp"
#include "site.hpp"

namespace weir::python {

namespace {

decltype(&weir_torch_launch) launch = nullptr;  // of the hooks, which are loaded later
decltype(&weir_torch_launched) launched = nullptr;

using list_of_operands = nb::typed<nb::sequence, nb::object>;
using positional = nb::typed<nb::tuple, nb::object, nb::ellipsis>;

/// The arrays of a launch. Holds the numbers that they refer to.
class operands {
public:
    /// Of tuples. A tensor: its address, whether it is written, whether that is certain. Memory of a device: its number, where the memory
    /// begins, its size, the offset of the first element, the size of one, sizes, strides in bytes, and as for a tensor.
    explicit operands(const list_of_operands& of) {
        all_.reserve(nb::len(of));
        for (const nb::handle each : of) {
            const auto one = nb::borrow<nb::tuple>(each);
            const bool is_tensor = one.size() == 3;
            weir_torch_operand made{};
            made.access.writes = nb::cast<bool>(one[one.size() - 2]) ? 1 : 0;
            made.access.may_not_happen = nb::cast<bool>(one[one.size() - 1]) ? 0 : 1;
            if (is_tensor) {
                made.tensor = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(one[0]));
            } else {
                made.device = nb::cast<std::int32_t>(one[0]);
                made.access.storage = nb::cast<std::uint64_t>(one[1]);
                made.access.bytes = nb::cast<std::uint64_t>(one[2]);
                made.access.offset = nb::cast<std::uint64_t>(one[3]);
                made.access.run = nb::cast<std::int64_t>(one[4]);
                made.access.sizes = kept(one[5], made.access.dimensions);
                made.access.strides = kept(one[6], made.access.dimensions);
                made.access.is_within = 1;
            }
            all_.push_back(made);
        }
    }
    [[nodiscard]] const weir_torch_operand* data() const noexcept { return all_.data(); }
    [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

private:
    const std::int64_t* kept(const nb::object& numbers, std::int32_t& count) {
        numbers_.push_back(nb::cast<std::vector<std::int64_t>>(numbers));
        count = static_cast<std::int32_t>(numbers_.back().size());
        return numbers_.back().data();
    }

    std::vector<std::vector<std::int64_t>> numbers_;
    std::vector<weir_torch_operand> all_;
};

std::uintptr_t begin(std::string_view name, std::optional<std::tuple<std::int32_t, std::uint64_t, std::int64_t>> on,
                     const list_of_operands& of) {
    const char* const label = interned(name);
    const operands arrays(of);
    const nb::gil_scoped_release others_go_on;
    const weir_torch_stream stream =
        on ? weir_torch_stream{std::get<0>(*on), std::get<1>(*on), 0} : weir_torch_stream{0, 0, 0};
    return reinterpret_cast<std::uintptr_t>(
        launch(label, on ? &stream : nullptr, on ? std::get<2>(*on) : 0, arrays.data(), arrays.size()));
}
void end(std::uintptr_t begun, const list_of_operands& results, bool failed) {
    const operands arrays(results);
    const nb::gil_scoped_release others_go_on;
    launched(reinterpret_cast<void*>(begun), arrays.data(), arrays.size(), failed ? 1 : 0);
}

/// Types of C whose calls go through a function of Python. Their attributes cannot be set.
class calls_of_types {
public:
    static void replace(nb::type_object of, nb::object by) {
        const nb::ft_lock_guard lock(mutex_);
        auto* const type = reinterpret_cast<PyTypeObject*>(of.ptr());
        entry& one = all()[type];
        if (one.by == nullptr) {
            one.former = type->tp_call;
            type->tp_call = call;
        }
        Py_XSETREF(one.by, by.release().ptr());
    }
    static void take_back(nb::type_object of) {
        const nb::ft_lock_guard lock(mutex_);
        auto* const type = reinterpret_cast<PyTypeObject*>(of.ptr());
        entry& one = all()[type];
        if (one.by != nullptr) {
            type->tp_call = one.former;
            Py_CLEAR(one.by);
        }
    }
    static PyObject* call_formerly(PyObject* self, PyObject* arguments, PyObject* named) {
        ternaryfunc former = Py_TYPE(self)->tp_call;
        {
            const nb::ft_lock_guard lock(mutex_);
            if (const entry* const one = of(Py_TYPE(self))) {
                former = one->former;
            }
        }
        return former(self, arguments, named);
    }

private:
    struct entry {
        ternaryfunc former = nullptr;
        PyObject* by = nullptr;  ///< null: it is called as ever
    };
    static std::unordered_map<PyTypeObject*, entry>& all() {
        static auto* const one = new std::unordered_map<PyTypeObject*, entry>;
        return *one;
    }
    static const entry* of(PyTypeObject* type) {
        for (; type != nullptr; type = type->tp_base) {
            const auto found = all().find(type);
            if (found != all().end()) {
                return &found->second;
            }
        }
        return nullptr;
    }
    static PyObject* call(PyObject* self, PyObject* arguments, PyObject* named) {
        PyObject* by = nullptr;
        {
            const nb::ft_lock_guard lock(mutex_);
            const entry* const one = of(Py_TYPE(self));
            by = one != nullptr ? Py_XNewRef(one->by) : nullptr;
        }
        if (by == nullptr) {
            return call_formerly(self, arguments, named);
        }
        PyObject* const result =
            PyObject_CallFunctionObjArgs(by, self, arguments, named != nullptr ? named : Py_None, nullptr);
        Py_DECREF(by);
        return result;
    }
    static inline nb::ft_mutex mutex_;
};

}  // namespace

void bind_torch_launch(nb::module_& m) {
    m.def(
        "_torch_launches_go_to",
        [](std::uintptr_t before, std::uintptr_t after) {
            launch = reinterpret_cast<decltype(launch)>(before);
            launched = reinterpret_cast<decltype(launched)>(after);
        },
        nb::arg("before"), nb::arg("after"),
        "The addresses of weir_torch_launch and weir_torch_launched (weir/_torch_hooks/hooks.h).");
    m.def(
        "_torch_launch", begin, nb::arg("name"), nb::arg("stream").none(), nb::arg("operands"),
        "Before another package puts a kernel into a stream: its device, handle and torch's number of it, or None for\n"
        "torch's current stream. Returns what _torch_launched takes, or 0 if the thread does not take part.");
    m.def("_torch_launched", end, nb::arg("launch"), nb::arg("results"), nb::arg("failed"),
          "Behind it, with what it did to memory that it allocated.");
    m.def("_replace_call", calls_of_types::replace, nb::arg("type"), nb::arg("by"),
          "Calls of objects of this type of C become by(object, arguments, named), with named=None if there are none.");
    m.def("_take_back_call", calls_of_types::take_back, nb::arg("type"), "Calls of its objects are what they were.");
    m.def(
        "_call_formerly",
        [](nb::handle self, const positional& given, nb::object named) {
            PyObject* const result =
                calls_of_types::call_formerly(self.ptr(), given.ptr(), named.is_none() ? nullptr : named.ptr());
            if (result == nullptr) {
                throw nb::python_error();
            }
            return nb::steal(result);
        },
        nb::arg("object"), nb::arg("arguments"), nb::arg("named").none(),
        "Calls the object as it was called before _replace_call.");
    m.def(
        "_replace_method",
        [](nb::type_object of, const char* name, nb::object by) {
            auto* const type = reinterpret_cast<PyTypeObject*>(of.ptr());
            if (PyDict_SetItemString(type->tp_dict, name, by.ptr()) != 0) {
                throw nb::python_error();
            }
            PyType_Modified(type);
        },
        nb::arg("type"), nb::arg("name"), nb::arg("by"), "Sets a method of a type of C.");
}

}  // namespace weir::python
