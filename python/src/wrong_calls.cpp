#include "wrong_calls.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "errors.hpp"

namespace weir::python {

namespace {

// Nanobind reports arguments that fit no overload from its dispatchers, without a hook. Python stores the dispatcher in each function
// object, at an offset that the type gives (PEP 590). So each function gets one of these instead, which calls the dispatcher and
// rewrites the error. There is one for each of the few dispatchers, since a table is faster to read than a map.

constexpr std::size_t most_dispatchers = 16;

/// Written while the module is initialised, by one thread; read by calls.
std::array<vectorcallfunc, most_dispatchers> dispatchers{};

/// Whether the error that is set says that the arguments fit no overload. A Python function that raised would have a traceback.
bool is_wrong_call(const nb::object& error, const nb::object& traceback) {
    constexpr std::string_view by_nanobind = "(): incompatible function arguments. ";
    return !traceback.is_valid() &&
           std::string_view(nb::str(error).c_str()).find(by_nanobind) != std::string_view::npos;
}

/// Replaces the error that is set if it is nanobind's. Leaves it as it is if there are no words for it.
[[gnu::cold]] void explain(PyObject* function, PyObject* const* given, std::size_t count, PyObject* names) noexcept {
    if (PyErr_Occurred() != PyExc_TypeError) {  // exactly this class: Weir's own are derived from it
        return;
    }
    PyObject* type = nullptr;
    PyObject* value = nullptr;
    PyObject* trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    const nb::object kind = nb::steal(type);
    const nb::object error = nb::steal(value);
    const nb::object traceback = nb::steal(trace);
    try {
        if (is_wrong_call(error, traceback)) {
            const auto positional = static_cast<std::size_t>(PyVectorcall_NARGS(count));
            nb::list arguments;
            std::for_each(given, given + positional, [&](PyObject* one) { arguments.append(nb::handle(one)); });
            nb::dict by_name;
            for (std::size_t i = 0; names != nullptr && i < nb::len(nb::handle(names)); ++i) {
                by_name[nb::handle(names)[i]] = nb::handle(given[positional + i]);
            }
            const nb::object words = nb::module_::import_("weir._wrong_calls")
                                         .attr("of_extension")(nb::handle(function), arguments, by_name);
            throw argument_type_error(nb::cast<std::string>(words));
        }
    } catch (const argument_type_error&) {
        raise_handled();
        return;
    } catch (...) {
        PyErr_Clear();
    }
    PyErr_Restore(nb::object(kind).release().ptr(), nb::object(error).release().ptr(),
                  nb::object(traceback).release().ptr());
}

template <std::size_t Which>
PyObject* call(PyObject* function, PyObject* const* given, std::size_t count, PyObject* names) noexcept {
    PyObject* const result = dispatchers[Which](function, given, count, names);
    if (result == nullptr) [[unlikely]] {
        explain(function, given, count, names);
    }
    return result;
}

template <std::size_t... Which>
constexpr std::array<vectorcallfunc, sizeof...(Which)> all_calls(std::index_sequence<Which...> /*unused*/) {
    return {call<Which>...};
}
constexpr auto calls = all_calls(std::make_index_sequence<most_dispatchers>());

void wrap(nb::handle function) {
    auto* const slot = reinterpret_cast<vectorcallfunc*>(reinterpret_cast<std::byte*>(function.ptr()) +
                                                         Py_TYPE(function.ptr())->tp_vectorcall_offset);
    if (std::find(calls.begin(), calls.end(), *slot) != calls.end()) {
        return;  // another name of one that has it
    }
    auto found = std::find(dispatchers.begin(), dispatchers.end(), *slot);
    if (found == dispatchers.end()) {
        found = std::find(dispatchers.begin(), dispatchers.end(), nullptr);
    }
    if (found == dispatchers.end()) {
        return;  // nanobind's own words are better than no module; no version up to 2.15 has so many dispatchers
    }
    *found = *slot;
    *slot = calls[static_cast<std::size_t>(found - dispatchers.begin())];
}

void wrap_all(nb::handle scope) {
    for (const nb::handle member : nb::list(scope.attr("__dict__").attr("values")())) {
        const bool is_static = PyObject_TypeCheck(member.ptr(), &PyStaticMethod_Type) != 0;
        const nb::object one = is_static ? nb::object(member.attr("__func__")) : nb::borrow(member);
        const std::string_view type = Py_TYPE(one.ptr())->tp_name;
        if (type.ends_with("nb_func") || type.ends_with("nb_method")) {
            wrap(one);
        } else if (nb::type_check(one) || PyModule_Check(one.ptr()) != 0) {
            wrap_all(one);
        }
    }
}

}  // namespace

void explain_wrong_calls(nb::module_& m) { wrap_all(m); }

}  // namespace weir::python
