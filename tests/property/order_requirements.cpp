// From a program to its requirements. Everything here follows from the program's text and the rules, step by step.
#include <algorithm>
#include <cstdlib>

#include "order_oracle.hpp"

namespace order_test {

namespace {

class reader {
public:
    explicit reader(const program& p)
        : program_(p),
          last_(p.streams.size() + 1, none),
          recorded_(static_cast<std::size_t>(p.events), none),
          current_(p.packages) {
        for (const buffer& b : p.buffers) {
            shared_.push_back(b.packages);
        }
    }

    requirements read() {
        for (std::size_t i = 0; i < program_.steps.size(); ++i) {
            read(program_.steps[i], static_cast<int>(i));
        }
        return std::move(made_);
    }

private:
    static constexpr int none = -1;
    struct past {
        int self;
        touch what;
    };

    int host() const { return static_cast<int>(program_.streams.size()); }
    int& last(int stream) { return last_[static_cast<std::size_t>(stream)]; }

    int add(int stream, int position, bool works) {
        const int self = static_cast<int>(made_.nodes.size());
        if (self == 64) {
            std::abort();  // a set has 64 bits: make the programs shorter
        }
        made_.nodes.push_back({stream, position, works, {}, {}});
        made_.given.push_back(last(stream) == none ? 0 : set{1} << last(stream));
        made_.required.push_back(0);
        made_.why.emplace_back(64, 0U);
        before_.push_back(0);
        last(stream) = self;
        order(self);
        return self;
    }

    // Computes what comes before `self`, on the device alone: a wait that the host's blocking makes superfluous
    // is still part of the program.
    void order(int self) {
        const auto at = static_cast<std::size_t>(self);
        const set direct = made_.given[at] | made_.required[at];
        set all = direct;
        for (std::size_t u = 0; u < at; ++u) {
            if ((direct >> u & 1) != 0) {
                all |= before_[u];
            }
        }
        before_[at] = all;
    }

    void require(int before, int after, unsigned why) {
        if (before == none || before == after) {
            return;
        }
        const auto at = static_cast<std::size_t>(after);
        made_.required[at] |= set{1} << before;
        made_.why[at][static_cast<std::size_t>(before)] |= why;
        order(after);
    }

    // Rule O5: the innermost mode that is set decides.
    bool by_weir(const touch& t, const step& at) const {
        order_by mode = program_.buffers[static_cast<std::size_t>(t.buffer)].mode;
        if (mode == order_by::silent && at.what != action::host) {
            mode = program_.streams[static_cast<std::size_t>(at.stream)];
        }
        if (mode == order_by::silent) {
            mode = at.scope;
        }
        if (mode == order_by::silent) {
            mode = program_.process;
        }
        return mode == order_by::weir;
    }

    bool was(int buffer, int former) const {
        const auto& made_of = program_.buffers[static_cast<std::size_t>(buffer)].made_of;
        return std::any_of(made_of.begin(), made_of.end(),
                           [&](int owner) { return owner == former || was(owner, former); });
    }

    // Rules O1 and L1: an operation comes after earlier ones whose accesses conflict with its own, if Weir orders them; and
    // what writes comes in any case after the accesses of former owners of the memory.
    void read_accesses(int self, const step& at) {
        for (const touch& t : at.touches) {
            node& it = made_.nodes[static_cast<std::size_t>(self)];
            const int base = program_.buffers[static_cast<std::size_t>(t.buffer)].base;
            for (int cell = t.begin; cell < t.end; ++cell) {
                it.cells.push_back(base + cell);
                if (t.write) {
                    it.written.push_back(base + cell);
                }
            }
            const bool weir = by_weir(t, at);
            for (const past& earlier : accesses_) {
                if (was(t.buffer, earlier.what.buffer)) {
                    if (!weir && !t.write) {
                        continue;  // what it reads was written later, by the new owner, and the program orders that
                    }
                    require(earlier.self, self, reuse);
                } else if (weir && earlier.what.buffer == t.buffer && conflict(earlier.what, t)) {
                    require(earlier.self, self, kind_of(earlier.what, t));
                }
            }
        }
        for (const touch& t : at.touches) {
            if (at.what != action::host) {  // nothing that the program enqueues later can come before the host's access
                accesses_.push_back({self, t});
            }
        }
    }

    static bool conflict(const touch& a, const touch& b) {
        return (a.write || b.write) && a.begin < b.end && b.begin < a.end;
    }
    static unsigned kind_of(const touch& earlier, const touch& later) {
        if (!later.write) {
            return read_after_write;
        }
        return earlier.write ? write_after_write : write_after_read;
    }

