// The folder calls/ holds the library calls. This header has the contract that all of them share (rules P1 to P3). A folder
// calls/NAME/ has the parts of one call, with one file for each library that does the work. The folder includes array/ and
// the folders below it. docs/architecture.md explains how to add a call and a library.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/capability/libraries.hpp"
#include "backend/hot_mutex.hpp"
#include "frontier/small_vector.hpp"
#include "weir/array.hpp"
#include "weir/buffer.hpp"
#include "weir/calls.hpp"
#include "weir/completion.hpp"
#include "weir/device.hpp"
#include "weir/error.hpp"
#include "weir/explain.hpp"
#include "weir/on.hpp"

namespace weir::calls {

/// One number for each dimension of an array.
using per_dimension = detail::small_vector<std::int64_t, 6>;

/// The positions of the elements of one array.
struct placement {
    per_dimension strides;       ///< bytes
    std::byte* first = nullptr;  ///< null while it is not known

    friend bool operator==(const placement&, const placement&) noexcept = default;
    [[nodiscard]] static placement of(const array& a);
    /// Elements in C order, at an address that is not known yet: the start of pool memory.
    [[nodiscard]] static placement packed(const weir::shape& extents, dtype type);
};

/// The device that computes, and where it finds the arrays of a call. The call has the element types and shapes.
struct call_layout {
    struct input {
        placement where;
        bool overlaps_result = false;  ///< then the call may change the input

        friend bool operator==(const input&, const input&) noexcept = default;
    };

    device on;
    detail::small_vector<input, 2> inputs;
    placement result;

    friend bool operator==(const call_layout&, const call_layout&) noexcept = default;
};

/// How far the arrays of an execution are from those for which its work was prepared, in bytes: multiples of `alignment`.
struct call_shift {
    static constexpr std::size_t most_inputs = 4;  ///< the work of a call with more inputs is never moved
    static constexpr std::ptrdiff_t alignment = 256;

    std::array<std::ptrdiff_t, most_inputs> inputs{};
    std::ptrdiff_t result = 0;
    std::ptrdiff_t workspace = 0;

    [[nodiscard]] bool is_zero() const noexcept { return bits() == 0; }
    [[nodiscard]] bool is_aligned() const noexcept { return bits() % alignment == 0; }

private:
    /// The bits that are set in any of the distances.
    [[nodiscard]] std::ptrdiff_t bits() const noexcept {
        std::ptrdiff_t any = result | workspace;
        for (const std::ptrdiff_t each : inputs) {
            any |= each;
        }
        return any;
    }
};

/// A body whose work can be moved to other addresses: it is called with the distance. `can_move` says whether this one can be; if not, it
/// is called without any distance.
template <class Body>
concept movable_body = requires(const Body& body, const call_shift& by) {
    body(by);
    { body.can_move() } -> std::same_as<bool>;
};

/// Prepared work between addresses. It can be enqueued any number of times, on any streams of its device. What it holds (such as a
/// library's plan) stays alive until all operations that do it are complete.
class call_work {
public:
    /// Work that `compute` does itself, on the thread that runs the operation. For devices on which host code computes.
    template <std::move_constructible Compute>
        requires(std::invocable<const Compute&> || movable_body<Compute>)
    [[nodiscard]] static call_work host_task(Compute compute) { return {std::move(compute), false}; }
    /// Work that `enqueue` puts into the driver's queue detail::native_queue_handle(), without waiting for it. For devices with
    /// queues of their own.
    template <std::move_constructible Enqueue>
        requires(std::invocable<const Enqueue&> || movable_body<Enqueue>)
    [[nodiscard]] static call_work native_task(Enqueue enqueue) { return {std::move(enqueue), true}; }

    [[nodiscard]] bool is_native() const noexcept { return is_native_; }
    /// Whether it can be called with a distance.
    [[nodiscard]] bool can_move() const noexcept { return can_move_; }
    /// Calls the callable. An exception makes the operation fail.
    void operator()(const call_shift& by) const { run_(body_.get(), by); }

private:
    template <class Body>
    call_work(Body body, bool is_native) : is_native_(is_native) {
        if constexpr (movable_body<Body>) {
            can_move_ = body.can_move();
            run_ = [](const void* object, const call_shift& by) { (*static_cast<const Body*>(object))(by); };
        } else {
            run_ = [](const void* object, const call_shift&) { (*static_cast<const Body*>(object))(); };
        }
        body_ = std::make_shared<const Body>(std::move(body));
    }

    std::shared_ptr<const void> body_;
    void (*run_)(const void* object, const call_shift& by) = nullptr;
    bool is_native_;
    bool can_move_ = false;
};

/// How one library does one call with one layout. Refers to the call, which must outlive it.
class call_plan {
public:
    call_plan() = default;
    call_plan(const call_plan&) = delete;
    call_plan& operator=(const call_plan&) = delete;
    virtual ~call_plan() = default;

