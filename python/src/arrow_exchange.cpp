// Arrow's C data interfaces in and out (rules X4, X5, L4).
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "attributes.hpp"
#include "exchange.hpp"
#include "interpreter.hpp"
#include "packages.hpp"
#include "reference.hpp"
#include "site.hpp"
#include "weir/arrow.hpp"
#include "weir/dlpack.hpp"
#include "weir/error.hpp"
#include "weir/explain.hpp"
#include "wording.hpp"

namespace weir::python {

namespace {

namespace arrow = exchange::arrow;

constexpr const char* arrow_schema_name = "arrow_schema";
constexpr const char* arrow_array_name = "arrow_array";
constexpr const char* arrow_device_array_name = "arrow_device_array";

void release_structure(arrow::device_array& one) { one.array.release(&one.array); }
template <class Structure>
void release_structure(Structure& one) {
    one.release(&one);
}
bool is_released(const arrow::device_array& one) { return one.array.release == nullptr; }
template <class Structure>
bool is_released(const Structure& one) {
    return one.release == nullptr;
}

/// A capsule that owns a structure, and what is in it until a consumer has moved it.
template <class Structure>
nb::object arrow_capsule(std::unique_ptr<Structure> of, const char* name) {
    PyObject* const made = PyCapsule_New(of.get(), name, [](PyObject* self) {
        const std::unique_ptr<Structure> owned(
            static_cast<Structure*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self))));
        if (owned != nullptr && !is_released(*owned)) {
            release_structure(*owned);
        }
    });
    if (made == nullptr) {
        if (!is_released(*of)) {
            release_structure(*of);
        }
        nb::raise_python_error();
    }
    static_cast<void>(of.release());
    return nb::steal(made);
}

nb::object schema_capsule(const array& x) {
    auto made = std::make_unique<arrow::schema>();
    exchange::to_arrow_schema(x.dtype()).move_to(*made);
    return arrow_capsule(std::move(made), arrow_schema_name);
}

/// Blocks on the CPU only.
std::unique_ptr<arrow::device_array> column_of(const array& x, exchange_protocol by, const source_location& where) {
    const bool on_host = x.device().kind() != device_kind::cuda;
    std::vector<std::shared_ptr<package>> consumers =
        on_host ? std::vector<std::shared_ptr<package>>{host_consumer()} : packages_with_streams();
    note_exchange(x.buffer(), {by, true, false, on_host && has_pending(x, false)});
    auto made = std::make_unique<arrow::device_array>();
    waiting([&] { exchange::to_arrow(x, std::move(consumers), where).move_to(*made); });
    return made;
}

nb::object arrow_c_device_array(const array& self, nb::handle /*requested_schema*/, const nb::kwargs& others) {
    for (const auto& [name, value] : others) {
        if (!value.is_none()) {
            PyErr_SetString(PyExc_NotImplementedError,
                            ("__arrow_c_device_array__() of weir.Array has no " +
                             std::string(nb::str(nb::handle(name)).c_str()) + ": leave it out, or pass None")
                                .c_str());
            nb::raise_python_error();
        }
    }
    nb::object schema = schema_capsule(self);
    return nb::make_tuple(std::move(schema), arrow_capsule(column_of(self, exchange_protocol::arrow_device, here()),
                                                           arrow_device_array_name));
}

nb::object arrow_c_array(const array& self, nb::handle /*requested_schema*/) {
    if (self.device() != cpu() && self.device().name() != std::string("cpu:inline")) {
        throw exchange_error(self.to_string() +
                             " is not on the CPU, where __arrow_c_array__ hands arrays over: take "
                             "__arrow_c_device_array__, or x.to(\"cpu\")");
    }
    nb::object schema = schema_capsule(self);
    const std::unique_ptr<arrow::device_array> column = column_of(self, exchange_protocol::arrow, here());
    return nb::make_tuple(std::move(schema),
                          arrow_capsule(std::make_unique<arrow::array>(column->array), arrow_array_name));
}

/// A column that a producer handed over, to be released with the GIL: Python code may run there.
struct imported_column {
    explicit imported_column(nb::object owner) : keeps(std::move(owner)) {}
    reference keeps;
};