    // The streams of the packages that share a buffer that the step touches under Weir's ordering.
    std::vector<int> peers(const step& at) const {
        std::vector<int> streams;
        for (const touch& t : at.touches) {
            for (std::size_t package = 0; package < current_.size(); ++package) {
                const bool shares = (shared_[static_cast<std::size_t>(t.buffer)] >> package & 1U) != 0;
                if (shares && by_weir(t, at)) {
                    streams.push_back(current_[package]);
                }
            }
        }
        std::sort(streams.begin(), streams.end());
        streams.erase(std::unique(streams.begin(), streams.end()), streams.end());
        return streams;
    }

    void read(const step& at, int index) {
        switch (at.what) {
            case action::launch:
                read_launch(at, index);
                break;
            case action::record:
                recorded_[static_cast<std::size_t>(at.object)] = last(at.stream);
                break;
            case action::wait_event:
                read_wait(at, index, recorded_[static_cast<std::size_t>(at.object)]);
                break;
            case action::wait_stream:
                read_wait(at, index, last(at.object));
                break;
            case action::host:
                read_host(at, index);
                break;
            case action::drop:
            case action::make:
                break;
            case action::foreign:
                read_foreign(at, index);
                break;
            case action::move_package: {
                int& current = current_[static_cast<std::size_t>(at.package)];
                const int self = add(at.stream, operation(index), false);
                if (current != at.stream && last(current) != none) {
                    made_.given[static_cast<std::size_t>(self)] |= set{1} << last(current);
                    order(self);
                }
                current = at.stream;
                break;
            }
            case action::hand_out:
                read_hand_out(at, index);
                break;
        }
    }

    // Rules X6 and X7: after everything that the packages enqueued so far, before everything that they enqueue from now on.
    void read_launch(const step& at, int index) {
        const std::vector<int> streams = peers(at);
        std::vector<int> entries;
        for (const int peer : streams) {
            entries.push_back(peer == at.stream ? none : last(peer));
        }
        const int self = add(at.stream, operation(index), true);
        for (const int before : entries) {
            require(before, self, entry);
        }
        for (const int event : at.after) {
            require(recorded_[static_cast<std::size_t>(event)], self, dependency);
        }
        read_accesses(self, at);
        for (const int peer : streams) {
            if (peer != at.stream) {
                require(self, add(peer, aftermath(index), false), exit);
            }
        }
    }

    // A wait for what the stream is already ordered after has no effect.
    void read_wait(const step& at, int index, int target) {
        const int tail = last(at.stream);
        const set known = tail == none ? 0 : before_[static_cast<std::size_t>(tail)] | set{1} << tail;
        if (target != none && (known >> target & 1) == 0) {
            require(target, add(at.stream, operation(index), false), dependency);
        }
    }

    void read_host(const step& at, int index) {
        const std::vector<int> streams = peers(at);
        const int self = add(host(), operation(index), true);
        made_.on_host |= set{1} << self;
        for (const int peer : streams) {
            require(last(peer), self, entry);
        }
        read_accesses(self, at);
    }

    void read_foreign(const step& at, int index) {
        const int self = add(current_[static_cast<std::size_t>(at.package)], operation(index), true);
        node& it = made_.nodes[static_cast<std::size_t>(self)];
        for (const touch& t : at.touches) {
            const int base = program_.buffers[static_cast<std::size_t>(t.buffer)].base;
            for (int cell = t.begin; cell < t.end; ++cell) {
                it.cells.push_back(base + cell);
                if (t.write) {
                    it.written.push_back(base + cell);
                }
            }
        }
    }

    // From here on the package may read and write: it comes after every access so far, also those of other packages that
    // share the buffer. The protocol requires this, so the ordering mode does not matter.
    void read_hand_out(const step& at, int index) {
        unsigned& shared = shared_[static_cast<std::size_t>(at.object)];
        std::vector<int> entries;
        for (std::size_t package = 0; package < current_.size(); ++package) {
            if ((shared >> package & 1U) != 0) {
                entries.push_back(last(current_[package]));
            }
        }
        const int self = add(current_[static_cast<std::size_t>(at.package)], operation(index), false);
        for (const int before : entries) {
            require(before, self, entry);
        }
        for (const past& earlier : accesses_) {
            if (earlier.what.buffer == at.object || was(at.object, earlier.what.buffer)) {
                require(earlier.self, self, exit);
            }
        }
        shared |= 1U << at.package;
    }

    const program& program_;
    requirements made_;
    relation before_;
    std::vector<int> last_;      // the last node of each stream, the host's at the end
    std::vector<int> recorded_;  // the node that each event stands for
    std::vector<int> current_;   // the current stream of each package
    std::vector<unsigned> shared_;
    std::vector<past> accesses_;
};

}  // namespace

requirements derive(const program& p) { return reader{p}.read(); }

const char* name_of_kind(int bit) {
    constexpr const char* names[kinds] = {
        "read after write", "write after read", "write after write", "reuse", "dependency", "entry", "exit"};
    return names[bit];
}

}  // namespace order_test
