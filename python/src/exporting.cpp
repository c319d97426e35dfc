// Arrays of Weir for other packages: __dlpack__ and __cuda_array_interface__ (rules X1, X2, X3, X7).
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "arrays.hpp"
#include "devices.hpp"
#include "dtypes.hpp"
#include "exchange.hpp"
#include "interpreter.hpp"
#include "packages.hpp"
#include "site.hpp"
#include "weir/borrow.hpp"
#include "weir/dlpack.hpp"
#include "weir/error.hpp"
#include "weir/exchange_table.hpp"
#include "weir/explain.hpp"
#include "weir/launch.hpp"
#include "weir/memory_resource.hpp"
#include "weir/sharing.hpp"
#include "wording.hpp"

namespace weir::python {

namespace {

namespace dlpack = exchange::dlpack;

/// A capsule that owns a tensor until a consumer renames it.
nb::object capsule_with(exchange::dlpack_tensor tensor) {
    PyObject* const made = PyCapsule_New(tensor.get(), versioned_name, [](PyObject* self) {
        if (PyCapsule_IsValid(self, versioned_name) != 0) {
            const exchange::dlpack_tensor unused(
                static_cast<dlpack::managed_tensor_versioned*>(PyCapsule_GetPointer(self, versioned_name)));
        }
    });
    if (made == nullptr) {
        nb::raise_python_error();
    }
    static_cast<void>(tensor.release());
    return nb::steal(made);
}

nb::object unversioned_capsule_with(exchange::dlpack_tensor tensor) {
    exchange::dlpack_tensor_unversioned made = exchange::without_version(std::move(tensor));
    PyObject* const capsule = PyCapsule_New(made.get(), plain_name, [](PyObject* self) {
        if (PyCapsule_IsValid(self, plain_name) != 0) {
            const exchange::dlpack_tensor_unversioned unused(
                static_cast<dlpack::managed_tensor*>(PyCapsule_GetPointer(self, plain_name)));
        }
    });
    if (capsule == nullptr) {
        nb::raise_python_error();
    }
    static_cast<void>(made.release());
    return nb::steal(capsule);
}

/// Whether the consumer reads structures with a version.
bool reads_versions(nb::handle max_version) {
    if (max_version.is_none()) {
        return false;
    }
    std::int64_t major = 0;
    if (PyTuple_Check(max_version.ptr()) == 0 || PyTuple_GET_SIZE(max_version.ptr()) != 2 ||
        !nb::try_cast(nb::object(max_version[0]), major)) {
        throw argument_type_error("max_version is " + repr_of(max_version) + ": pass (major, minor), or None");
    }
    return major >= 1;
}

/// On the CPU, only that no stream is named (rule X2).
void expect_no_stream(const array& x, nb::handle on_stream) {
    if (on_stream.is_none()) {
        return;
    }
    if (is_integer(on_stream)) {
        std::int64_t number = 0;
        const nb::object whole = nb::steal(PyNumber_Index(on_stream.ptr()));
        if (whole.is_valid() && nb::try_cast(whole, number) && number == -1) {
            return;
        }
        PyErr_Clear();
    }
    throw argument_error("__dlpack__(stream=" + repr_of(on_stream) + ") of " + x.to_string() + ": on " +
                         std::string(x.device().kind() == device_kind::sim ? "simulated devices" : "the CPU") +
                         " no stream of the consumer's can be waited for; pass None or -1");
}

/// The tensor for a consumer whose stream waits for what conflicts, as the array API's standard says for CUDA (rule X2). The packages that
/// may use the memory from then on are those that Weir can ask for their current stream and, if none of them works on that stream now, the
/// stream itself.
exchange::dlpack_tensor tensor_for(array& x, nb::handle on_stream, const std::optional<dlpack::device>& as,
                                   const source_location& where) {
    std::vector<std::shared_ptr<package>> consumers = packages_with_streams();
    nb::object handle = nb::borrow(on_stream);
    if (on_stream.is_none()) {
        handle = nb::int_(1);
    } else if (is_integer(on_stream)) {
        handle = nb::steal(PyNumber_Index(on_stream.ptr()));
        if (!handle.is_valid()) {
            nb::raise_python_error();
        }
        int beyond = 0;
        const long long number = PyLong_AsLongLongAndOverflow(handle.ptr(), &beyond);
        if (number == -1 && beyond == 0) {
            return released([&] { return exchange::to_dlpack(x, std::move(consumers), as); });
        }
        if (number <= 0 && beyond <= 0) {
            throw argument_error(
                "__dlpack__(stream=" + repr_of(on_stream) +
                "): pass the handle of a stream, 1 (the legacy default stream), 2 (the thread's), None for 1, "
                "or -1 for no order at all");
        }
    }
    const stream theirs = adopt(handle, x.device(), nb::none());
    std::shared_ptr<package> unknown = package_on_stream("a consumer with a stream", theirs, handle);
    return released([&] {
        const auto its = std::find_if(consumers.begin(), consumers.end(), [&](const std::shared_ptr<package>& one) {
            return one->current_stream(x.device()) == theirs;
        });
        if (its != consumers.end()) {
            unknown = std::move(*its);
            consumers.erase(its);
        }
        return exchange::to_dlpack(theirs, x, std::move(unknown), std::move(consumers), as, where);
    });
}

}  // namespace

std::optional<array> own_array_in(nb::handle capsule) {
    std::optional<array> found;
    if (PyCapsule_IsValid(capsule.ptr(), versioned_name) != 0) {
        auto* const of =
            static_cast<dlpack::managed_tensor_versioned*>(PyCapsule_GetPointer(capsule.ptr(), versioned_name));
        found = exchange::exported_array(*of);
        if (found) {
            const exchange::dlpack_tensor taken(of);
            PyCapsule_SetName(capsule.ptr(), used_versioned_name);
        }
    } else if (PyCapsule_IsValid(capsule.ptr(), plain_name) != 0) {
        auto* const of = static_cast<dlpack::managed_tensor*>(PyCapsule_GetPointer(capsule.ptr(), plain_name));
        found = exchange::exported_array(*of);
        if (found) {
            const exchange::dlpack_tensor_unversioned taken(of);
            PyCapsule_SetName(capsule.ptr(), used_plain_name);
        }
    }
    return found;
}

namespace {

/// The device that `dl_device=` names; nothing for None. Throws argument_type_error.
std::optional<dlpack::device> dl_device_from(nb::handle argument) {
    if (argument.is_none()) {
        return std::nullopt;
    }
    const auto number = [&](Py_ssize_t at) {
        const bool is_one =
            PyTuple_GET_SIZE(argument.ptr()) == 2 && PyLong_Check(PyTuple_GET_ITEM(argument.ptr(), at)) != 0;
        if (!is_one) {
            refuse_type(argument, "dl_device", "DLPack's (type, id), or None");
        }
        const long long value = PyLong_AsLongLong(PyTuple_GET_ITEM(argument.ptr(), at));
        PyErr_Clear();
        return value == static_cast<std::int32_t>(value) ? static_cast<std::int32_t>(value) : -1;
    };
    if (PyTuple_Check(argument.ptr()) == 0) {
        refuse_type(argument, "dl_device", "DLPack's (type, id), or None");
    }
    return dlpack::device{static_cast<dlpack::device_type>(number(0)), number(1)};
}

/// The array as memory of a DLPack device, if that reaches it. Throws exchange_error if this machine has no such device.
std::optional<array> seen_as(const array& x, const dlpack::device& wanted) {
    try {
        return released([&] { return exchange::view_on(x, wanted); });
    } catch (const weir::error& unknown) {
        throw exchange_error(x.to_string() + " cannot be handed over as memory of the device that DLPack names " +
                             text_of(wanted) + ": " + unknown.what());
    }
}

/// A copy on a DLPack device, of pinned or managed memory where that is what the device names; without a device, on the array's own. Throws
/// exchange_error if this machine has no such memory.
array copied_to(const array& x, const std::optional<dlpack::device>& named, const source_location& where) {
    if (!named) {
        const stream used = stream_between(x.device(), x.device());
        return released([&] { return weir::copy(on(used, where), x); });
    }
    const dlpack::device& wanted = *named;
    const dlpack::device own = exchange::dlpack_device_of(x);
    const bool stays = own.type == wanted.type && own.id == wanted.id;
    if (const std::optional<device> target =
            stays ? std::optional(x.device()) : released([&] { return exchange::device_of(wanted); })) {
        const stream used = stream_between(*target, x.device());
        array made = released([&] {
            std::optional<memory::use> scope;
            if (wanted.type == dlpack::device_type::cuda_host) {
                scope.emplace(memory::pinned(), *target);
            } else if (wanted.type == dlpack::device_type::cuda_managed) {
                scope.emplace(memory::managed(), *target);
            }
            return *target == x.device() ? weir::copy(on(used, where), x) : to(on(used, where), x, *target);
        });
        if (std::optional<array> seen = seen_as(made, wanted)) {
            return *std::move(seen);
        }
    }
    throw exchange_error(x.to_string() + " cannot be handed over as memory of the device that DLPack names " +
                         text_of(wanted) + ", which weir does not have here: leave dl_device out, or name one of " +
                         "weir.devices()");
}

nb::object to_dlpack(const array& self, nb::handle on_stream, nb::handle max_version, nb::handle dl_device,
                     nb::handle copy) {
    const source_location where = here();
    const bool versioned = reads_versions(max_version);
    const std::optional<dlpack::device> wanted = dl_device_from(dl_device);
    const std::optional<bool> copied = copy_wanted(copy);
    std::optional<array> seen = wanted ? seen_as(self, *wanted) : std::optional(self);
    if (!seen && !on_stream.is_none()) {
        throw argument_error("__dlpack__() with both dl_device= of another device and stream=: leave stream out");
    }
    if (!seen && copied == false) {
        throw copy_error(self.to_string() + " is not memory of the device that DLPack names " + text_of(*wanted) +
                         ": it has to be copied, and copy=False forbids that");
    }
    const bool is_copy = !seen || copied.value_or(false);
    if (!versioned && !is_copy && !may_write(*seen)) {
        throw exchange_error(seen->to_string() +
                             " is read-only, which a capsule without a version cannot say: ask with "
                             "max_version=(1, 0), or take a copy");
    }
    if (is_copy) {
        seen = copied_to(self, wanted, where);
    }
    array& x = *seen;
    exchange_record how{exchange_protocol::dlpack, true, is_copy, false};
    exchange::dlpack_tensor tensor;
    if (x.device().kind() == device_kind::cuda) {
        tensor = tensor_for(x, on_stream, wanted, where);
        note_exchange(x.buffer(), how);
    } else {
        expect_no_stream(x, on_stream);
        // Shared before it is waited for: what other threads enqueue meanwhile is over when their calls return.
        tensor = released([&] { return exchange::to_dlpack(x, {host_consumer()}, wanted); });
        await_for_host(x, how, where);
    }
    if (is_copy) {
        how.host_blocked = last_exchange(x.buffer()).host_blocked;
        note_exchange(self.buffer(), how);
        tensor->flags |= dlpack::is_copied;
    }
    return versioned ? capsule_with(std::move(tensor)) : unversioned_capsule_with(std::move(tensor));
}

/// A stream that consumers of the CUDA Array Interface wait for before they use the elements, and into which they put their work, or
/// which waits for their work. One for each device, which never changes.
struct interface_side {
    stream by;
    std::shared_ptr<package> as_package;
};

const interface_side& interface_side_of(const device& on) {
    static auto& all = *new std::map<int, interface_side>();
    static nb::ft_mutex mutex;  // guards `all` where there is no GIL
    const nb::ft_lock_guard lock(mutex);
    if (const auto found = all.find(on.id()); found != all.end()) {
        return found->second;
    }
    const stream made = released([&] { return stream(on); });
    return all
        .try_emplace(on.id(), interface_side{made, package_working_on("a consumer of the CUDA Array Interface", made)})
        .first->second;
}

/// Version 3, for CUDA devices. Consumers wait for its stream. Since the interface does not say when a consumer's work ends, the packages
/// that Weir can ask are tied to the memory for as long as it lives.
nb::object cuda_array_interface(array& self) {
    // Consumers ask hasattr(), which passes on every other exception.
    const auto has_none = [&](const std::string& why) {
        PyErr_SetString(PyExc_AttributeError,
                        ("__cuda_array_interface__: " + in_words_of_python(self.to_string()) + why).c_str());
        nb::raise_python_error();
    };
    if (self.device().kind() != device_kind::cuda) {
        has_none(" is not on a CUDA device");
    }
    if (interface_name_of(self.dtype()).empty()) {
        has_none(" has elements that the interface does not have: use DLPack (from_dlpack)");
    }
    const source_location where = here();
    const interface_side& side = interface_side_of(self.device());
    const stream& by = side.by;
    const std::vector<std::shared_ptr<package>> consumers = packages_with_streams();
    const bool writes = may_write(self);
    const package_use use = writes ? package_use::writes : package_use::reads;
    released([&] {
        // The first one before the stream waits, so that no other thread's work is missed.
        exchange::share_for_good(weir::detail::key, self, {side.as_package}, use);
        exchange::hand_over(by, self, use, where);
        exchange::share_for_good(weir::detail::key, self, consumers, use);
    });
    note_exchange(self.buffer(), {exchange_protocol::cuda_array_interface, true, false, false});
    nb::dict made;
    made["shape"] = nb::cast(self).attr("shape");
    made["strides"] = self.is_contiguous() ? nb::none() : nb::object(nb::cast(self).attr("strides"));
    made["typestr"] = interface_name_of(self.dtype());
    made["data"] =
        nb::make_tuple(reinterpret_cast<std::uintptr_t>(self.size() == 0 ? nullptr : self.device_data()), !writes);
    made["stream"] = reinterpret_cast<std::uintptr_t>(released([&] { return by.handle(); }));
    made["version"] = 3;
    return made;
}

}  // namespace

bool may_write(const array& x) { return x.has_own_elements() && !is_read_only(x.buffer()); }

void await_for_host(const array& x, exchange_record how, const source_location& where) {
    const bool writes = may_write(x);
    how.host_blocked = has_pending(x, writes);
    note_exchange(x.buffer(), how);
    waiting([&] {
        const host_access reads(detail::key, x.buffer(), x.footprint(detail::key), order::access_mode::read, where);
        if (writes) {
            const host_access changes(detail::key, x.buffer(), x.footprint(detail::key), order::access_mode::write,
                                      where);
        }
    });
}

void bind_exporting(nb::class_<array>& cls) {
    cls.def(
           "__dlpack__", to_dlpack, nb::kw_only(), nb::arg("stream").none() = nb::none(),
           nb::arg("max_version").none() = nb::none(), nb::arg("dl_device").none() = nb::none(),
           nb::arg("copy").none() = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: "
                   "tuple[int, int] | None = None, copy: bool | None = None) -> Any"),
           "A DLPack capsule with the array's memory, for another package's from_dlpack. On the CPU it blocks until "
           "what "
           "conflicts is over, and takes no stream but None and -1. While the consumer has the memory, operations of "
           "Weir "
           "that conflict with what it may do are over when their calls return. Versioned if max_version is at least "
           "(1, "
           "0). Raises ArgumentError, CopyError, ExchangeError.")
        .def(
            "__dlpack_device__",
            [](const array& self) {
                const dlpack::device on = exchange::dlpack_device_of(self);
                return nb::make_tuple(static_cast<std::int32_t>(on.type), on.id);
            },
            nb::sig("def __dlpack_device__(self) -> tuple[int, int]"), "The device as DLPack names it: (type, id).")
        .def_prop_ro(
            "__cuda_array_interface__", cuda_array_interface,
            nb::sig("def __cuda_array_interface__(self) -> dict[str, Any]"),
            "Version 3 of the CUDA Array Interface, of an array on a CUDA device (AttributeError elsewhere). Its "
            "stream waits for what conflicts. The interface does not say when a consumer is done, so operations "
            "on the memory come after the current streams of torch, CuPy and Numba from then on: DLPack "
            "(from_dlpack) costs less where the consumer takes it.");
}

}  // namespace weir::python
