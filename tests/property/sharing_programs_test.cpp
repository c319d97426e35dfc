// Random programs in which Weir and other libraries work on the same memory. Each step changes elements in a way that does
// not commute, on Weir's streams or behind Weir's back in the libraries' own queues, which gates hold back as they like.
// The result must be what the same steps give one after the other (rules X6, X7, O2, S7).
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/observer.hpp"
#include "support/producer.hpp"
#include "trace/collector.hpp"
#include "trace/log_writer.hpp"
#include "verify/auditor.hpp"
#include "verify/reader.hpp"
#include "verify/report.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::producer;
using test::thread_queue;
using test::with_queue;

constexpr std::size_t n = 8;
constexpr double modulus = 251;

// Exact in a double, and no two of them commute.
double changed(double old, int step) {
    const double next = old * (step % 7 + 2) + step;
    return next - modulus * static_cast<double>(static_cast<std::int64_t>(next / modulus));
}

// Racing programs race: their elements are atomic, so that they go wrong without being undefined.
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

/// What is taken out for a control.
enum class without { nothing, order };

struct counts {
    int foreign = 0;
    int entries = 0;
    int gates = 0;
    int ended = 0;
};

class run {
public:
    run(std::uint32_t seed, without what, const device& where) : random_(seed), what_(what), where_(where) {
        for (int i = 0; i < 2; ++i) {
            libraries_.push_back(std::make_shared<producer>(where));
        }
        for (int i = 0; i < 3; ++i) {
            streams_.emplace_back(where);
        }
        for (std::size_t i = 0; i < arrays_.size(); ++i) {
            make(i);
        }
    }

    /// The first array whose elements are wrong, in words; empty if none are.
    std::string go(int steps) {
        const ordering_scope scope(what_ == without::nothing ? ordering_mode::automatic : ordering_mode::manual);
        for (step_ = 1; step_ <= steps; ++step_) {
            one_step();
        }
        open_all();
        where_.synchronize();
        for (const auto& library : libraries_) {
            library->current()->drain();
        }
        for (std::size_t i = 0; i < arrays_.size(); ++i) {
            for (std::size_t j = 0; j < n; ++j) {
                const double got = load(arrays_[i].elements[j]);
                if (got != arrays_[i].right[j]) {
                    return "array " + std::to_string(i) + ", element " + std::to_string(j) + " is " +
                           std::to_string(got) + ", not " + std::to_string(arrays_[i].right[j]);
                }
            }
        }
        return {};
    }
    counts seen;

private:
    struct slot {
        std::shared_ptr<producer> library;  ///< who shares it; null: nobody
        producer::array theirs;             ///< a live import
        std::optional<live_export> exported;
        array ours;
        std::span<double> elements;
        std::array<double, n> right{};
    };

    std::size_t pick(std::size_t below) { return random_() % below; }
    template <class T>
    T& any(std::vector<T>& of) {
        return of[pick(of.size())];
    }

    void make(std::size_t i) {
        slot& one = arrays_[i];
        one = {};
        const std::size_t kind = i % 3;
        if (kind != 0) {
            one.library = any(libraries_);
        }
        if (kind == 1) {
            one.theirs = one.library->empty(n);
            one.elements = one.theirs.elements();
            one.library->fill(one.theirs, 1);
            one.library->current()->drain();
            one.ours =
                array(import_live(one.theirs.data(), one.theirs.bytes(), where_, one.library, one.theirs.owner()),
                      dtype::float64, {n});
        } else {
            one.ours = full({n}, 1, dtype::float64, streams_[0]);
            streams_[0].synchronize();
            one.elements = one.ours.view<double>().device_span();
        }
        if (kind == 2) {
            one.exported.emplace(one.ours, one.library);
        }
        one.right.fill(1);
    }

    void one_step() {
        const std::size_t what = pick(100);
        slot& to = arrays_[pick(arrays_.size())];
        const int step = step_;
        if (what < 35) {  // Weir
            slot& from = arrays_[pick(arrays_.size())];
            if (&from == &to) {
                parallel_for(
                    any(streams_), 1, [step](auto, auto x) { change(x, step); }, inout(to.ours.view<double>()));
                apply(to, nullptr);
            } else {
                parallel_for(
                    any(streams_), 1, [step, elements = from.elements](auto, auto x, auto) { mix(x, elements, step); },
                    inout(to.ours.view<double>()), in(from.ours.view<double>()));
                apply(to, &from);
            }
            seen.entries += to.library || from.library ? 1 : 0;
        } else if (what < 70) {  // the library, behind Weir's back
            if (to.library && (to.exported || to.theirs)) {
                to.library->current()->put([x = to.elements, step] { change(x, step); });
                apply(to, nullptr);
                ++seen.foreign;
            }
        } else if (what < 78) {  // the library works on another queue from now on, in order after the former one
            const auto& library = any(libraries_);
            const producer::queue next = library->make_queue();
            producer::join(next, library->current());
            queues_.push_back(library->current());
            library->push_current(next);
            pushed_.emplace_back(library);
        } else if (what < 85) {
            gates_.push_back(std::make_unique<testing::gate>());
            gates_.back()->hold(any(streams_));
            ++seen.gates;
        } else if (what < 90) {
            const auto latch = std::make_shared<thread_queue::latch>();
            any(libraries_)->current()->hold(latch);
            latches_.push_back(latch);
            ++seen.gates;
        } else if (what < 95) {
            open_one();
        } else if (what < 97) {  // the host
            open_all();
            if (what_ == without::nothing) {
                const auto view = to.ours.read<double>();
                for (std::size_t j = 0; j < n; ++j) {
                    EXPECT_EQ(view[j], to.right[j]) << "read by the host at step " << step_;
                }
            }
        } else if (to.exported) {  // the consumer has let go; from now on the array is Weir's alone
            to.exported.reset();
            to.library = nullptr;
            ++seen.ended;
        }
    }