    /// The memory that the work needs on the computing device in addition to the arrays, for the call and the library together.
    [[nodiscard]] virtual std::size_t workspace_bytes() const noexcept = 0;
    /// Makes the work, with a workspace of `workspace_bytes` or more, which is null if that is 0. Prepares everything that can fail. If
    /// the layout has no addresses, the work is prepared but must never run. Enqueues nothing. Throws missing_library, device_error,
    /// out_of_memory.
    [[nodiscard]] virtual call_work work(std::byte* workspace) const = 0;
};

/// A library that can do calls of one type. `plan` returns how; it throws what call_plan::work throws, and argument_error if the
/// layout of the arrays makes the call impossible. Any thread. Never enqueues.
template <class Provider, class Call>
concept provider_of = requires(const Provider& library, const Call& call, const device& on, const call_layout& layout) {
    { library.serves(on) } -> std::same_as<bool>;
    { library.plan(call, layout) } -> std::same_as<std::unique_ptr<const call_plan>>;
};

/// The input that says where a call runs: the first with elements, since arrays without any have no memory.
[[nodiscard]] const array& leading_input(std::span<const array> inputs) noexcept;

/// Throws missing_library: no library supports the call on that device.
[[noreturn]] void refuse_device(const char* call, const device& on);

/// The plan of the first library that supports the layout's device. Throws missing_library if none does.
template <class Call, provider_of<Call>... Providers>
[[nodiscard]] std::unique_ptr<const call_plan> plan_by_first(const Call& call, const call_layout& layout,
                                                             const Providers&... libraries) {
    std::unique_ptr<const call_plan> made;
    const bool is_served = ((libraries.serves(layout.on) && (made = libraries.plan(call, layout), true)) || ...);
    if (!is_served) {
        refuse_device(call.name(), layout.on);
    }
    return made;
}

/// A program's request: the input arrays, the result, and the libraries that can compute it. A call has any number of inputs,
/// the first of which determines where it runs, and one result. Its constructor checks everything that does not depend on the result.
class library_call {
public:
    library_call() = default;
    library_call(const library_call&) = delete;
    library_call& operator=(const library_call&) = delete;
    virtual ~library_call() = default;

    /// The name of the call in messages: "fft".
    [[nodiscard]] virtual const char* name() const noexcept = 0;
    /// The label of the operation, unless the program sets one.
    [[nodiscard]] virtual const char* label() const noexcept { return name(); }
    [[nodiscard]] virtual const weir::shape& result_shape() const noexcept = 0;
    [[nodiscard]] virtual dtype result_type() const noexcept = 0;
    /// Whether the result may overwrite the first input if that is a copy: then no second copy is made.
    [[nodiscard]] virtual bool can_overwrite_copy() const noexcept { return false; }
    /// How a library does it: usually plan_by_first with all libraries that can.
    [[nodiscard]] virtual std::unique_ptr<const call_plan> plan(const call_layout& layout) const = 0;
};

/// The options that all calls share.
struct call_terms {
    execution_target execution{};
    call_blocking blocking = call_blocking::automatic;
    weir::memory_limit limit{};
};

/// Work that was prepared for a layout and a workspace, after all checks of the arrays. Operations refer to it, and do not own it
/// (call.cpp, call_owner).
struct prepared_call {
    call_layout layout;
    execution_target execution;
    weir::memory_limit limit;
    const backend::capability::libraries* in = nullptr;    ///< of work that is native
    const runtime::device_state* result_memory = nullptr;  ///< runtime::resource::memory_of
    bool is_packed = false;                                ///< all arrays are in C order: their strides need no look
    const std::byte* workspace = nullptr;
    std::size_t workspace_bytes = 0;
    call_work work;
};

/// What executions of one call have prepared, so that the next one, between arrays that lie likewise, only has to be enqueued: the last
/// few. Holds no arrays. Inputs must have the shapes, element types and memory of those before. Any thread.
class prepared_calls {
public:
    static constexpr std::size_t most = 4;

    prepared_calls() = default;
    prepared_calls(const prepared_calls&) = delete;
    prepared_calls& operator=(const prepared_calls&) = delete;
    ~prepared_calls() = default;

