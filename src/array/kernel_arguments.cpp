// Launches with arguments that are known only at run time: checked against the signature, and packed as the kernel gets them.
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "array/kernel_code.hpp"
#include "array/kernel_messages.hpp"
#include "array/kernel_signature.hpp"
#include "array/visit.hpp"
#include "frontier/small_vector.hpp"
#include "weir/access.hpp"
#include "weir/array.hpp"
#include "weir/buffer.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/launch_arguments.hpp"
#include "weir/detail/launch_shape.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/float16.hpp"
#include "weir/launch.hpp"
#include "weir/scalar.hpp"
#include "weir/stream.hpp"

namespace weir::detail {

namespace {

using kernels::parameter;
using kernels::parameter_use;

/// One argument, in the form that the kernel gets.
struct argument_slot {
    alignas(16) std::array<std::byte, 16> bytes;
};

constexpr std::size_t few_arguments = 12;

/// The slots of a few numbers and arrays.
struct few_slots {
    std::array<argument_slot, few_arguments> all;

    void make_for(std::span<const kernel_argument> /*arguments*/) noexcept {}
    [[nodiscard]] argument_slot& of(std::size_t position) noexcept { return all[position]; }
};

/// The slots of any arguments.
struct many_slots {
    std::vector<argument_slot> all;
    std::vector<std::size_t> first;  ///< of each argument

    void make_for(std::span<const kernel_argument> arguments) {
        std::size_t count = 0;
        first.reserve(arguments.size());
        for (const kernel_argument& one : arguments) {
            first.push_back(count);
            count += 1 + one.structure_bytes(key).size() / sizeof(argument_slot);
        }
        all.resize(count);
    }
    [[nodiscard]] argument_slot& of(std::size_t position) noexcept { return all[first[position]]; }
};

/// A launch to be put into the driver's queue, which copies the arguments. `Slots` is an array for a few arguments, since such
/// a body needs no destructor and takes the fast path of `submit`, and a vector for more, and for structures, which may take several
/// slots.
template <class Slots>
struct slots_launch {
    const kernel_code* code;
    launch_shape shape;
    std::size_t count;
    Slots slots;

    void operator()(queue_handle into) {
        small_vector<void*, few_arguments> addresses;
        for (std::size_t i = 0; i < count; ++i) {
            addresses.push_back(slots.of(i).bytes.data());
        }
        put_launch(*code, shape, addresses.begin(), into);
    }
};

template <class T>
fit put(T value, argument_slot& to) noexcept {
    static_assert(sizeof(T) <= sizeof(to.bytes));
    std::memcpy(to.bytes.data(), &value, sizeof value);
    return fit::fits;
}

/// Whether the conversion keeps a finite number finite.
template <class Real>
bool is_in_range(double wide, Real narrow) noexcept {
    return std::isfinite(static_cast<double>(narrow)) || !std::isfinite(wide);
}

template <class Real>
fit put_real(double value, argument_slot& to) noexcept {
    Real narrow;
    if constexpr (std::is_same_v<Real, bfloat16>) {
        narrow = bfloat16(static_cast<float>(value));
    } else {
        narrow = static_cast<Real>(value);
    }
    return is_in_range(value, narrow) ? put(narrow, to) : fit::out_of_range;
}

template <class Part>
fit put_complex(const std::complex<double>& value, argument_slot& to) noexcept {
    const std::complex<Part> narrow(static_cast<Part>(value.real()), static_cast<Part>(value.imag()));
    const bool fits = is_in_range(value.real(), narrow.real()) && is_in_range(value.imag(), narrow.imag());
    return fits ? put(narrow, to) : fit::out_of_range;
}

/// Stores a number of the type `Held` as a parameter of the type `T`. Only conversions to a higher kind are made, as in NumPy's
/// "safe" casting.
template <class T, class Held>
fit put_number(const Held& held, argument_slot& to) noexcept {
    constexpr bool is_whole = std::is_integral_v<Held>;
    constexpr bool is_real_number = is_whole || std::is_same_v<Held, double>;
    if constexpr (std::is_same_v<T, bool>) {
        if constexpr (is_whole) {
            return put(held != Held{}, to);
        }
    } else if constexpr (std::is_same_v<Held, bool>) {
        return put_number<T>(static_cast<std::int64_t>(held), to);
    } else if constexpr (std::is_integral_v<T>) {
        if constexpr (is_whole) {
            return std::in_range<T>(held) ? put(static_cast<T>(held), to) : fit::out_of_range;
        } else if constexpr (is_real_number) {
            // Bindings pass integers beyond all integer types as real numbers, rounded. Numbers with a fraction are within these bounds.
            return std::isfinite(held) && (held > 0x1p63 || held <= -0x1p63) ? fit::out_of_range : fit::other_kind;
        }
    } else if constexpr (is_complex_element<T>) {
        if constexpr (is_real_number) {
            return put_complex<typename T::value_type>({static_cast<double>(held), 0.0}, to);
        } else {
            return put_complex<typename T::value_type>(held, to);
        }
    } else if constexpr (is_real_number) {
        return put_real<T>(static_cast<double>(held), to);
    }
    return fit::other_kind;
}

fit put_as(dtype type, const scalar& number, argument_slot& to) {
    return visit(type, [&]<class T>(std::type_identity<T>) {
        return std::visit([&](const auto& held) { return put_number<T>(held, to); }, number.value());
    });
}

/// Checks one launch, argument by argument.
class packing {
public:
    explicit packing(const kernel& what) noexcept : what_(what) {}

