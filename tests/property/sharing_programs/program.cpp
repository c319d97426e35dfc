#include "sharing_programs/program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

namespace sharing_programs {

using weir::ordering_mode;

namespace {

constexpr double modulus = 251;

// Exact in a double, and no two of them commute.
double changed(double old, int step) {
    const double next = old * (step % 7 + 2) + step;
    return next - modulus * static_cast<double>(static_cast<std::int64_t>(next / modulus));
}

// Racing programs race on purpose: their elements are atomic, so that they go wrong without being undefined.
double load(double& from) { return std::atomic_ref(from).load(std::memory_order_relaxed); }
void store(double& to, double value) { std::atomic_ref(to).store(value, std::memory_order_relaxed); }
void change(std::span<double> x, int step) {
    for (double& each : x) {
        store(each, changed(load(each), step));
    }
}
void mix(std::span<double> to, std::span<double> from, int step) {
    for (std::size_t i = 0; i < to.size(); ++i) {
        store(to[i], changed(load(to[i]) + load(from[i]), step));
    }
}

}  // namespace

counts& counts::operator+=(const counts& more) noexcept {
    foreign += more.foreign;
    entries += more.entries;
    on_queues += more.on_queues;
    gates += more.gates;
    ended += more.ended;
    renewed += more.renewed;
    waits += more.waits;
    host_reads += more.host_reads;
    return *this;
}

program::program(std::uint32_t seed, ordered_by who, const weir::device& on)
    : on_(on), random_(seed), who_(who), maker_(on) {
    for (int i = 0; i < 3; ++i) {
        streams_.emplace_back(on_);
        ++agents_;
    }
    for (int i = 0; i < 2; ++i) {
        libraries_.push_back(std::make_unique<library>());
        libraries_.back()->self = std::make_shared<producer>(on_);
        libraries_.back()->queue = agents_++;
    }
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        make(i);
    }
}

program::~program() {
    open_all();
    for (const auto& one : libraries_) {
        one->self->current()->drain();
        for (std::size_t i = 0; i < one->former.size(); ++i) {
            one->self->pop_current();
        }
    }
}

weir::source_location program::here() const noexcept { return {"program", "step", static_cast<std::uint32_t>(step_)}; }

program::agent program::some_stream() {
    const std::size_t which = pick(streams_.size());
    return {streams_[which], static_cast<int>(which)};
}

program::agent program::some_queue() {
    library& of = *any(libraries_);
    const producer::queue queue = of.self->current();
    return {weir::stream::adopt(*queue, queue), of.queue};
}

void program::make(std::size_t which) {
    slot& one = arrays_[which];
    one = {};
    one.memory = memories_++;
    const std::size_t kind = which % 3;
    if (kind != 0) {
        one.with = any(libraries_).get();
    }
    if (kind == 1) {
        const std::shared_ptr<producer>& from = one.with->self;
        one.theirs = from->empty(n);
        one.elements = one.theirs.elements();
        from->fill(one.theirs, 1);
        from->current()->drain();
        one.ours = weir::array(weir::import_live(one.theirs.data(), one.theirs.bytes(), on_, from, one.theirs.owner(),
                                                 weir::package_use::writes, weir::import_access::writable, here()),
                               weir::dtype::float64, {n});
        tell([&](order& about) { about.used_on(one.memory, one.with->queue); });
    } else {
        one.ours = weir::full({n}, 1, weir::dtype::float64, maker_);
        maker_.synchronize();
        one.elements = one.ours.view<double>().device_span();
    }
    if (kind == 2) {
        one.exported.emplace(one.ours, one.with->self);
    }
    one.right.fill(1);
    if (who_ == ordered_by::mixture && pick(3) == 0) {
        one.mode = pick(2) == 0 ? ordering_mode::manual : ordering_mode::automatic;
        one.ours.set_ordering(one.mode);
    }
}

std::string program::run(bool safe) {
    for (step_ = 1; step_ <= steps; ++step_) {
        one_step(safe);
    }
    open_all();
    on_.synchronize();
    for (const auto& one : libraries_) {
        one->self->current()->drain();
    }
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            const double got = load(arrays_[i].elements[j]);
            if (got != arrays_[i].right[j]) {
                return "array " + std::to_string(i) + ", element " + std::to_string(j) + " is " + std::to_string(got) +
                       ", not " + std::to_string(arrays_[i].right[j]);
            }
        }
    }
    return {};
}

