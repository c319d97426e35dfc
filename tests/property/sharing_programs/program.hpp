// The folder sharing_programs/ makes random programs in which Weir and other libraries work on the same memory. Each step
// changes elements in a way that does not commute, on Weir's streams or in the libraries' own queues, which Weir does not see; gates hold
// both at random. The result must be that of the same steps, computed one after the other (rules X6, X7, O2,
// S7), and check and weir-verify must report what a model of the order says (rules V1, V4).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "sharing_programs/order.hpp"
#include "support/producer.hpp"
#include "weir/weir.hpp"

namespace sharing_programs {

/// What orders a program's operations.
enum class ordered_by : std::uint8_t {
    weir,     ///< Weir orders all of it
    nobody,   ///< Weir is set not to, and the program does not either
    mixture,  ///< some steps and some arrays are left to Weir, and the program waits here and there
};

/// How often something happened.
struct counts {
    int foreign = 0;    ///< work that Weir does not see
    int entries = 0;    ///< operations on memory that is shared
    int on_queues = 0;  ///< operations in a library's own queue
    int gates = 0;      ///< a stream or a queue is held back
    int ended = 0;      ///< exports
    int renewed = 0;    ///< arrays that were dropped while in use, for new ones
    int waits = 0;      ///< that the program asks for
    int host_reads = 0;

    counts& operator+=(const counts& more) noexcept;
};

/// One program, made as it runs: the same for a seed.
class program {
public:
    program(std::uint32_t seed, ordered_by who, const weir::device& on = weir::cpu());
    ~program();
    program(const program&) = delete;
    program& operator=(const program&) = delete;

    static constexpr int steps = 60;
    /// Runs it. Returns a description of the first element that is wrong; empty if none is. `safe`: the host may look at elements, since
    /// what it sees is ordered.
    std::string run(bool safe);

    [[nodiscard]] const counts& seen() const noexcept { return seen_; }
    /// The order from everything that orders, and the order that the program itself makes.
    [[nodiscard]] const order& all_order() const noexcept { return all_; }
    [[nodiscard]] const order& own_order() const noexcept { return own_; }

private:
    static constexpr std::size_t n = 8;
    using producer = weir::test::producer;
    using latch = weir::test::thread_queue::latch;

    struct library {
        std::shared_ptr<producer> self;
        int queue = none;  ///< the agent that stands for its current queue
        std::vector<producer::queue> former;
    };
    struct slot {
        int memory = none;
        library* with = nullptr;  ///< the library that shares it; null: none
        producer::array theirs;   ///< a live import
        std::optional<weir::live_export> exported;
        weir::array ours;
        std::span<double> elements;
        std::array<double, n> right{};
        std::optional<weir::ordering_mode> mode;
    };
    /// A stream of Weir's, or a library's queue.
    struct agent {
        weir::stream stream;
        int number;
    };

    [[nodiscard]] std::size_t pick(std::size_t below) { return random_() % below; }
    template <class T>
    [[nodiscard]] T& any(std::vector<T>& of) {
        return of[pick(of.size())];
    }
    [[nodiscard]] agent some_stream();
    [[nodiscard]] agent some_queue();
    [[nodiscard]] weir::source_location here() const noexcept;

    void make(std::size_t which);
    void one_step(bool safe);
    void operate(slot& to, weir::ordering_mode mode);
    void work_of_library(slot& to);
    void next_queue(library& of);
    void hold();
    void wait();
    void read(const slot& from, weir::ordering_mode mode, bool safe);
    void end_export(slot& of);
    [[nodiscard]] access touch(const slot& of, bool write, weir::ordering_mode mode) const;
    void apply(slot& to, const slot* from);
    void open_one();
    void open_all();
    template <class Tell>
    void tell(Tell&& about) {
        about(all_);
        about(own_);
    }

    weir::device on_;
    std::mt19937 random_;
    ordered_by who_;
    counts seen_;
    order all_{counted::all};
    order own_{counted::own};
    int step_ = 0;
    int agents_ = 0;
    int memories_ = 0;
    std::vector<std::unique_ptr<library>> libraries_;
    std::vector<weir::stream> streams_;
    weir::stream maker_;  ///< fills new arrays, and does nothing else
    std::array<slot, 5> arrays_;
    std::vector<std::unique_ptr<weir::testing::gate>> gates_;
    std::vector<std::shared_ptr<latch>> latches_;
};

}  // namespace sharing_programs