/// Takes what is in a producer's structure.
exchange::arrow_array taken_by_python(arrow::device_array& from) {
    auto moved = std::make_unique<arrow::device_array>(from);
    from.array.release = nullptr;
    arrow::device_array as = *moved;
    auto keeps = std::make_unique<imported_column>(arrow_capsule(std::move(moved), "weir.imported"));
    as.array.private_data = keeps.release();
    as.array.release = [](arrow::array* self) {
        self->release = nullptr;
        delete static_cast<imported_column*>(self->private_data);
    };
    return exchange::arrow_array(as);
}

template <class Structure>
Structure& structure_in(nb::handle capsule, const char* name, nb::handle of) {
    if (PyCapsule_IsValid(capsule.ptr(), name) == 0) {
        throw exchange_error("a " + package_name_of(of) + " array hands over " + repr_of(capsule) +
                             ", and no capsule named \"" + name + "\"");
    }
    return *static_cast<Structure*>(PyCapsule_GetPointer(capsule.ptr(), name));
}

constexpr const char* device_method = "__arrow_c_device_array__";
constexpr const char* host_method = "__arrow_c_array__";

bool class_has(nb::handle object, const attribute_name& name) { return attribute_of_class(object, name).is_valid(); }
bool has_device_method(nb::handle object) {
    static const attribute_name name(device_method);
    return class_has(object, name);
}
bool has_host_method(nb::handle object) {
    static const attribute_name name(host_method);
    return class_has(object, name);
}

}  // namespace

bool has_arrow(nb::handle object) { return has_device_method(object) || has_host_method(object); }

array from_arrow_producer(nb::handle object, std::optional<bool> copied, const source_location& where) {
    const bool by_device = has_device_method(object);
    const nb::object both = asked_of_package(
        object, "Arrow", [&] { return nb::object(object.attr(by_device ? device_method : host_method)()); });
    if (PyTuple_Check(both.ptr()) == 0 || PyTuple_GET_SIZE(both.ptr()) != 2) {
        throw exchange_error(std::string(by_device ? device_method : host_method) + "() of a " +
                             package_name_of(object) + " array gives " + repr_of(both) + ", not (schema, array)");
    }
    const auto& schema = structure_in<arrow::schema>(both[0], arrow_schema_name, object);
    const bool copies = exchange::arrow_needs_copy(schema);
    if (copies && copied == false) {
        throw copy_error(
            "an Arrow column of bool has a bit for each element, and weir a byte: it has to be copied, which "
            "copy=False and "
            "calls that need the memory itself do not do; pass weir.asarray(x), which is a copy");
    }
    arrow::device_array on_host;
    arrow::device_array* from = &on_host;
    const nb::object capsule(both[1]);
    if (by_device) {
        from = &structure_in<arrow::device_array>(capsule, arrow_device_array_name, object);
    } else {
        auto& plain = structure_in<arrow::array>(capsule, arrow_array_name, object);
        on_host.array = plain;
        plain.release = nullptr;
    }
    if (is_released(*from)) {
        throw exchange_error("the Arrow column of a " + package_name_of(object) +
                             " array was released: ask for a new one");
    }
    exchange::arrow_array column = taken_by_python(*from);
    std::shared_ptr<package> producer = package_of(object);
    array made = released([&] { return exchange::from_arrow(std::move(column), schema, std::move(producer), where); });
    note_exchange(made.buffer(),
                  {by_device ? exchange_protocol::arrow_device : exchange_protocol::arrow, false, copies, false});
    return made;
}

void bind_arrow(nb::class_<array>& cls) {
    cls.def(
           "__arrow_c_device_array__", arrow_c_device_array, nb::arg("requested_schema").none() = nb::none(),
           nb::arg("kwargs"),
           nb::sig("def __arrow_c_device_array__(self, requested_schema: object | None = None, **kwargs: object) -> "
                   "tuple[object, object]"),
           "The array as an Arrow column, the same memory: capsules of the schema and of the elements on their device. "
           "Does not block on a CUDA device, where the column names an event; elsewhere it blocks until pending writes "
           "are over. Of one dimension, in C order, of integers or real numbers: else ExchangeError says what to do.")
        .def("__arrow_c_array__", arrow_c_array, nb::arg("requested_schema").none() = nb::none(),
             nb::sig("def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]"),
             "The same for arrays on the CPU. Blocks until pending writes are over. Raises ExchangeError.");
}

}  // namespace weir::python