void program::one_step(bool safe) {
    const ordering_mode mode = who_ == ordered_by::weir     ? ordering_mode::automatic
                               : who_ == ordered_by::nobody ? ordering_mode::manual
                               : pick(2) == 0               ? ordering_mode::automatic
                                                            : ordering_mode::manual;
    const weir::ordering_scope scope(mode);
    const std::size_t what = pick(100);
    const std::size_t which = pick(arrays_.size());
    slot& to = arrays_[which];
    if (what < 35) {
        operate(to, mode);
    } else if (what < 65) {
        work_of_library(to);
    } else if (what < 71) {
        next_queue(*any(libraries_));
    } else if (what < 81) {
        hold();
    } else if (what < 86) {
        open_one();
    } else if (what < 91) {
        wait();
    } else if (what < 94) {
        read(to, mode, safe);
    } else if (what < 96) {
        end_export(to);
    } else if (what < 98) {
        open_all();  // making an array may wait for memory that a gate holds back
        make(which);
        ++seen_.renewed;
    }
}

void program::operate(slot& to, ordering_mode mode) {
    slot& from = arrays_[pick(arrays_.size())];
    const bool in_queue = pick(8) == 0;
    const agent by = in_queue ? some_queue() : some_stream();
    const int step = step_;
    const weir::on where(by.stream, here());
    if (&from == &to) {
        weir::parallel_for(
            where, 1, [step](auto, auto x) { change(x, step); }, weir::inout(to.ours.view<double>()));
        apply(to, nullptr);
        tell([&](order& about) { about.operation(step, by.number, {touch(to, true, mode)}); });
    } else {
        weir::parallel_for(
            where, 1, [step, elements = from.elements](auto, auto x, auto) { mix(x, elements, step); },
            weir::inout(to.ours.view<double>()), weir::in(from.ours.view<double>()));
        apply(to, &from);
        tell([&](order& about) {
            about.operation(step, by.number, {touch(to, true, mode), touch(from, false, mode)});
        });
    }
    seen_.entries += to.with != nullptr || from.with != nullptr ? 1 : 0;
    seen_.on_queues += in_queue ? 1 : 0;
}

access program::touch(const slot& of, bool write, ordering_mode mode) const {
    return {of.memory, write, of.mode.value_or(mode) == ordering_mode::manual,
            of.with == nullptr ? none : of.with->queue};
}

/// Work that Weir does not see.
void program::work_of_library(slot& to) {
    if (to.with == nullptr) {
        return;
    }
    to.with->self->current()->put([x = to.elements, step = step_] { change(x, step); });
    apply(to, nullptr);
    ++seen_.foreign;
}

/// The library works on another queue from now on, ordered after the former one; Weir does not see that.
void program::next_queue(library& of) {
    const producer::queue next = of.self->make_queue();
    producer::join(next, of.self->current());
    of.former.push_back(of.self->current());
    of.self->push_current(next);
    of.queue = agents_++;
}

void program::hold() {
    if (pick(7) < 4) {
        gates_.push_back(std::make_unique<weir::testing::gate>());
        gates_.back()->hold(any(streams_));
    } else {
        latches_.push_back(std::make_shared<latch>());
        any(libraries_)->self->current()->hold(latches_.back());
    }
    ++seen_.gates;
}

/// The waits by which the program orders its work itself.
void program::wait() {
    const agent first = pick(2) == 0 ? some_queue() : some_stream();
    const agent second = pick(3) == 0 ? some_queue() : some_stream();
    if (pick(4) == 0) {
        open_all();
        first.stream.synchronize(here());
        tell([&](order& about) { about.host_waits(first.number); });
    } else {
        second.stream.wait(first.stream, here());
        tell([&](order& about) { about.wait(second.number, first.number); });
    }
    ++seen_.waits;
}

void program::read(const slot& from, ordering_mode mode, bool safe) {
    if (!safe && on_ != weir::cpu()) {
        return;  // the copy for the host is no kernel of this program: where it races, it is undefined behaviour of the language, too
    }
    open_all();
    const auto view = from.ours.read<double>(here());
    for (std::size_t j = 0; j < n && safe; ++j) {
        EXPECT_EQ(view[j], from.right[j]) << "read by the host at step " << step_;
    }
    tell([&](order& about) { about.host_access(step_, touch(from, false, mode)); });
    ++seen_.host_reads;
}

/// The consumer has released it: from now on only Weir uses the array.
void program::end_export(slot& of) {
    if (!of.exported) {
        return;
    }
    of.exported.reset();
    tell([&](order& about) { about.used_on(of.memory, of.with->queue); });
    of.with = nullptr;
    ++seen_.ended;
}

void program::apply(slot& to, const slot* from) {
    for (std::size_t j = 0; j < n; ++j) {
        to.right[j] = changed(to.right[j] + (from == nullptr ? 0 : from->right[j]), step_);
    }
}

void program::open_one() {
    if (!gates_.empty() && pick(2) == 0) {
        gates_.erase(gates_.begin() + static_cast<std::ptrdiff_t>(pick(gates_.size())));
    } else if (!latches_.empty()) {
        any(latches_)->open();
    }
}

void program::open_all() {
    gates_.clear();
    for (const auto& one : latches_) {
        one->open();
    }
    latches_.clear();
}

}  // namespace sharing_programs
