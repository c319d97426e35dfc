// Task graphs of customary shapes with the flow graph of oneTBB. A node runs when all that it depends on has run: the
// tasks that it reads, and those that read what it overwrites, as far as these do not imply each other.
#include <tbb/flow_graph.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "contest.hpp"
#include "task_shapes.hpp"

namespace weir::bench {

namespace {

namespace flow = tbb::flow;
using node = flow::continue_node<flow::continue_msg>;

constexpr std::size_t graphs_in_a_turn = 10;

class flow_tasks {
public:
    explicit flow_tasks(task_shape shape) {
        for (std::size_t step = 0; step < task_steps; ++step) {
            for (std::size_t column = 0; column < task_columns; ++column) {
                node& made = nodes_.emplace_back(graph_, [](const flow::continue_msg&) {});
                const std::vector<std::size_t> read = task_inputs(shape, step, column);
                for (const std::size_t other : read) {
                    flow::make_edge(at(step - 1, other), made);
                }
                // A column's own last task: the order of a stream, which Weir's tasks have as well.
                if (step > 0 && task_inputs_lack(read, column)) {
                    flow::make_edge(at(step - 1, column), made);
                }
                if (step == 0) {
                    roots_.push_back(&made);
                }
            }
        }
    }
    void run() {
        for (node* const root : roots_) {
            root->try_put(flow::continue_msg());
        }
        graph_.wait_for_all();
    }

private:
    static bool task_inputs_lack(const std::vector<std::size_t>& read, std::size_t column) {
        for (const std::size_t other : read) {
            if (other == column) {
                return false;
            }
        }
        return true;
    }
    node& at(std::size_t step, std::size_t column) { return nodes_[step * task_columns + column]; }

    flow::graph graph_;
    std::deque<node> nodes_;
    std::vector<node*> roots_;
};

contestant beforehand(task_shape shape) {
    const auto with = std::make_shared<flow_tasks>(shape);
    return {"TBB flow graph, made beforehand", graphs_in_a_turn * tasks_in_all, [with] {
                for (std::size_t i = 0; i < graphs_in_a_turn; ++i) {
                    with->run();
                }
            }};
}

contestant with_construction(task_shape shape) {
    return {"TBB flow graph, making it included", graphs_in_a_turn * tasks_in_all, [shape] {
                for (std::size_t i = 0; i < graphs_in_a_turn; ++i) {
                    flow_tasks(shape).run();
                }
            }};
}

const std::vector<peer> peers = [] {
    std::vector<peer> made;
    for (const named_shape& one : task_shapes) {
        const std::string name = std::string("tasks/") + one.name;
        made.emplace_back(name, [one] { return beforehand(one.shape); });
        made.emplace_back(name, [one] { return with_construction(one.shape); });
    }
    return made;
}();

}  // namespace

}  // namespace weir::bench