    /// Fills `slots`; there are as many arguments as parameters.
    template <class Slots>
    void pack(std::span<const kernel_argument> arguments, Slots& slots) {
        const parameter* as = what_.parameters(detail::key)->all.data();
        accesses_.reserve(arguments.size());
        for (; position_ < arguments.size(); ++position_, ++as) {
            const kernel_argument& one = arguments[position_];
            argument_slot& to = slots.of(position_);
            if (one.of_array(key) != nullptr) {
                put_array(one, *as, to);
            } else if (one.is_null(key)) {
                put_no_array(*as, to);
            } else if (one.structure_bytes(key).data() != nullptr) {
                put_structure(one, *as, to);
            } else {
                put_number_of(one, *as, to);
            }
        }
    }

    void add(std::span<const runtime::access_request> besides) {
        for (const runtime::access_request& one : besides) {
            accesses_.push_back(one);
        }
    }
    [[nodiscard]] std::span<const runtime::access_request> accesses() const noexcept { return accesses_; }

private:
    void put_number_of(const kernel_argument& one, const parameter& as, argument_slot& to) {
        const auto text = [&] { return one.number(key).to_string(); };
        if (as.use != parameter_use::value) {
            kernels::refuse_type(what_, position_, as, text());
        }
        if (one.type(key) && *one.type(key) != *as.type) {
            kernels::refuse_type(what_, position_, as, text() + " of " + name_of(*one.type(key)));
        }
        switch (put_as(*as.type, one.number(key), to)) {
            case fit::fits:
                break;
            case fit::other_kind:
                kernels::refuse_type(what_, position_, as, text());
            case fit::out_of_range:
                kernels::refuse_range(what_, position_, as, text());
        }
    }

    void put_no_array(const parameter& as, argument_slot& to) {
        if (!is_array(as)) {
            kernels::refuse_type(what_, position_, as, "nullptr");
        }
        put(nullptr, to);
    }

    void put_structure(const kernel_argument& one, const parameter& as, argument_slot& to) {
        const std::span<const std::byte> bytes = one.structure_bytes(key);
        if (as.use != parameter_use::structure) {
            kernels::refuse_type(what_, position_, as, "a structure of " + std::to_string(bytes.size()) + " bytes");
        }
        const auto& sizes = what_.code(detail::key).parameter_bytes();
        if (sizes && (*sizes)[position_] != bytes.size()) {
            kernels::refuse_size(what_, position_, as, bytes.size(), (*sizes)[position_]);
        }
        // The next slots are the rest of the structure's.
        std::memcpy(static_cast<void*>(&to), bytes.data(), bytes.size());
    }

    void put_array(const kernel_argument& one, const parameter& as, argument_slot& to) {
        const array& x = *one.of_array(key);
        if (!is_array(as) || (as.type && x.dtype() != *as.type)) {
            kernels::refuse_type(what_, position_, as, "an array of " + name_of(x.dtype()));
        }
        if (one.used(key) != kernel_argument::use::declared && use_of(one) != as.use) {
            kernels::refuse_use(what_, position_, as, use_of(one));
        }
        if (!x.is_contiguous()) {
            throw argument_error(
                kernels::start_of_message(what_, position_, as) +
                "an array whose elements do not lie one after the other: the kernel gets the address of "
                "the first alone; pass contiguous(on, x), or the array that it is a part of");
        }
        const auto mode = as.use == parameter_use::in ? order::access_mode::read : order::access_mode::write;
        accesses_.push_back(
            {x.buffer().resource(detail::key), x.used(detail::key), mode, as.use == parameter_use::out});
        put(x.device_data(), to);
    }

    static parameter_use use_of(const kernel_argument& one) noexcept {
        switch (one.used(key)) {
            case kernel_argument::use::in:
                return parameter_use::in;
            case kernel_argument::use::out:
                return parameter_use::out;
            default:
                return parameter_use::inout;
        }
    }

