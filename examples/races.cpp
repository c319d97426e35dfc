// The races of docs/testing-for-races.md, each under check, and the tools that make them certain. Exits with 0 if check
// finds what the page says.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string_view>
#include <weir/weir.hpp>

namespace {

using weir::array;
using weir::stream;

constexpr std::int64_t n = 1000;

struct world {
    const stream a;
    const stream b;
    const stream c;
    array x = weir::zeros(n, weir::dtype::float64, a);
    array y = weir::zeros(n, weir::dtype::float64, b);
};

void read_after_write(const stream& a, const stream& b, array& x, array& y) {
    fill(a, x, 1);
    copy(b, y, x);  // RAW. Add before it: b.wait(a.record());
}

void stale_event(const stream& a, const stream& b, array& x, array& y) {
    weir::event e = a.record();  // too early: what follows is not covered
    fill(a, x, 1);
    b.wait(e);
    copy(b, y, x);  // stale-event. Record after the fill: e.record(a);
}

void default_stream(const stream& b, array& x, array& y) {
    fill(weir::current_stream(weir::cpu()), x, 1);  // no stream is current: Weir's default stream
    copy(b, y, x);                                  // default-stream. Give both the same one, or order the two
}

double host(const stream& a, array& x) {
    fill(a, x, 1);
    const double first = x.read<double>()[0];  // host. Add before it: a.synchronize();
    return first;
}

void use_after_free(const stream& a, const stream& b) {
    {
        array t = weir::empty(n, weir::dtype::float64, a);
        fill(b, t, 1);
    }  // use-after-free. Add before it: a.wait(b.record()); or keep t until the fill is over
}

void early_reuse(const stream& a, const stream& b, const stream& c) {
    {
        array t = weir::empty(n, weir::dtype::float64, a);
        fill(b, t, 1);
    }  // use-after-free, and if u lies where t was:
    array u = weir::empty(n, weir::dtype::float64, c);
    fill(c, u, 2);  // early-reuse
}

void mended(const stream& a, const stream& b, array& x, array& y) {
    fill(a, x, 1);
    b.wait(a.record());
    copy(b, y, x);
    a.wait(b.record());
}

/// Runs a program under manual ordering, watched: what check finds.
template <class Program>
weir::report watch(Program program) {
    const weir::ordering_scope scope(weir::ordering_mode::manual);
    const weir::check_scope watched;
    program();
    std::cout << watched.report().to_string();
    weir::cpu().synchronize();
    return watched.report();
}

bool found(const weir::report& in, std::string_view kind) {
    const bool is_there = std::any_of(in.begin(), in.end(), [&](const weir::race& one) { return one.kind == kind; });
    std::cout << kind << (is_there ? ": found\n" : ": missing\n");
    return is_there;
}

/// What the consumer sees of the producer's work if nothing orders the two: every time the same, which is wrong.
double certain_race() {
    const stream producer;
    const stream consumer;
    array x = weir::zeros(n, weir::dtype::float64, producer);
    array seen = weir::zeros(n, weir::dtype::float64, consumer);
    weir::cpu().synchronize();
    const weir::ordering_scope scope(weir::ordering_mode::manual);

    weir::testing::gate gate;
    gate.hold(producer);  // what comes now does not start before the gate opens
    fill(producer, x, 1);
    copy(consumer, seen, x);
    consumer.synchronize();  // has run: did it see what it should not?
    gate.open();

    const double result = seen.read<double>()[0];
    producer.synchronize();
    return result;
}

bool hostile_device() {
    weir::testing::simulated behaviour(weir::sim(0), {.engines = 2, .seed = 7, .adversarial = true});
    const stream s(weir::sim(0));
    return weir::full(n, 3, weir::dtype::float64, s).read<double>()[0] == 3;
}

}  // namespace

int main(int argc, char** argv) {
    weir::stream s(weir::device::from_name(argc > 1 ? argv[1] : "cpu"));  // "cpu", "cpu:inline", "sim:0"
    world w;
    weir::cpu().synchronize();
    const bool all = found(watch([&] { read_after_write(w.a, w.b, w.x, w.y); }), "RAW") &&
                     found(watch([&] { stale_event(w.a, w.b, w.x, w.y); }), "stale-event") &&
                     found(watch([&] { default_stream(w.b, w.x, w.y); }), "default-stream") &&
                     found(watch([&] { host(w.a, w.x); }), "host") &&
                     found(watch([&] { use_after_free(w.a, w.b); }), "use-after-free") &&
                     found(watch([&] { early_reuse(w.a, w.b, w.c); }), "use-after-free");
    const bool clean = watch([&] { mended(w.a, w.b, w.x, w.y); }).empty();
    return all && clean && certain_race() == 0 && hostile_device() && s ? 0 : 1;
}