    /// What was prepared for arrays that lie so, and how far they are from these. `by` has no distance of the workspace yet.
    struct found {
        std::shared_ptr<const prepared_call> what;  ///< null: nothing was
        call_shift by;
    };
    [[nodiscard]] found find(device on, const call_terms& terms, std::span<const array> inputs,
                             const array& result) const;
    /// Adds one in place of `before`, if that is still here, else in place of the oldest if there are `most`.
    void add(std::shared_ptr<const prepared_call> made, const std::shared_ptr<const prepared_call>& before);
    void clear() noexcept;

private:
    mutable backend::hot_mutex mutex_;  ///< guards the others; a leaf in the lock order
    std::array<std::shared_ptr<const prepared_call>, most> all_;
    std::size_t next_ = 0;
};

/// A result for the call: on the device of the inputs, in memory that is allocated for `where`, or for the current stream
/// of that device if it is not the device of `where`. Throws argument_error, out_of_memory.
[[nodiscard]] array make_result(const library_call& call, const on& where, std::span<const array> inputs);

/// Prepares what `execute` needs with a result of `make_result`, and makes `workspace` large enough. Enqueues nothing.
/// Throws as `execute` does.
void prepare(const library_call& call, const call_terms& terms, const on& where, std::span<const array> inputs,
             buffer& workspace);

/// Enqueues the call. If the computing device reaches the arrays it is one operation, which reads the inputs, writes the result, and
/// uses `workspace`; a workspace that is too small is replaced. Otherwise inputs are copied to that device and the result back, and the
/// call blocks until that is complete (rule P2). It also blocks if the terms require it.
///
/// `kept`, if not null, has what earlier executions prepared, which is used again if it fits; else what this one prepares is added.
///
/// Throws argument_error (a stream of another device, a result of another shape, arrays in memory of several devices),
/// argument_type_error (a result of another type), out_of_memory (also if the memory limit is exceeded), missing_library,
/// state_error (closed stream; a device that stayed with the process that this one was forked from). Then nothing was enqueued except,
/// perhaps, copies of inputs. If it blocks it throws operation_error if the work failed.
completion execute(const library_call& call, const call_terms& terms, const on& where, std::span<const array> inputs,
                   const array& result, buffer& workspace, prepared_calls* kept = nullptr);

/// The stateless form: a result of `make_result`, and a workspace that is returned to the pool.
[[nodiscard]] array execute(const library_call& call, const call_terms& terms, const on& where,
                            std::span<const array> inputs, prepared_calls* kept = nullptr);

/// The library that does a call on a device, for explain().
struct library_in_use {
    std::string name;        ///< with its file, or with the reason why there is none
    bool is_native = false;  ///< whether its work goes into the driver's queue
};
/// `title`, with what `file_of()` returns, or with what is missing.
template <class File>
[[nodiscard]] std::string title_of_library(const char* title, const File& file_of) {
    try {
        return std::string(title) + " (" + std::string(file_of()) + ")";
    } catch (const missing_library& missing) {
        return std::string(title) + ", which is missing: " + missing.what();
    }
}
/// "the call blocks, ..." or "the call does not block": rule P2.
[[nodiscard]] std::string when_it_returns(const call_terms& terms, device home, device computing);

/// What the stateful form of a call holds until it is freed: operands, options and the workspace. Each class of calls adds its
/// description, and prepared_calls for each way in which it executes. One thread at a time.
///
/// Operands, results and the workspace are memory whose accesses Weir orders: streams may change between phases (rule P3).
class stateful_call {
public:
    /// `name` is the name of the class in messages: "fft_plan".
    stateful_call(const char* name, std::span<const array> operands, call_terms terms);

    /// The operands. If they were released, throws state_error, whose message names `before` as the phase that needs them.
    [[nodiscard]] std::span<const array> operands(const char* before) const;
    /// Holds other operands. Throws argument_error if a shape, an element type or the device differs from the first ones.
    void reset_operands(std::span<const array> operands);
    /// Drops the operands. Pending work is not disturbed. Idempotent.
    void release_operands() noexcept { operands_.reset(); }

    /// Prepares one of the ways in which the class executes, and allocates the workspace: see calls::prepare. Then call set_planned.
    void prepare(const library_call& call, const on& where);
    void set_planned() noexcept { is_planned_ = true; }

    /// The operands, for `execute`. Throws state_error if they were released, or if set_planned has not been called.
    [[nodiscard]] std::span<const array> expect_planned() const;
    /// See calls::execute.
    completion execute(const library_call& call, const on& where, const array& result, prepared_calls& kept);

    [[nodiscard]] const call_terms& terms() const noexcept { return terms_; }
    /// What explain() says of the phases plan and execute, done by `library_on(device)`.
    [[nodiscard]] explanation explain(library_in_use (*library_on)(const device& computing)) const;
    [[nodiscard]] std::size_t workspace_bytes() const noexcept { return workspace_.bytes(); }
    /// Returns the workspace to the pool. Pending work is not disturbed.
    void release_workspace() noexcept { workspace_ = {}; }

private:
    struct description {
        weir::shape extents;
        dtype type;
    };
    const char* name_;
    call_terms terms_;
    std::vector<description> described_;
    std::optional<device> home_;  ///< the device of the operands; none if they have no elements
    std::optional<std::vector<array>> operands_;
    buffer workspace_;
    bool is_planned_ = false;
};

/// The state of a stateful call. Throws state_error if it was freed, or moved from.
template <class State>
[[nodiscard]] State& expect_alive(const char* name, const std::unique_ptr<State>& held) {
    if (!held) {
        throw state_error(std::string(name) + ": it was freed; make a new one");
    }
    return *held;
}

}  // namespace weir::calls