    const kernel& what_;
    std::size_t position_ = 0;
    small_vector<runtime::access_request, 8> accesses_;
};

const std::vector<parameter>& parameters_of(const kernel& what) {
    if (what.parameters(detail::key) == nullptr) {
        throw state_error("the parameters of the kernel " + what.name() +
                          " are not declared: see kernel::with_signature");
    }
    return what.parameters(detail::key)->all;
}

const parameter& parameter_at(const kernel& what, std::size_t position) { return parameters_of(what).at(position); }

}  // namespace

std::vector<declared_parameter> read_signature(std::string_view text) {
    std::vector<declared_parameter> all;
    for (const parameter& one : kernels::parse_signature(text)) {
        declared_parameter made{one.name, one.type, std::nullopt};
        switch (one.use) {
            case parameter_use::in:
                made.array = kernel_argument::use::in;
                break;
            case parameter_use::out:
                made.array = kernel_argument::use::out;
                break;
            case parameter_use::inout:
                made.array = kernel_argument::use::inout;
                break;
            case parameter_use::structure:
                throw argument_error(
                    "the parameter \"" + to_string(one) +
                    "\" is a structure, which kernels of CUDA devices take alone: pass its fields as numbers");
            case parameter_use::value:
                break;
        }
        all.push_back(std::move(made));
    }
    return all;
}

fit store_argument(dtype type, const scalar& number, std::byte* to) {
    argument_slot slot{};
    const fit found = put_as(type, number, slot);
    std::memcpy(to, slot.bytes.data(), slot.bytes.size());
    return found;
}

bool takes_structure(const kernel& what, std::size_t position) noexcept {
    const auto* const declared = what.parameters(detail::key);
    return declared != nullptr && declared->has_structures && position < declared->all.size() &&
           declared->all[position].use == parameter_use::structure;
}

bool allows_shared_bytes(const kernel& what, std::size_t bytes) noexcept {
    return what.code(detail::key).allows_shared_bytes(bytes);
}

void expect_argument_count(const kernel& what, std::size_t count) {
    if (const std::size_t has = parameters_of(what).size(); has != count) {
        kernels::refuse_count(what, count, has);
    }
}

void refuse_argument(const kernel& what, std::size_t position, const std::string& got) {
    kernels::refuse_type(what, position, parameter_at(what, position), got);
}

void refuse_argument_range(const kernel& what, std::size_t position, const std::string& got) {
    kernels::refuse_range(what, position, parameter_at(what, position), got);
}

namespace {

using submit_function = completion (*)(runtime::stream_state&, const runtime::submission&);

/// Enqueues the launch with its arguments in `Slots`: few_slots, or many_slots.
template <class Slots>
completion launch_in_slots(const kernel& what, const stream_ref& on, const launch_config& config,
                           std::span<const kernel_argument> arguments, const launch_site& at, submit_function submit) {
    native_task<slots_launch<Slots>> task{{&what.code(detail::key), {}, arguments.size(), {}}};
    packing packed(what);
    try {
        task.body.shape = checked_shape(what, config);
        task.body.slots.make_for(arguments);
        packed.pack(arguments, task.body.slots);
    } catch (const error& refused) {
        throw_with_place(refused, what, at.site);
        throw;
    }
    packed.add(at.besides);
    const auto enqueue = [&](auto one) {
        return with_task(std::move(one), [&](task_ref work) {
            return submit(on.state(key), {packed.accesses(), at.after, work, at.site, runtime::work_kind::device});
        });
    };
    return config.waits_for_others ? enqueue(foreign_task(std::move(task.body))) : enqueue(std::move(task));
}

}  // namespace

completion launch_arguments(const kernel& what, const stream_ref& on, const launch_config& config,
                            std::span<const kernel_argument> arguments, const launch_site& at,
                            completion (*submit)(runtime::stream_state&, const runtime::submission&)) {
    try {
        expect_stream(what, on);
        expect_argument_count(what, arguments.size());
    } catch (const error& refused) {
        throw_with_place(refused, what, at.site);
        throw;
    }
    return arguments.size() <= few_arguments && !what.parameters(detail::key)->has_structures
               ? launch_in_slots<few_slots>(what, on, config, arguments, at, submit)
               : launch_in_slots<many_slots>(what, on, config, arguments, at, submit);
}

namespace {

/// A launch of `launch_words` on its way into the driver's queue, which copies the values.
struct words_launch {
    const kernel_code* code;
    launch_shape shape;
    std::vector<std::uint64_t> words;

    void operator()(queue_handle into) {
        std::vector<void*> addresses;
        addresses.reserve(words.size());
        for (std::uint64_t& one : words) {
            addresses.push_back(&one);
        }
        put_launch(*code, shape, addresses.data(), into);
    }
};

}  // namespace

completion launch_words(const kernel& what, const stream_ref& on, const launch_config& config,
                        std::span<const std::uint64_t> words, std::span<const runtime::access_request> accesses,
                        const launch_site& at,
                        completion (*submit)(runtime::stream_state&, const runtime::submission&)) {
    expect_stream(what, on);
    native_task<words_launch> task{
        {&what.code(detail::key), checked_shape(what, config), {words.begin(), words.end()}}};
    return with_task(std::move(task), [&](task_ref work) {
        return submit(on.state(key), {accesses, at.after, work, at.site, runtime::work_kind::device});
    });
}

}  // namespace weir::detail

namespace weir {

completion kernel::launch(const on& where, const launch_config& config, std::span<const kernel_argument> arguments,
                          std::initializer_list<token_argument> tokens) const {
    const std::vector<runtime::access_request> besides = detail::accesses_of(tokens);
    return detail::launch_arguments(*this, where.stream(), config, arguments,
                                    {where.dependencies(), where.site(detail::key), besides}, runtime::submit);
}

}  // namespace weir
