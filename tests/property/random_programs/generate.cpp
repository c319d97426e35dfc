#include "random_programs/generate.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "random_programs/arithmetic.hpp"
#include "random_programs/choices.hpp"
#include "random_programs/world.hpp"

namespace random_programs {

namespace {

class generator {
public:
    explicit generator(std::uint64_t seed, shape kind) : random_(seed), shape_(kind) {
        made_.seed = seed;
        size_ = std::array{16, 32, 64, 128}[static_cast<std::size_t>(random_(4))];
        if (random_.chance(40)) {
            size_ = tight_elements;
            made_.tight = shape_ == shape::alone ? 4 + random_(4) : slots + 1;
        }
    }
    /// Gives the program more to do: accelerators, and operations that fail.
    void vary() {
        if (random_.chance(30)) {
            made_.devices = most_devices;
            world_ = world(made_);
        }
        // Where all threads change the same elements, it depends on timing which operations a failure affects.
        if (shape_ != shape::accumulate && random_.chance(30)) {
            failing_ = 3 + random_(15);
        }
    }
    void make() { shape_ == shape::alone ? make_serial(serial_weights) : make_threaded(); }
    void make_reuse() {
        allocating_stream_ = 1;
        make_serial(reuse_weights);
    }
    program made() && { return std::move(made_); }

private:
    void make_serial(std::span<const weight> weights) {
        begin_phase(1);
        const int streams = made_.devices == 1 ? 2 + random_(3) : 3 + random_(3);
        make_streams(streams);
        for (int i = 0; i < (made_.devices == 1 ? 2 : 4) + random_(2); ++i) {
            allocate(i);
        }
        for (int left = 10 + random_(50); left > 0; --left) {
            random_step(weights);
        }
    }

    void make_threaded() {
        begin_phase(1);
        make_streams(3);
        const int arrays = 1 + random_(3);
        for (int i = 0; i < arrays; ++i) {
            allocate(i);
        }
        const int threads = 2 + random_(most_threads - 1);
        const int phases = shape_ == shape::slices ? 1 : 2 + random_(2);
        for (int phase = 0; phase < phases; ++phase) {
            begin_phase(threads);
            adding_ = shape_ == shape::accumulate && phase % 2 == 0;
            share_out(arrays, threads);
            for (thread_ = 0; thread_ < threads; ++thread_) {
                for (int left = 6 + random_(14); left > 0; --left) {
                    adding_ ? random_step(adding_weights) : random_step(threaded_weights);
                }
            }
        }
    }

    /// That many, in turn on each device.
    void make_streams(int count) {
        for (int i = 0; i < count; ++i) {
            put({.kind = step_kind::make_stream, .stream = made_.devices + i, .device = i % made_.devices});
        }
    }

    void begin_phase(int threads) {
        made_.phases.emplace_back(static_cast<std::size_t>(threads));
        thread_ = 0;
        alone_ = threads == 1;
    }

    /// Distributes the parts of the shared arrays to the threads; all threads may read some parts, and none may change those.
    void share_out(int arrays, int threads) {
        for (auto* list : {&readable_, &writable_}) {
            for (std::vector<range>& parts : *list) {
                parts.clear();
            }
        }
        constexpr int parts = 4;
        for (int array = 0; array < arrays; ++array) {
            if (adding_) {
                for (int thread = 0; thread < threads; ++thread) {
                    writable_[at(thread)].push_back({array, 0, size_});
                }
                continue;
            }
            for (int part = 0; part < parts; ++part) {
                const range chunk{array, part * size_ / parts, (part + 1) * size_ / parts};
                if (random_.chance(20)) {
                    for (int thread = 0; thread < threads; ++thread) {
                        readable_[at(thread)].push_back(chunk);
                    }
                } else {
                    const int owner = random_(threads);
                    readable_[at(owner)].push_back(chunk);
                    writable_[at(owner)].push_back(chunk);
                }
            }
        }
    }

    // --- slots -------------------------------------------------------------------------------------------------------

    [[nodiscard]] int own_slot() { return shared_slots + thread_ * private_slots + random_(private_slots); }
    [[nodiscard]] int any_slot() { return alone_ ? random_(shared_slots) : own_slot(); }
    /// Any existing stream, on any device or on one.
    [[nodiscard]] int some_stream(int device = none) {
        for (;;) {
            const int slot = !alone_ && random_.chance(30) ? own_slot() : random_(shared_slots);
            if (world_.has_stream(slot) && (device == none || world_.device_of_stream(slot) == device)) {
                return slot;
            }
        }
    }
    /// The device of a stream that is to touch memory.
    [[nodiscard]] int device_of(int stream) const { return world_.device_of_stream(stream); }
    /// Where no other thread records, the events say what the program thinks they say.
    [[nodiscard]] int some_event() { return alone_ || random_.chance(50) ? own_slot() : random_(shared_slots); }
    [[nodiscard]] int own_gate() { return 2 * thread_ + random_(2); }

