// Weir's own C exchange table (rules X1, X7; scenario A18): what other libraries call instead of __dlpack__.
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "devices.hpp"
#include "errors.hpp"
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
#include "wording.hpp"

namespace weir::python {

namespace {

namespace dlpack = exchange::dlpack;

/// Runs code of Weir for a C caller, which no exception may reach: 0, or -1 with a Python exception set. Takes the GIL.
template <class F>
int for_c_caller(F&& fn) noexcept {
    if (interpreter::is_ending() && PyGILState_GetThisThreadState() == nullptr) {
        return -1;  // nothing of Python may be used any more
    }
    const nb::gil_scoped_acquire gil;
    try {
        std::forward<F>(fn)();
        return 0;
    } catch (...) {
        raise_handled();
        return -1;
    }
}

/// The tensor of an array for a consumer that works on the work stream. On the CPU there is none: it blocks until what
/// conflicts is over. The tensor names the device `as`, for which `view_on` must have an array; without, the array's own.
exchange::dlpack_tensor tensor_of(array& x, const source_location& where,
                                  const std::optional<dlpack::device>& as = std::nullopt) {
    if (x.device().kind() == device_kind::cuda) {
        const stream work = current_in_context(x.device());
        std::vector<std::shared_ptr<package>> others = packages_with_streams();
        exchange::dlpack_tensor made = released([&] { return exchange::to_dlpack(work, x, std::move(others), where); });
        made->what.on = as.value_or(made->what.on);
        note_exchange(x.buffer(), {exchange_protocol::dlpack_table, true, false, false});
        return made;
    }
    exchange::dlpack_tensor made = released([&] { return exchange::to_dlpack(x, {host_consumer()}, as); });
    await_for_host(x, {exchange_protocol::dlpack_table, true, false, false}, where);
    return made;
}

int from_object(void* object, dlpack::managed_tensor_versioned** made) {
    return for_c_caller([&] {
        const nb::handle x(static_cast<PyObject*>(object));
        if (!nb::isinstance<array>(x)) {
            throw argument_type_error("weir's exchange table takes weir.Array, and got " + repr_of(x));
        }
        *made = tensor_of(nb::cast<array&>(x), here()).release();
    });
}

/// An array of another library's memory: its work is in the work stream, where there is one.
array array_of(exchange::dlpack_tensor tensor, const source_location& where) {
    if (std::optional<array> own = exchange::exported_array(*tensor)) {
        return std::move(*own);
    }
    exchange::dlpack_tensor taken = owned_by_python(tensor.release());
    std::shared_ptr<package> from = package_named("the producer of a tensor");
    if (taken->version.major == 1 && is_on_cuda(taken->what.on) && taken->what.on.id >= 0) {
        const device on = released([&] { return cuda(taken->what.on.id); });
        from = std::make_shared<exchange::stream_package>(current_in_context(on));
    }
    array made = released([&] { return exchange::from_dlpack(std::move(taken), std::move(from), where); });
    note_exchange(made.buffer(), {exchange_protocol::dlpack_table});
    return made;
}

int to_object(dlpack::managed_tensor_versioned* from, void** made) {
    return for_c_caller([&] {
        if (from == nullptr) {
            throw argument_error("weir's exchange table got no tensor");
        }
        *made = nb::cast(array_of(exchange::dlpack_tensor(from), here())).release().ptr();
    });
}

[[noreturn]] void refuse_device(const dlpack::device& on) {
    throw exchange_error("weir has no device of DLPack's type " + std::to_string(static_cast<std::int32_t>(on.type)) +
                         " with the number " + std::to_string(on.id));
}

/// The stream that consumers of arrays on that device are to launch on; null where there are no streams.
int current_work_stream(dlpack::device_type type, std::int32_t id, void** handle) {
    return for_c_caller([&] {
        *handle = nullptr;
        if (!is_on_cuda({type, id})) {
            if (!exchange::device_of({type, id})) {
                refuse_device({type, id});
            }
            return;
        }
        if (id < 0) {
            throw exchange_error("weir has no CUDA device with the number " + std::to_string(id));
        }
        const device on = released([&] { return cuda(id); });
        const stream work = current_in_context(on);
        const source_location where = here();
        *handle = released([&] {
            exchange::announce_work_stream(work, where);
            return work.handle();
        });
    });
}

/// A new array of the prototype's shape and type, in memory of the prototype's device (pinned and managed memory included), for a consumer that
/// works on the work stream.
array array_like(const dlpack::tensor& prototype) {
    const std::optional<device> on = released([&] { return exchange::device_of(prototype.on); });
    if (!on) {
        refuse_device(prototype.on);
    }
    if (prototype.dimensions < 0 || (prototype.dimensions > 0 && prototype.shape == nullptr)) {
        throw exchange_error("a prototype has " + std::to_string(prototype.dimensions) + " dimensions" +
                             (prototype.dimensions < 0 ? "" : " and no shape"));
    }
    const shape extents(std::span<const std::int64_t>(prototype.shape, static_cast<std::size_t>(prototype.dimensions)));
    const dtype type = from_dlpack_dtype(prototype.type);
    const stream work = current_in_context(*on);
    const std::optional<array> made = released([&] {
        std::optional<memory::use> scope;
        if (prototype.on.type == dlpack::device_type::cuda_host) {
            scope.emplace(memory::pinned(), *on);
        } else if (prototype.on.type == dlpack::device_type::cuda_managed) {
            scope.emplace(memory::managed(), *on);
        }
        return exchange::view_on(empty(extents, type, work), prototype.on);
    });
    if (!made) {
        refuse_device(prototype.on);
    }
    return *made;
}

int allocate(dlpack::tensor* prototype, dlpack::managed_tensor_versioned** made, void* context,
             void (*set_error)(void* context, const char* kind, const char* message)) {
    const auto refuse = [&](const char* kind, const std::string& message) {
        if (set_error != nullptr) {
            set_error(context, kind, message.c_str());
        }
        return -1;
    };
    if (interpreter::is_ending()) {
        return refuse("RuntimeError", "weir allocates nothing any more: the interpreter is ending");
    }
    try {
        const nb::gil_scoped_acquire gil;
        array like = array_like(*prototype);
        *made = tensor_of(like, here(), prototype->on).release();
        return 0;
    } catch (const out_of_memory& error) {
        return refuse("MemoryError", in_words_of_python(error.what()));
    } catch (const weir::error& error) {
        return refuse("BufferError", in_words_of_python(error.what()));
    } catch (const std::bad_alloc&) {
        return refuse("MemoryError", "weir has no memory left");
    } catch (const std::exception& error) {
        return refuse("RuntimeError", error.what());
    } catch (...) {
        return refuse("RuntimeError", "an exception of an unknown type");
    }
}

/// There is no `borrow`: a tensor without an owner does not say when its user is done, so that what Weir enqueues later could not
/// be ordered with it.
constexpr dlpack::exchange_table own_table{{dlpack::version{}, nullptr}, allocate, from_object, to_object, nullptr,
                                           current_work_stream};

}  // namespace

void bind_exchange_table(nb::class_<array>& cls) { cls.attr(table_attribute) = nb::capsule(&own_table, table_name); }

}  // namespace weir::python
