#include "kernel_launch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "accesses.hpp"
#include "arguments.hpp"
#include "devices.hpp"
#include "events.hpp"
#include "interpreter.hpp"
#include "kernel_arguments.hpp"
#include "site.hpp"
#include "weir/detail/launch_arguments.hpp"
#include "weir/detail/submission.hpp"
#include "weir/error.hpp"
#include "wording.hpp"

namespace weir::python {

namespace {

/// The arguments of one launch. Most launches have few, and allocate nothing for them.
class argument_list {
public:
    explicit argument_list(std::size_t count) {
        if (count > few) {
            many_.reserve(count);
        }
    }
    /// Adds the argument that `given` is. Throws as argument_from.
    void add(nb::handle given, const kernel& of) {
        if (detail::takes_structure(of, all().size())) {
            add(structure_from(given, of, all().size(), kept_));
        } else {
            add(argument_from(given, of, all().size(), kept_));
        }
    }
    [[nodiscard]] std::span<const kernel_argument> all() const noexcept {
        if (many_.capacity() != 0) {
            return many_;
        }
        return {std::launder(reinterpret_cast<const kernel_argument*>(room_)), count_};
    }

private:
    void add(const kernel_argument& one) {
        if (many_.capacity() != 0) {
            many_.push_back(one);
        } else {
            ::new (static_cast<void*>(room_ + count_ * sizeof(kernel_argument))) kernel_argument(one);
            ++count_;
        }
    }

    static constexpr std::size_t few = 12;
    static_assert(std::is_trivially_destructible_v<kernel_argument>);

    alignas(kernel_argument) std::byte room_[few * sizeof(kernel_argument)];
    std::size_t count_ = 0;
    std::vector<nb::object> kept_;  ///< arrays of other packages, and structures, to which the arguments refer
    std::vector<kernel_argument> many_;
};

/// Releases the GIL while the operation is enqueued, and not before: arguments are looked at under it.
completion submit_released(runtime::stream_state& to, const runtime::submission& what) {
    return released([&] { return runtime::submit(to, what); });
}

}  // namespace

py_kernel::py_kernel(kernel its) : code(std::move(its)), label(interned(code.name())) {}

std::string repr(const py_kernel& self) { return in_words_of_python(self.code.to_string()); }

dimensions dimensions_from(nb::handle argument, const char* name) {
    if (PyTuple_Check(argument.ptr()) == 0 && PyList_Check(argument.ptr()) == 0) {
        return integer_from(argument, name);
    }
    const std::size_t count = nb::len(argument);
    if (count == 0 || count > 3) {
        throw argument_error(std::string(name) + " is " + repr_of(argument) +
                             ": pass a number, or a tuple of one to three of them");
    }
    std::array<std::int64_t, 3> along{1, 1, 1};
    for (std::size_t i = 0; i < count; ++i) {
        along[i] = integer_from(argument[i], name);
    }
    return {along[0], along[1], along[2]};
}

std::size_t shared_bytes_from(nb::handle argument) {
    const std::int64_t bytes = integer_from(argument, "shared");
    if (bytes < 0) {
        throw argument_error("shared is " + std::to_string(bytes) + ": pass a number of bytes, from 0 on");
    }
    return static_cast<std::size_t>(bytes);
}

launch_config config_from(const py_kernel& of, const launch_numbers& given) {
    launch_config config{dimensions_from(given.grid, "grid"), dimensions_from(given.block, "block"),
                         shared_bytes_from(given.shared)};
    if (given.cluster.is_valid() && !given.cluster.is_none()) {
        config.cluster = dimensions_from(given.cluster, "cluster");
    }
    config.cooperative = given.cooperative;
    const auto check = [&] { static_cast<void>(detail::checked_shape(of.code, config)); };
    if (detail::allows_shared_bytes(of.code, config.shared_bytes) && !config.cooperative) {
        check();
    } else {
        released(check);  // asks the driver, which may block (rule S1)
    }
    return config;
}

nb::object launch(const py_kernel& what, const launch_place& at, std::span<PyObject* const> arguments) {
    detail::expect_argument_count(what.code, arguments.size());
    const source_location where = here();
    argument_list converted(arguments.size());
    for (PyObject* const given : arguments) {
        converted.add(given, what.code);
    }
    const stream to = stream_from(at.on, what.code.device());
    const std::vector<completion> after = completions_from(at.after);
    std::vector<runtime::access_request> besides;
    std::vector<nb::object> listed;  // kept until the launch is enqueued
    if (at.reads.is_valid()) {
        listed = accesses_besides(at.reads, at.writes, besides, where);
    }
    const completion done = detail::launch_arguments(what.code, to, at.config, converted.all(),
                                                     {after, {what.label, where}, besides}, submit_released);
    if (at.wait) {
        waiting([&] { done.synchronize(where); });
    }
    return event_of(done, to);
}

}  // namespace weir::python