    /// An array, or a thread's part of one. Its slot is `none` if there is none.
    [[nodiscard]] range some_array(bool write) {
        if (alone_ || (!adding_ && random_.chance(40))) {
            const int slot = any_slot();
            return world_.array(slot).memory == none ? range() : range{slot, 0, world_.array(slot).size};
        }
        const std::vector<range>& parts = (write ? writable_ : readable_)[at(thread_)];
        return parts.empty() ? range() : parts[at(random_(static_cast<int>(parts.size())))];
    }

    /// A range of elements that may be read, or written, on any device or on one. Its slot is `none` if there is nothing.
    [[nodiscard]] range some_range(bool write, int device = none) {
        const auto fits = [&](const range& one) {
            return one.slot != none && world_.array(one.slot).memory != none &&
                   (device == none || world_.device_of_array(one.slot) == device);
        };
        range whole = some_array(write);
        for (int tries = 0; tries < 12 && !fits(whole); ++tries) {
            whole = some_array(write);
        }
        if (!fits(whole)) {
            return {};
        }
        const int size = whole.last - whole.first;
        switch (random_(4)) {
            case 0:
                return whole;
            case 1:
                return {whole.slot, whole.first, whole.last - size / 2};
            case 2:
                return {whole.slot, whole.first + size / 2, whole.last};
            default: {
                const int first = random_(size);
                return {whole.slot, whole.first + first, whole.first + first + 1 + random_(size - first)};
            }
        }
    }

    [[nodiscard]] int some_operation() {
        const std::vector<int>& mine = operations_[at(thread_)];
        return mine.empty()
                   ? none
                   : mine[mine.size() - 1 - at(random_(static_cast<int>(std::min<std::size_t>(mine.size(), 8))))];
    }

    // --- steps -------------------------------------------------------------------------------------------------------

    void random_step(std::span<const weight> weights) {
        int sum = 0;
        for (const weight& one : weights) {
            sum += one.times;
        }
        int at = random_(sum);
        for (const weight& one : weights) {
            at -= one.times;
            if (at < 0) {
                make(one.kind);
                return;
            }
        }
    }

    void allocate(int slot) {
        const int on = allocating_stream_ == none ? some_stream() : allocating_stream_;
        put({.kind = step_kind::allocate,
             .stream = some_stream(device_of(on)),
             .other = on,
             .array = slot,
             .size = size_});
    }

    void make(step_kind kind) {
        step one{.kind = kind};
        switch (kind) {
            case step_kind::make_stream:
            case step_kind::drop_stream:
            case step_kind::order_stream:
                one.stream = any_slot();
                one.device = kind == step_kind::make_stream ? random_(made_.devices) : 0;
                one.mode = some_mode();
                if (shape_ == shape::accumulate && one.mode == weir::ordering_mode::manual) {
                    one.mode = weir::ordering_mode::automatic;  // what all threads change cannot be ordered by hand
                }
                break;
            case step_kind::allocate:
                allocate(any_slot());
                return;
            case step_kind::drop_array:
            case step_kind::order_array:
                one.array = any_slot();
                one.mode = some_mode();
                break;
            case step_kind::alias:
                one.array = any_slot();
                one.reads.push_back(own_range());
                break;
            case step_kind::operate:
                make_operation(one);
                break;
            case step_kind::copy:
                one.stream = some_stream();
                {
                    const int own = device_of(one.stream);
                    const bool brings = random_.chance(50);  // or takes away
                    one.reads.push_back(some_range(false, brings ? none : own));
                    one.writes.push_back(some_range(true, brings ? own : none));
                    const int size = std::min(size_of(one.reads[0]), size_of(one.writes[0]));
                    one.reads[0].last = one.reads[0].first + size;
                    one.writes[0].last = one.writes[0].first + size;
                }
                break;
            case step_kind::fill:
                one.stream = some_stream();
                one.writes.push_back(some_range(true, device_of(one.stream)));
                break;
            case step_kind::copy_from_host:
                one.stream = some_stream();
                one.writes.push_back(some_range(true, device_of(one.stream) == 0 ? none : device_of(one.stream)));
                break;
            case step_kind::write_host:
                one.writes.push_back(some_range(true, 0));
                break;
            case step_kind::read_host:
                one.reads.push_back(some_range(false));
                break;
            case step_kind::open_view:
                one.other = random_(2);
                (random_.chance(50) ? one.reads : one.writes).push_back(some_range(true, 0));
                break;
            case step_kind::touch_view:
            case step_kind::close_view:
                one.other = random_(2);
                break;
            case step_kind::record:
            case step_kind::wait_event:
                one.stream = some_stream();
                one.other = some_event();
                break;
            case step_kind::wait_stream:
                one.stream = some_stream();
                one.other = some_stream();
                break;
            case step_kind::wait_operation:
                one.stream = some_stream();
                one.other = some_operation();
                break;
            case step_kind::synchronize_stream:
            case step_kind::push_current:
                one.stream = some_stream();
                break;
            case step_kind::synchronize_event:
                one.other = some_event();
                break;
            case step_kind::synchronize_operation:
            case step_kind::keep_alive:
                one.other = some_operation();
                break;
            case step_kind::query:
                one.stream = random_.chance(50) ? some_stream() : none;
                one.other = some_event();
                break;
            case step_kind::order_scope:
                one.mode = random_.chance(50) ? some_mode() : std::nullopt;
                break;
            case step_kind::order_process:
                one.mode = some_mode();
                break;
            case step_kind::hold:
                one.stream = some_stream();
                one.other = own_gate();
                if (one.stream == allocating_stream_) {
                    return;
                }
                break;
            case step_kind::open:
                one.other = own_gate();
                break;
            case step_kind::synchronize_device:
                one.device = random_(made_.devices);
                break;
            case step_kind::pop_current:
                break;
        }
        put(std::move(one));
    }

