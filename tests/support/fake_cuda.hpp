// For programs that are linked with weir_test_fake_cuda: they open the fake CUDA driver and the fake NVRTC of
// tests/fake_cuda, and control and query these through the class below. WEIR_CUDA_DRIVER and WEIR_NVRTC_LIBRARY are set before
// main() begins, unless they are set already: so the same program runs on a GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::test {

/// What the fake driver can count.
enum class fake_thing {
    streams,
    events,
    allocations,
    pinned_allocations,
    modules,
    contexts,
    address_ranges,
    created_memory,
    streams_with_destroyed
};

/// The controls of the fake. Every function throws std::runtime_error if WEIR_CUDA_DRIVER or WEIR_NVRTC_LIBRARY names
/// something else. tests/fake_cuda/control.hpp says more about each.
class fake_cuda {
public:
    /// Whether WEIR_CUDA_DRIVER names the fake driver. Never throws.
    [[nodiscard]] static bool in_use();

    /// How often the function was called; null: all of them.
    [[nodiscard]] static unsigned long long calls(const char* name = nullptr);
    /// How often the calling thread called it.
    [[nodiscard]] static unsigned long long own_calls(const char* name);
    /// The names of all functions that were called.
    [[nodiscard]] static std::vector<std::string> called();
    static void forget_calls();

    /// The nth call from now of the function (null: of any that can fail) returns the error; then all later ones, if for good.
    static void fail(const char* name, unsigned long long nth, int error, bool for_good = false);
    /// The calling thread's next call of the function returns the error.
    static void fail_own(const char* name, int error);
    /// At the nth call from now of the function a sticky error occurs, as if a kernel trapped at that moment; the call returns it.
    static void break_at(const char* name, unsigned long long nth, int error);
    static void fail_no_more();

    /// The calling thread's next call of the function waits until another thread lets it go on: to the next function at which it
    /// waits, or, without one, for good.
    static void stop(const char* name);
    /// The same for the next call by any thread, and for threads that call the function meanwhile.
    static void stop_any(const char* name);
    static void go_on(const char* next = nullptr);
    /// Whether a call waits.
    [[nodiscard]] static bool is_stopped();

    [[nodiscard]] static std::size_t live(fake_thing what);
    [[nodiscard]] static std::size_t bytes_in_use(int device);
    static void set_total_memory(std::size_t bytes);
    /// While it lives, launches, records and waits require that the context of their stream is current.
    class ignoring_handles {
    public:
        ignoring_handles();
        ~ignoring_handles();
        ignoring_handles(const ignoring_handles&) = delete;
        ignoring_handles& operator=(const ignoring_handles&) = delete;
    };
    /// While it lives, loading a module waits for everything that was enqueued in its context.
    class waiting_loads {
    public:
        waiting_loads();
        ~waiting_loads();
        waiting_loads(const waiting_loads&) = delete;
        waiting_loads& operator=(const waiting_loads&) = delete;
        /// How many threads wait there.
        [[nodiscard]] static std::size_t now();
    };
    /// The blocks along each axis of a cluster (0: none was asked for), and 1 if it was cooperative, of the last launch with attributes.
    [[nodiscard]] static std::array<unsigned, 4> last_special_launch();
    /// What all devices answer for a CUdevice_attribute from now on.
    static void set_attribute(int which, int value);

    /// The stream begins nothing more, until it is opened by the id that this returns. Throws std::runtime_error if there is
    /// no such stream.
    [[nodiscard]] static unsigned long long hold(const void* stream);
    static void open(unsigned long long id);
    static void hold_all();
    static void open_all();
    /// Entries of the stream that are not done.
    [[nodiscard]] static std::size_t pending(const void* stream);
    /// Blocks until the stream has done everything that it can: nothing is left, or the next entry waits for another stream.
    static void settle(const void* stream);

    /// Causes a sticky error on all devices, and removes it.
    static void break_contexts(int error);
    static void heal_contexts();

    /// How often NVRTC compiled.
    [[nodiscard]] static unsigned long long compilations();
    static void fail_next_compilation(int error);
};

/// A gate: the stream, or all streams, begin nothing while this lives. The stream may be destroyed meanwhile.
class fake_gate {
public:
    fake_gate() { fake_cuda::hold_all(); }
    explicit fake_gate(const void* stream) : id_(fake_cuda::hold(stream)) {}
    ~fake_gate() { open(); }
    fake_gate(const fake_gate&) = delete;
    fake_gate& operator=(const fake_gate&) = delete;
    void open() {
        if (!is_open_) {
            is_open_ = true;
            id_ == 0 ? fake_cuda::open_all() : fake_cuda::open(id_);
        }
    }

private:
    unsigned long long id_ = 0;  ///< 0: all streams
    bool is_open_ = false;
};

}  // namespace weir::test
