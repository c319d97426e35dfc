// A pool of slots in memory that Weir does not know: each slot has a token. One stream fills slots, another drains them; a slot is
// filled again only after its last use, by construction: no event, no wait, no bookkeeping of the program's. Exits with 0 if
// every number arrived once, in its place.
#include <array>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>
#include <weir/weir.hpp>

namespace {

// Stands for what a library hands out: a part of a ring that a network card writes to, a device-side queue.
struct slot {
    explicit slot(std::size_t number) : token("slot " + std::to_string(number)) {}

    std::array<float, 256> data{};
    weir::token token;
};

class pool {
public:
    explicit pool(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            slots_.emplace_back(i);
        }
    }
    // The next one in turn, which may still be in use: an operation that declares its token comes after that use.
    slot& next() { return slots_[turn_++ % slots_.size()]; }

private:
    std::deque<slot> slots_;
    std::size_t turn_ = 0;
};

}  // namespace

int main() {
    constexpr std::size_t rounds = 100;
    pool slots(3);
    const weir::stream receive;
    const weir::stream process;
    std::vector<float> sums(rounds);

    for (std::size_t round = 0; round < rounds; ++round) {
        slot& s = slots.next();
        // Writes the slot: after the last use of it, which is on the other stream.
        weir::host_task(
            weir::on(receive).label("fill"), [&s, round] { s.data.fill(static_cast<float>(round)); },
            weir::out(s.token));
        // Reads the slot: after it was filled, and beside the filling of the others.
        weir::host_task(
            weir::on(process).label("drain"),
            [&s, &sum = sums[round]] {
                for (const float x : s.data) {
                    sum += x;
                }
            },
            weir::in(s.token));
    }
    process.synchronize();

    for (std::size_t round = 0; round < rounds; ++round) {
        if (sums[round] != static_cast<float>(256 * round)) {
            return 1;
        }
    }

    // The same without Weir's ordering is a race, and the report calls the slot by its name.
    const weir::check_scope check;
    const weir::ordering_scope manual(weir::ordering_mode::manual);
    slot& s = slots.next();
    weir::host_task(
        weir::on(receive).label("fill"), [] {}, weir::out(s.token));
    weir::host_task(
        weir::on(process).label("drain"), [] {}, weir::in(s.token));
    const weir::report found = check.report();
    return found.size() == 1 && found.to_string().find("RAW race on token \"slot 1\"") != std::string::npos ? 0 : 1;
}