    void make_operation(step& one) {
        one.stream = some_stream();
        one.how = static_cast<form>(random_(20) == 0 ? 2 : random_(2));
        one.spin = random_.chance(20) ? random_(3000) : 0;
        one.adds = adding_;
        one.fails = random_.chance(failing_);
        const int device = one.how == form::host_task ? 0 : device_of(one.stream);
        for (int reads = adding_ ? 0 : random_(3); reads > 0; --reads) {
            one.reads.push_back(some_range(false, device));
        }
        for (int writes = 1 + random_(2); writes > 0; --writes) {
            one.writes.push_back(some_range(true, device));
        }
        if (random_.chance(15)) {
            one.after.push_back(some_operation());
        }
    }

    [[nodiscard]] std::optional<weir::ordering_mode> some_mode() {
        return std::array<std::optional<weir::ordering_mode>, 3>{
            weir::ordering_mode::automatic, weir::ordering_mode::manual, std::nullopt}[at(random_(3))];
    }
    [[nodiscard]] static int size_of(const range& part) noexcept { return part.last - part.first; }
    /// A range of an array that only this thread has.
    [[nodiscard]] range own_range() {
        const int slot = any_slot();
        const int size = world_.array(slot).size;
        return size < 2 ? range{} : range{slot, random_(size / 2), size / 2 + random_(size / 2) + 1};
    }
    /// Adds a step if it has an effect.
    void put(step one) {
        one.number = static_cast<int>(made_.steps()) + 1;
        std::erase(one.after, none);
        const auto needs_operation = one.kind == step_kind::wait_operation || one.kind == step_kind::keep_alive ||
                                     one.kind == step_kind::synchronize_operation;
        if ((needs_operation && one.other == none) || !world_.resolve(one, static_cast<std::size_t>(thread_))) {
            return;
        }
        world_.apply(one, static_cast<std::size_t>(thread_));
        if (is_operation(one.kind)) {
            operations_[at(thread_)].push_back(one.number);
        }
        made_.phases.back()[at(thread_)].push_back(std::move(one));
    }

    [[nodiscard]] static std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }

    program made_;
    dice random_;
    shape shape_;
    world world_{made_};
    int size_ = 0;
    int failing_ = 0;  ///< how many of a hundred operations
    int thread_ = 0;
    int allocating_stream_ = none;  ///< if all arrays are made on one, which is never held
    bool alone_ = true;
    bool adding_ = false;
    std::array<std::vector<int>, most_threads> operations_;
    std::array<std::vector<range>, most_threads> readable_;
    std::array<std::vector<range>, most_threads> writable_;
};

}  // namespace

shape shape_of(std::uint64_t seed) noexcept {
    const std::uint64_t roll = mix(seed, 3) % 100;
    return roll < 65 ? shape::alone : roll < 80 ? shape::slices : roll < 92 ? shape::hand_over : shape::accumulate;
}

program generate(std::uint64_t seed) {
    generator one(seed, shape_of(seed));
    one.vary();
    one.make();
    return std::move(one).made();
}

program generate_reuse(std::uint64_t seed) {
    generator one(seed, shape::alone);
    one.make_reuse();
    return std::move(one).made();
}

}  // namespace random_programs
