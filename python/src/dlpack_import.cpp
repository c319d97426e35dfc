// Arrays of other packages by DLPack (rules X1, X5, X6, X9).
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "attributes.hpp"
#include "devices.hpp"
#include "exchange.hpp"
#include "importing.hpp"
#include "interpreter.hpp"
#include "notes.hpp"
#include "ownership.hpp"
#include "packages.hpp"
#include "scopes.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/dlpack.hpp"
#include "weir/error.hpp"
#include "weir/explain.hpp"

namespace weir::python {

namespace {

namespace dlpack = exchange::dlpack;

/// Whether a package's arrays never change, although its capsules have no version and cannot say so.
bool is_immutable(const std::string& package) {
    return package == "jax" || package == "jaxlib" || package == "tensorflow" || package == "mlx" ||
           package == "pyarrow";
}

/// What a producer handed over; of a version that Weir does not read, no more than the version.
exchange::dlpack_tensor readable(dlpack::managed_tensor_versioned* made) {
    return made->version.major == 1 ? exchange::dlpack_tensor(made) : owned_by_python(made);
}

/// Takes what is in a capsule, which cannot be taken again. Its deleter needs the GIL. Throws exchange_error.
exchange::dlpack_tensor taken_from(nb::handle capsule, const std::string& package = {}) {
    const nb::ft_object_guard alone(capsule);  // where there is no GIL, two threads may ask
    if (PyCapsule_IsValid(capsule.ptr(), versioned_name) != 0) {
        exchange::dlpack_tensor taken = readable(
            static_cast<dlpack::managed_tensor_versioned*>(PyCapsule_GetPointer(capsule.ptr(), versioned_name)));
        PyCapsule_SetName(capsule.ptr(), used_versioned_name);
        return taken;
    }
    if (PyCapsule_IsValid(capsule.ptr(), plain_name) != 0) {
        auto* const what = static_cast<dlpack::managed_tensor*>(PyCapsule_GetPointer(capsule.ptr(), plain_name));
        PyCapsule_SetName(capsule.ptr(), used_plain_name);
        return exchange::with_version(exchange::dlpack_tensor_unversioned(what),
                                      is_immutable(package) ? dlpack::read_only : 0);
    }
    const char* const name = PyCapsule_CheckExact(capsule.ptr()) != 0 ? PyCapsule_GetName(capsule.ptr()) : nullptr;
    PyErr_Clear();
    if (name != nullptr && std::string(name).starts_with("used_")) {
        throw exchange_error("the capsule was consumed before, and can be consumed once: call __dlpack__() again");
    }
    throw exchange_error("a DLPack capsule is named \"dltensor\" or \"dltensor_versioned\", and this is " +
                         repr_of(capsule));
}

/// What the producer says of where its memory is.
dlpack::device producers_device(nb::handle x) {
    static const attribute_name name("__dlpack_device__");
    const nb::object answer = asked_of_package(x, "DLPack", [&] {
        nb::object given = nb::steal(PyObject_CallMethodNoArgs(x.ptr(), name.get()));
        if (!given.is_valid()) {
            nb::raise_python_error();
        }
        return given;
    });
    if (PyTuple_Check(answer.ptr()) == 0 || PyTuple_GET_SIZE(answer.ptr()) != 2) {
        throw exchange_error("__dlpack_device__() of a " + package_name_of(x) + " array gives " + repr_of(answer) +
                             ", not (type, id)");
    }
    const auto number = [&](Py_ssize_t place) -> std::optional<std::int32_t> {
        const nb::object whole = nb::steal(PyNumber_Long(PyTuple_GET_ITEM(answer.ptr(), place)));
        std::int32_t value = 0;
        const bool fits = whole.is_valid() && nb::try_cast(whole, value);
        PyErr_Clear();
        return fits ? std::optional(value) : std::nullopt;
    };
    const std::optional<std::int32_t> type = number(0);
    if (!type) {
        throw exchange_error("__dlpack_device__() of a " + package_name_of(x) + " array gives " + repr_of(answer) +
                             ", not (type, id)");
    }
    // The id of a CPU is of no importance, and some producers give none.
    const dlpack::device on{static_cast<dlpack::device_type>(*type), number(1).value_or(0)};
    if (is_on_cuda(on) && on.id < 0) {
        throw exchange_error("__dlpack_device__() of a " + package_name_of(x) + " array gives " + repr_of(answer) +
                             ": CUDA devices have numbers from 0");
    }
    return on;
}

/// Asks a producer for a capsule: first for one with a version, then without that keyword if the producer does not know it, which
/// array-api-strict says by a NotImplementedError where its NumPy has no such keyword; at last without any keyword, which means the legacy
/// default stream.
/// `on_stream`: of a producer with streams, the handle of the stream that is to see its work.
nb::object capsule_of(nb::handle x, const nb::object& on_stream) {
    static const attribute_name name("__dlpack__");
    // Made once: names and values of the keywords, the version first. They live as long as the process.
    static PyObject* const version = nb::make_tuple(1, 3).release().ptr();
    static PyObject* const new_names = nb::make_tuple("max_version", "stream").release().ptr();
    static PyObject* const new_name = nb::make_tuple("max_version").release().ptr();
    static PyObject* const old_names = nb::make_tuple("stream").release().ptr();
    PyObject* const arguments[] = {x.ptr(), version, on_stream.ptr()};
    const bool names_stream = !on_stream.is_none();
    nb::object made =
        nb::steal(PyObject_VectorcallMethod(name.get(), arguments, 1, names_stream ? new_names : new_name));
    PyObject* const older[] = {x.ptr(), on_stream.ptr()};
    if (!made.is_valid() &&
        (PyErr_ExceptionMatches(PyExc_TypeError) != 0 || PyErr_ExceptionMatches(PyExc_NotImplementedError) != 0)) {
        PyErr_Clear();
        made = nb::steal(PyObject_VectorcallMethod(name.get(), older, 1, names_stream ? old_names : nullptr));
    }
    if (!made.is_valid() && names_stream && PyErr_ExceptionMatches(PyExc_TypeError) != 0) {
        PyErr_Clear();
        made = nb::steal(PyObject_VectorcallMethod(name.get(), older, 1, nullptr));
    }
    if (!made.is_valid()) {
        asked_of_package(x, "DLPack", [] { nb::raise_python_error(); });
    }
    return made;
}

/// The answer of a call that gives True or False. Takes the reference.
bool is_true(PyObject* answer) {
    const nb::object one = nb::steal(answer);
    if (!one.is_valid()) {
        nb::raise_python_error();
    }
    return one.is(Py_True) || (!one.is(Py_False) && nb::cast<bool>(one));
}

/// Whether a tensor of torch must be taken by `__dlpack__`, which refuses it in words, since it records what is done to it. Throws
/// exchange_error for the negative bit, which torch overlooks there: the tensor's elements are not those in its memory.
bool needs_its_method(nb::handle x, bool is_torch) {
    if (!is_torch) {
        return false;
    }
    static const attribute_name is_neg("is_neg");
    static const attribute_name requires_grad("requires_grad");
    const nb::object negative = attribute_of(x, is_neg);  // a torch of long ago has none
    if (negative.is_valid() && is_true(PyObject_CallNoArgs(negative.ptr()))) {
        throw exchange_error(
            "the tensor of torch has the negative bit: its elements are not those in its memory; pass x.resolve_neg()");
    }
    const nb::object is_recorded = attribute_of(x, requires_grad);
    return is_recorded.is_valid() && nb::cast<bool>(is_recorded);
}

/// Whether torch refuses the tensor in `__dlpack__`, and overlooks in its table that the elements are not those in its memory: the
/// conjugate bit, which only complex numbers have.
bool is_conjugate(nb::handle x, bool is_torch, const dlpack::managed_tensor_versioned& made) {
    static const attribute_name is_conj("is_conj");
    constexpr std::uint8_t complex_numbers = 5;
    return is_torch && made.version.major == 1 && made.what.type.code == complex_numbers &&
           is_true(PyObject_CallMethodNoArgs(x.ptr(), is_conj.get()));
}

/// The tensor that the table of a producer's class hands over, whose deleter needs the GIL; null if it refuses: `__dlpack__` then refuses
/// with a message.
exchange::dlpack_tensor tensor_by(const dlpack::exchange_table& table, nb::handle x) {
    dlpack::managed_tensor_versioned* made = nullptr;
    if (table.from_object == nullptr || table.from_object(x.ptr(), &made) != 0 || made == nullptr) {
        forget_raised();
        return nullptr;
    }
    return readable(made);
}

/// Makes an array. Of memory of the host nothing has to be waited for, so the GIL need not be given away, unless an observer looks on.
template <class Make>
array imported_here(bool is_the_hosts, Make&& make) {
    if (is_the_hosts && !notes::wanted()) {
        scopes::follow();
        return make();
    }
    return released(make);
}

/// Makes the array of a tensor whose deleter needs the GIL. Needs the GIL.
array imported_here(bool is_the_hosts, exchange::dlpack_tensor tensor, std::shared_ptr<package> from,
                    const source_location& where) {
    if (tensor->version.major != 1) {
        return exchange::from_dlpack(std::move(tensor), std::move(from), where);  // which refuses it
    }
    const dlpack::managed_tensor_versioned& of = *tensor;
    std::unique_ptr<weir::detail::lender> owner = lender_of(std::move(tensor));
    return imported_here(is_the_hosts, [&] {
        return exchange::from_dlpack(weir::detail::key, of.what, of.flags, std::move(owner), std::move(from), where);
    });
}
array imported_here(exchange::dlpack_tensor tensor, std::shared_ptr<package> from, calling_line& where) {
    const bool is_the_hosts = tensor->version.major == 1 && tensor->what.on.type == dlpack::device_type::cpu;
    return imported_here(is_the_hosts, std::move(tensor), std::move(from),
                         is_the_hosts ? where.of_hosts() : where.get());
}

/// Calls `make`, which makes an array of what a producer said. What Weir refuses of that is an ExchangeError that names the package.
template <class Make>
auto in_the_name_of(const std::string& package, Make&& make) {
    try {
        return make();
    } catch (const exchange_error& refused) {
        throw exchange_error("what " + package + " hands over by DLPack is refused: " + refused.what());
    } catch (const argument_error& refused) {
        throw exchange_error("what " + package + " hands over by DLPack is refused: " + refused.what());
    }
}

/// The same memory by the table of the producer's class. The tensor is ordered with the producer's current work stream: it is tied to
/// that stream or, as an exclusive import, comes after it.
array from_table(exchange::dlpack_tensor tensor, const std::shared_ptr<package>& producer, bool exclusive,
                 calling_line& where) {
    const bool let_go = exclusive && (tensor->flags & dlpack::read_only) == 0;
    array made = in_the_name_of(std::string(producer->name()),
                                [&] { return imported_here(std::move(tensor), let_go ? nullptr : producer, where); });
    if (let_go && made.buffer()) {
        if (const std::optional<stream> theirs = producer->current_stream(made.device())) {
            enter_from(made, *producer, *theirs, where.get());
        }
    }
    note_exchange(made.buffer(), {exchange_protocol::dlpack_table});
    return made;
}

/// DLPack's number for devices of SYCL.
constexpr auto oneapi = static_cast<dlpack::device_type>(14);

/// Memory of a device of SYCL's, which the host may reach, too: its producer is asked for it as memory of the CPU (rule X9), and gives a
/// view or, unless `copied` forbids it, a copy. No array: the producer knows no `dl_device`. Throws copy_error.
std::optional<array> from_sycl(nb::handle x, const std::string& name, std::optional<bool> copied, calling_line& where) {
    nb::dict asked;
    asked["max_version"] = nb::make_tuple(1, 3);
    asked["dl_device"] = nb::make_tuple(1, 0);
    if (copied) {
        asked["copy"] = *copied;
    }
    nb::object capsule;
    try {
        capsule = x.attr("__dlpack__")(**asked);
    } catch (const nb::python_error& raised) {
        if (raised.matches(PyExc_TypeError)) {
            return std::nullopt;
        }
        if (copied == false && raised.matches(PyExc_BufferError)) {
            throw copy_error("the array of " + name + " is in memory of a SYCL device, and " + name +
                             " does not hand it to the CPU without a copy: pass weir.asarray(x), which is a copy");
        }
        refuse_for_package(x, "DLPack", raised);
    }
    exchange::dlpack_tensor tensor = taken_from(capsule, name);
    const bool is_copy = copied == true || (tensor->flags & dlpack::is_copied) != 0;
    std::shared_ptr<package> producer;
    if (!is_copy && nb::hasattr(x, "sycl_queue")) {
        producer = package_with_queue(name, x.attr("sycl_queue"));
    } else if (!is_copy || (tensor->flags & dlpack::read_only) != 0) {
        producer = package_named(name);
    }
    array made = in_the_name_of(name, [&] { return imported_here(false, std::move(tensor), producer, where.get()); });
    note_exchange(made.buffer(), {exchange_protocol::dlpack, false, is_copy, false});
    return made;
}

}  // namespace

bool has_dlpack(nb::handle x) {
    static const attribute_name method("__dlpack__");
    static const attribute_name device_method("__dlpack_device__");
    return (attribute_of(x, method).is_valid() && attribute_of(x, device_method).is_valid()) || table_of(x) != nullptr;
}

array from_dlpack_producer(nb::handle x, bool exclusive, std::optional<bool> copied, calling_line& where) {
    const bool is_capsule = PyCapsule_CheckExact(x.ptr()) != 0;
    if (is_capsule) {
        if (std::optional<array> own = own_array_in(x)) {
            return *std::move(own);  // with its history
        }
    }
    const std::shared_ptr<const array_class> known = is_capsule ? nullptr : array_class_of(x);
    const std::string its_name = known != nullptr ? std::string()
                                 : is_capsule     ? std::string("the producer of a capsule")
                                                  : package_name_of(x);
    const std::string& name = known != nullptr ? known->name : its_name;
    const bool is_torch = name == "torch";
    const std::shared_ptr<package> producer = known != nullptr ? known->of : package_named(name);
    const dlpack::exchange_table_header* const header = known != nullptr ? known->table : table_header_of(x);
    const bool by_method = !is_capsule && needs_its_method(x, is_torch);
    if (const dlpack::exchange_table* const table = header == nullptr ? nullptr : exchange::readable_table(header);
        table != nullptr && !by_method) {
        if (exchange::dlpack_tensor tensor = tensor_by(*table, x); tensor && !is_conjugate(x, is_torch, *tensor)) {
            if (known == nullptr && !is_view_of_another(x)) {
                ask_by_table(name, *table);
            }
            return from_table(std::move(tensor), producer, exclusive, where);
        }
    }
    if (!is_capsule && known == nullptr && !nb::hasattr(x, "__dlpack__")) {
        throw exchange_error("the exchange table of a " + name + " array refuses to hand it over, and there is no " +
                             "__dlpack__ that would say why");
    }
    // The stream that is to see the producer's work: the one that it works on now, which needs no wait there, else the legacy
    // default stream.
    std::optional<stream> asked_with;
    bool is_tied_to_it = false;
    dlpack::device its;
    if (!is_capsule) {
        its = producers_device(x);
        if (its.type == oneapi) {
            if (std::optional<array> made = from_sycl(x, name, copied, where)) {
                return *std::move(made);
            }
        }
        if (is_on_cuda(its)) {
            const device on = in_the_name_of(name, [&] { return released([&] { return cuda(its.id); }); });
            asked_with = producer->current_stream(on);
            is_tied_to_it = asked_with.has_value() && !exclusive;
            if (!asked_with) {
                asked_with = adopt(nb::int_(1), on, nb::none());
            }
        }
    }
    nb::object handle = nb::none();
    if (asked_with) {
        const auto number = reinterpret_cast<std::uintptr_t>(released([&] { return asked_with->handle(); }));
        handle = nb::int_(number == 0 ? 1 : number);  // 0 is forbidden there, and 1 is the same stream
    }
    exchange::dlpack_tensor tensor = is_capsule ? taken_from(x) : taken_from(capsule_of(x, handle), name);
    if (const dlpack::device& on = tensor->what.on;
        !is_capsule && tensor->version.major == 1 &&
        (is_on_cuda(on) != is_on_cuda(its) || (is_on_cuda(on) && on.id != its.id))) {
        throw exchange_error("__dlpack_device__() of a " + name + " array says " + text_of(its) +
                             ", and its tensor is on " + text_of(on) + ": its package has to say the same in both");
    }
    const bool read_only = (tensor->flags & dlpack::read_only) != 0;
    array made = in_the_name_of(
        name, [&] { return imported_here(std::move(tensor), exclusive && !read_only ? nullptr : producer, where); });
    if (asked_with && !is_tied_to_it) {
        enter_from(made, *producer, *asked_with, where.get());
    }
    note_exchange(made.buffer(), {exchange_protocol::dlpack});
    return made;
}

}  // namespace weir::python