    void apply(slot& to, const slot* from) {
        for (std::size_t j = 0; j < n; ++j) {
            to.right[j] = changed(to.right[j] + (from == nullptr ? 0 : from->right[j]), step_);
        }
    }
    void open_one() {
        if (!gates_.empty() && pick(2) == 0) {
            gates_.erase(gates_.begin() + static_cast<std::ptrdiff_t>(pick(gates_.size())));
        } else if (!latches_.empty()) {
            any(latches_)->open();
        }
    }
    void open_all() {
        gates_.clear();
        for (const auto& latch : latches_) {
            latch->open();
        }
        latches_.clear();
    }

public:
    ~run() {
        open_all();
        for (const auto& library : libraries_) {
            library->current()->drain();
        }
        for (const auto& library : pushed_) {
            library->pop_current();
        }
    }
    run(const run&) = delete;
    run& operator=(const run&) = delete;

private:
    std::mt19937 random_;
    without what_;
    device where_;
    int step_ = 0;
    std::vector<std::shared_ptr<producer>> libraries_;
    std::vector<std::shared_ptr<producer>> pushed_;
    std::vector<producer::queue> queues_;
    std::vector<stream> streams_;
    std::array<slot, 5> arrays_;
    std::vector<std::unique_ptr<testing::gate>> gates_;
    std::vector<std::shared_ptr<thread_queue::latch>> latches_;
};

std::uint32_t programs() {
    const char* const wanted = std::getenv("WEIR_TEST_PROGRAMS");
    return wanted == nullptr ? 150 : static_cast<std::uint32_t>(std::strtoul(wanted, nullptr, 10)) / 10 + 1;
}

class SharingPrograms : public ::testing::TestWithParam<device (*)()> {};

device first_sim() { return sim(0); }
INSTANTIATE_TEST_SUITE_P(On, SharingPrograms, ::testing::Values(&cpu, &first_sim),
                         [](const auto& one) { return one.param == &cpu ? "cpu" : "sim"; });

TEST_P(SharingPrograms, X6_X7_resultsAreThoseOfTheStepsOneAfterTheOther) {
    counts all;
    for (std::uint32_t seed = 0; seed < programs(); ++seed) {
        run one(seed, without::nothing, GetParam()());
        ASSERT_EQ(one.go(60), "") << "seed " << seed;
        all.foreign += one.seen.foreign;
        all.entries += one.seen.entries;
        all.gates += one.seen.gates;
        all.ended += one.seen.ended;
    }
    // The programs are such that it matters.
    EXPECT_GT(all.foreign, 100);
    EXPECT_GT(all.entries, 100);
    EXPECT_GT(all.gates, 100);
    EXPECT_GT(all.ended, 10);
}

/// What the independent verifier has to say against a log.
std::string objections(const std::string& text, std::uint64_t& waits) {
    weir_verify::text_store texts;
    std::istringstream from(text);
    weir_verify::log_reader reader(from, texts);
    weir_verify::auditor auditor(weir_verify::audit_options{});
    while (const auto one = reader.next()) {
        auditor.take(*one);
    }
    waits += auditor.summary().waits;
    std::string said;
    for (const weir_verify::finding& one : auditor.found().all()) {
        said += one.weight == weir_verify::severity::violation ? to_string(one, "log") : "";
    }
    return said;
}

TEST_P(SharingPrograms, V4_theirLogsProveTheOrder) {
    std::uint64_t waits = 0;
    for (std::uint32_t seed = 0; seed < 50; ++seed) {
        trace::collector notes;
        runtime::observers::add(notes);
        notes.knows_all_streams();
        const std::string wrong = run(seed, without::nothing, GetParam()()).go(60);
        runtime::observers::remove(notes);
        std::ostringstream text;
        notes.read([&](const trace::log& kept) { trace::write_log(text, kept); });
        ASSERT_EQ(wrong, "") << "seed " << seed;
        ASSERT_EQ(objections(text.str(), waits), "") << "seed " << seed << "\n" << text.str();
    }
    EXPECT_GT(waits, 100U);
}

TEST_P(SharingPrograms, ControlWithoutOrderTheyAreNot) {
    int wrong = 0;
    for (std::uint32_t seed = 0; seed < 100; ++seed) {
        wrong += run(seed, without::order, GetParam()()).go(60).empty() ? 0 : 1;
    }
    EXPECT_GT(wrong, 50);
}

}  // namespace
}  // namespace weir
