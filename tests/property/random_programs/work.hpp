// How one operation of a random program is enqueued.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

#include "random_programs/arithmetic.hpp"
#include "random_programs/ledger.hpp"
#include "random_programs/program.hpp"
#include "weir/weir.hpp"

namespace random_programs {

/// Part of an array; now and then through another shape of the same memory.
inline weir::array part_of(const weir::array& whole, const range& part, int number) {
    constexpr int row = 4;
    const auto size = static_cast<int>(whole.size());
    if (number % 3 == 0 && size % row == 0 && part.first % row == 0 && part.last % row == 0) {
        return whole.reshape({size / row, row}).slice(part.first / row, part.last / row);
    }
    return whole.slice(part.first, part.last);
}

/// The spans of an operation, sorted into those it reads and those it writes.
class operands {
public:
    template <class... T>
    explicit operands(const std::span<T>&... spans) {
        (add(spans), ...);
    }
    [[nodiscard]] std::span<const std::span<const double>> reads() const noexcept {
        return {reads_.data(), read_count_};
    }
    [[nodiscard]] std::span<const std::span<double>> writes() const noexcept { return {writes_.data(), write_count_}; }

private:
    void add(const std::span<const double>& one) noexcept { reads_[read_count_++] = one; }
    void add(const std::span<double>& one) noexcept { writes_[write_count_++] = one; }

    std::array<std::span<const double>, 2> reads_;
    std::array<std::span<double>, 2> writes_;
    std::size_t read_count_ = 0;
    std::size_t write_count_ = 0;
};

/// The work that runs in the stream.
template <class Memory>
struct body {
    int number;
    int spin;
    bool adds;
    bool fails;
    std::size_t count;
    ledger* notes;

    /// Spins, so that work that does not wait overtakes it.
    void begin() const noexcept {
        for (volatile int i = 0; i < spin;) {
            i = i + 1;
        }
    }
    template <class... T>
    void at(std::size_t i, const std::span<T>&... spans) const {
        if (fails && i == done_before_failure(count)) {
            notes->ran(number);
            throw std::runtime_error("it is to fail");
        }
        const operands all(spans...);
        compute_at<Memory>(number, adds, i, all.reads(), all.writes());
    }
    template <class... T>
    void all(const std::span<T>&... spans) const {
        begin();
        for (std::size_t i = 0; i < count; ++i) {
            at(i, spans...);
        }
        notes->ran(number);
    }
};

template <class Memory, class... A>
weir::completion enqueue(const step& one, const weir::on& where, ledger& notes, A... arguments) {
    std::size_t count = 0;
    for (const range& write : one.writes) {
        count = std::max(count, static_cast<std::size_t>(write.last - write.first));
    }
    const body<Memory> work{one.number, one.spin, one.adds, one.fails, count, &notes};
    switch (one.how) {
        case form::access:
            return weir::access(
                where, [work](weir::native_stream, const auto&... spans) { work.all(spans...); },
                std::move(arguments)...);
        case form::host_task:
            return weir::host_task(
                where, [work](const auto&... spans) { work.all(spans...); }, std::move(arguments)...);
        case form::parallel_for:
            break;
    }
    const auto each = [work](std::size_t i, const auto&... spans) {
        if (i == 0) {
            work.begin();
        }
        work.at(i, spans...);
        if (i + 1 == work.count) {
            work.notes->ran(work.number);
        }
    };
    return weir::parallel_for(where, count, each, std::move(arguments)...);
}

/// Adds the ranges that are written, then enqueues.
template <class Memory, class... A>
weir::completion with_writes(const step& one, const weir::on& where, ledger& notes, std::span<weir::array> writes,
                             A... arguments) {
    auto first = weir::inout(writes[0].view<double>());
    if (writes.size() == 1) {
        return enqueue<Memory>(one, where, notes, std::move(arguments)..., std::move(first));
    }
    return enqueue<Memory>(one, where, notes, std::move(arguments)..., std::move(first),
                           weir::inout(writes[1].view<double>()));
}

/// Enqueues the operation of a step, which reads and writes these arrays.
template <class Memory>
weir::completion operate(const step& one, const weir::on& where, ledger& notes, std::span<const weir::array> reads,
                         std::span<weir::array> writes) {
    if (reads.empty()) {
        return with_writes<Memory>(one, where, notes, writes);
    }
    auto first = weir::in(reads[0].view<double>());
    if (reads.size() == 1) {
        return with_writes<Memory>(one, where, notes, writes, std::move(first));
    }
    return with_writes<Memory>(one, where, notes, writes, std::move(first), weir::in(reads[1].view<double>()));
}

/// Enqueues `work()`, which finds its memory itself: to Weir it is a host task, whose memory may be another device's.
template <class Work, class... A>
weir::completion on_any_device(const weir::on& where, Work work, A... arguments) {
    return weir::host_task(
        where, [work](const auto&...) { work(); }, std::move(arguments)...);
}

/// Sets each element to what `value(i)` says.
template <class Memory, class Value>
weir::completion assign(const step& one, const weir::on& where, ledger& notes, weir::array& target, Value value) {
    const auto work = [number = one.number, notes = &notes, value, to = target.view<double>().device_span()] {
        for (std::size_t i = 0; i < to.size(); ++i) {
            Memory::store(to[i], value(i));
        }
        notes->ran(number);
    };
    auto written = weir::out(target.view<double>());
    if (where.stream().device() != target.device()) {
        return on_any_device(where, work, std::move(written));
    }
    return weir::access(
        where, [work](const auto&...) { work(); }, std::move(written));
}

/// The same as weir::copy, by accesses of the test's own.
template <class Memory>
weir::completion copy_by_hand(const step& one, const weir::on& where, ledger& notes, weir::array& target,
                              const weir::array& source) {
    const auto work = [number = one.number, notes = &notes, from = source.view<double>().device_span(),
                       to = target.view<double>().device_span()] {
        std::vector<double> taken(from.size());
        for (std::size_t i = 0; i < from.size(); ++i) {
            taken[i] = Memory::load(from[i]);
        }
        for (std::size_t i = 0; i < to.size(); ++i) {
            Memory::store(to[i], taken[i]);
        }
        notes->ran(number);
    };
    auto read = weir::in(source.view<double>());
    auto written = weir::out(target.view<double>());
    if (source.device() != target.device()) {
        return on_any_device(where, work, std::move(read), std::move(written));
    }
    return weir::access(
        where, [work](const auto&...) { work(); }, std::move(read), std::move(written));
}

}  // namespace random_programs
