// The same work with the flow graph and the allocator of oneTBB.
#include <benchmark/benchmark.h>
#include <tbb/flow_graph.h>
#include <tbb/scalable_allocator.h>

#include <deque>
#include <memory>

#include "contest.hpp"

namespace weir::bench {

namespace {

namespace flow = tbb::flow;
using node = flow::continue_node<flow::continue_msg>;

/// A graph of nodes that do nothing.
struct empty_graph {
    flow::graph graph;
    std::deque<node> nodes;

    node& add() {
        return nodes.emplace_back(graph, [](const flow::continue_msg&) {});
    }
    node& add_after(node& before) {
        node& made = add();
        flow::make_edge(before, made);
        return made;
    }
    void chain(std::size_t count) {
        node* last = &add();
        for (std::size_t i = 1; i < count; ++i) {
            last = &add_after(*last);
        }
    }
    void run() {
        nodes.front().try_put(flow::continue_msg());
        graph.wait_for_all();
    }
};

contestant chain() {
    constexpr std::size_t count = 20000;
    const auto with = std::make_shared<empty_graph>();
    with->chain(count);
    return {"TBB flow graph, made beforehand", count, [with] { with->run(); }};
}

// Weir learns of an operation when it is enqueued; this is the graph that learns of its nodes at run time as well.
contestant chain_with_construction() {
    constexpr std::size_t count = 20000;
    return {"TBB flow graph, making it included", count, [] {
                empty_graph made;
                made.chain(count);
                made.run();
            }};
}

contestant ping_pong() {
    // Two nodes that hand a number to and fro until it is 0.
    struct rig {
        using to_other = flow::multifunction_node<int, std::tuple<int>>;
        flow::graph graph;
        to_other one = make();
        to_other other = make();

        rig() {
            flow::make_edge(flow::output_port<0>(one), other);
            flow::make_edge(flow::output_port<0>(other), one);
        }
        to_other make() {
            return {graph, flow::serial, [](int left, to_other::output_ports_type& next) {
                        if (left > 0) {
                            std::get<0>(next).try_put(left - 1);
                        }
                    }};
        }
    };
    constexpr int count = 10000;
    const auto with = std::make_shared<rig>();
    return {"TBB flow graph, two nodes in a circle", count, [with] {
                with->one.try_put(count - 1);
                with->graph.wait_for_all();
            }};
}

contestant fork_join() {
    constexpr std::size_t count = 500;
    const auto with = std::make_shared<empty_graph>();
    node* root = &with->add();
    for (std::size_t i = 0; i < count; ++i) {
        node& join = with->add();
        for (int j = 0; j < 8; ++j) {
            flow::make_edge(with->add_after(*root), join);
        }
        root = &with->add_after(join);
    }
    return {"TBB flow graph, made beforehand", count, [with] { with->run(); }};
}

contestant host_wait() {
    constexpr std::size_t count = 200;
    const auto with = std::make_shared<empty_graph>();
    with->add();
    return {"TBB flow graph, made beforehand", count, [with] {
                for (std::size_t i = 0; i < count; ++i) {
                    with->run();
                }
            }};
}

contestant allocate_free() {
    constexpr std::size_t count = 10000;
    return {"TBB scalable_malloc, scalable_free", count, [] {
                for (std::size_t i = 0; i < count; ++i) {
                    void* memory = scalable_malloc(4096);
                    benchmark::DoNotOptimize(memory);
                    scalable_free(memory);
                }
            }};
}

const peer chain_peer("chain", chain);
const peer construction_peer("chain", chain_with_construction);
const peer ping_pong_peer("ping_pong", ping_pong);
const peer fork_join_peer("fork_join", fork_join);
const peer host_wait_peer("host_wait", host_wait);
const peer allocate_free_peer("allocate_free", allocate_free);

}  // namespace

}  // namespace weir::bench
