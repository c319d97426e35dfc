#include "kernel_launch.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "accesses.hpp"
#include "arguments.hpp"
#include "devices.hpp"
#include "events.hpp"
#include "interpreter.hpp"
#include "kernel_arguments.hpp"
#include "site.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "wording.hpp"

namespace weir::python {

namespace {

/// A launch on its way into the driver's queue, which copies the arguments.
template <class Slots>
struct launch_body {
    const detail::kernel_code* code;
    detail::launch_shape shape;
    std::size_t count;
    Slots slots;

    void operator()(detail::queue_handle into) {
        std::array<void*, few_arguments> few;
        std::vector<void*> many;
        void** addresses = few.data();
        if (count > few.size()) {
            many.resize(count);
            addresses = many.data();
        }
        for (std::size_t i = 0; i < count; ++i) {
            addresses[i] = slots[i].bytes;
        }
        detail::put_launch(*code, shape, addresses, into);
    }
    static constexpr std::size_t few_arguments = 16;
};

constexpr std::size_t few_slots = 12;

/// The accesses of one launch. Room for a few is there, and is filled as far as it is used.
class access_list {
public:
    /// Throws std::bad_alloc.
    explicit access_list(std::size_t most) {
        if (most > few) {
            many_.reserve(most);
        }
        uses_many_ = most > few;
    }
    ~access_list() { std::destroy_n(in_place(), count_); }
    access_list(const access_list&) = delete;
    access_list& operator=(const access_list&) = delete;

    /// Not more than `most`.
    void add(runtime::access_request&& one) noexcept {
        if (uses_many_) {
            many_.push_back(std::move(one));
        } else {
            ::new (static_cast<void*>(room_.data() + count_ * sizeof one)) runtime::access_request(std::move(one));
            ++count_;
        }
    }
    [[nodiscard]] std::span<const runtime::access_request> all() const noexcept {
        return uses_many_ ? std::span(many_) : std::span(in_place(), count_);
    }

private:
    static constexpr std::size_t few = 8;
    using request = runtime::access_request;

    [[nodiscard]] request* in_place() noexcept { return std::launder(reinterpret_cast<request*>(room_.data())); }
    [[nodiscard]] const request* in_place() const noexcept {
        return std::launder(reinterpret_cast<const request*>(room_.data()));
    }

    alignas(request) std::array<std::byte, few * sizeof(request)> room_;
    std::size_t count_ = 0;
    std::vector<request> many_;
    bool uses_many_;
};

completion put(const py_kernel& what, const stream& to, const detail::launch_shape& shape,
               std::span<const argument_slot> slots, std::span<const runtime::access_request> accesses,
               std::span<const completion> after, const runtime::site& site) {
    const auto submit = [&](auto body) {
        return released([&] {
            return detail::with_task(detail::native_task{std::move(body)}, [&](detail::task_ref work) {
                return runtime::submit(to.state(), {accesses, after, work, site, runtime::work_kind::device});
            });
        });
    };
    if (slots.size() <= few_slots) {
        launch_body<std::array<argument_slot, few_slots>> body{&what.code.code(), shape, slots.size(), {}};
        std::copy(slots.begin(), slots.end(), body.slots.begin());
        return submit(std::move(body));
    }
    return submit(launch_body<std::vector<argument_slot>>{&what.code.code(), shape, slots.size(),
                                                          std::vector<argument_slot>(slots.begin(), slots.end())});
}

}  // namespace

py_kernel::py_kernel(kernel its)
    : code(std::move(its)), label(interned(code.name())), parameters(detail::declared_parameters(code)) {
    arrays = static_cast<std::size_t>(
        std::count_if(parameters.begin(), parameters.end(), [](const auto& one) { return one.is_array; }));
}

std::string repr(const py_kernel& self) { return in_words_of_python(self.code.to_string()); }

dimensions dimensions_from(nb::handle argument, const char* name) {
    if (PyTuple_Check(argument.ptr()) == 0 && PyList_Check(argument.ptr()) == 0) {
        return integer_from(argument, name);
    }
    const std::size_t count = nb::len(argument);
    if (count == 0 || count > 3) {
        throw argument_error(std::string(name) + " is " + nb::repr(argument).c_str() +
                             ": pass a number, or a tuple of one to three of them");
    }
    std::array<std::int64_t, 3> along{1, 1, 1};
    for (std::size_t i = 0; i < count; ++i) {
        along[i] = integer_from(argument[i], name);
    }
    return {along[0], along[1], along[2]};
}

detail::launch_shape shape_from(const py_kernel& of, nb::handle grid, nb::handle block, nb::handle shared) {
    const std::int64_t bytes = integer_from(shared, "shared");
    if (bytes < 0) {
        throw argument_error("shared is " + std::to_string(bytes) + ": pass a number of bytes, from 0 on");
    }
    return detail::checked_shape(
        of.code, {dimensions_from(grid, "grid"), dimensions_from(block, "block"), static_cast<std::size_t>(bytes)});
}

nb::object launch(const py_kernel& what, const launch_place& at, std::span<PyObject* const> arguments) {
    const std::size_t count = what.parameters.size();
    if (arguments.size() != count) {
        throw argument_error("the kernel " + repr(what) + " has " + std::to_string(count) + " parameters, and got " +
                             std::to_string(arguments.size()) + " arguments");
    }
    const source_location where = here();
    std::array<argument_slot, few_slots> few_values;
    std::vector<argument_slot> many_values(count > few_slots ? count : 0);
    const std::span<argument_slot> slots(many_values.empty() ? few_values.data() : many_values.data(), count);
    access_list accesses(what.arrays);
    for (std::size_t i = 0; i < count; ++i) {
        const detail::declared_parameter& as = what.parameters[i];
        const nb::handle given = arguments[i];
        if (!as.is_array) {
            store_number(given, what.code, as, i, slots[i]);
            continue;
        }
        const array& x = array_argument(given, what.code, as, i);
        if (as.mode == order::access_mode::write) {
            detail::expect_own_elements(x);
        }
        void* const address = x.device_data();
        std::memcpy(slots[i].bytes, &address, sizeof address);
        accesses.add({x.buffer().resource(), x.footprint(), as.mode, as.overwrites});
    }
    const stream to = stream_from(at.on, what.code.device());
    detail::expect_stream(what.code, to);
    const std::vector<completion> after = completions_from(at.after);
    const runtime::site site{what.label, where};
    const completion done = put(what, to, at.shape, slots, accesses.all(), after, site);
    if (at.wait) {
        waiting([&] { done.synchronize(where); });
    }
    return event_of(done, to);
}

}  // namespace weir::python
