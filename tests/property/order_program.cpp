#include "order_program.hpp"

#include <algorithm>
#include <random>
#include <sstream>

namespace order_test {

namespace {

class generator {
public:
    generator(const recipe& how, std::uint64_t seed) : how_(how), random_(seed) {}

    program make() {
        const bool modes = how_.modes && chance(50);
        const int streams = 2 + below(how_.streams - 1);
        for (int s = 0; s < streams; ++s) {
            made_.streams.push_back(modes ? mode() : order_by::silent);
        }
        made_.process = modes && chance(30) ? order_by::program : order_by::weir;
        made_.events = 2;
        eventful_ = chance(25) ? 12 : 0;
        const int packages = how_.packages ? 1 + below(2) : 0;
        for (int p = 0; p < packages; ++p) {
            made_.packages.push_back(below(streams));
        }
        const int buffers = 1 + below(how_.buffers);
        for (int b = 0; b < buffers; ++b) {
            const unsigned shared = packages > 0 && chance(60) ? 1U << below(packages) : 0U;
            made_.buffers.push_back({b * how_.cells, how_.cells, modes ? mode() : order_by::silent, {}, shared});
            alive_.push_back(b);
            shared_.push_back(shared);
        }
        const int steps = 3 + below(how_.steps - 2);
        while (static_cast<int>(made_.steps.size()) < steps) {
            add(modes);
        }
        return std::move(made_);
    }

private:
    int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
    bool chance(int percent) { return below(100) < percent; }
    int stream() { return below(static_cast<int>(made_.streams.size())); }
    order_by mode() {
        const int roll = below(10);
        return roll < 6 ? order_by::silent : roll < 8 ? order_by::weir : order_by::program;
    }

    touch access_to(int b) {
        const int size = made_.buffers[static_cast<std::size_t>(b)].size;
        int begin = 0;
        int end = size;
        const int shape = below(10);
        if (how_.touches > 2) {  // many small ones
            begin = below(size);
            end = begin + 1;
        } else if (shape < 3) {
            begin = below(2) * (size / 2);
            end = begin + size / 2;
        } else if (shape < 6) {
            begin = below(size);
            end = begin + 1 + below(size - begin);
        }
        return {b, begin, end, chance(how_.writes)};
    }

    std::vector<touch> accesses() {
        std::vector<touch> some;
        const int count = 1 + below(how_.touches);
        for (int i = 0; i < count && !alive_.empty(); ++i) {
            some.push_back(access_to(alive_[static_cast<std::size_t>(below(static_cast<int>(alive_.size())))]));
        }
        return some;
    }

    void add(bool modes) {
        step next;
        if (modes && chance(30)) {
            next.scope = chance(50) ? order_by::weir : order_by::program;
        }
        const int roll = below(100 + 2 * eventful_) - 2 * eventful_;
        if (roll < 8 - eventful_) {
            next.what = action::record;
            next.stream = stream();
            next.object = below(made_.events);
        } else if (roll < 16) {
            next.what = action::wait_event;
            next.stream = stream();
            next.object = below(made_.events);
        } else if (roll < 21) {
            next.what = action::wait_stream;
            next.stream = stream();
            next.object = stream();
        } else if (roll < 25 && how_.host) {
            next.what = action::host;
            next.touches = accesses();
        } else if (roll < 41 && how_.reuse) {
            if (!add_reuse(modes)) {
                return;
            }
            next = std::move(reuse_);
        } else if (roll < 64 && how_.packages) {
            if (!add_foreign()) {
                return;
            }
            next = std::move(foreign_);
        } else {
            next.what = action::launch;
            next.stream = stream();
            next.touches = accesses();
            if (chance(12)) {
                next.after.push_back(below(made_.events));
            }
        }
        made_.steps.push_back(std::move(next));
    }

    // Drops a buffer, or makes one where buffers were dropped. Returns false if neither is possible.
    bool add_reuse(bool modes) {
        reuse_ = {};
        std::erase_if(dead_, [&](int b) { return shared_[static_cast<std::size_t>(b)] != 0; });
        if (!dead_.empty() && chance(80)) {
            buffer fresh;
            fresh.mode = modes ? mode() : order_by::silent;
            // All dropped memory that is adjacent to the last dropped buffer, half of the time.
            const buffer first = made_.buffers[static_cast<std::size_t>(dead_.back())];
            fresh.made_of = {dead_.back()};
            fresh.base = first.base;
            fresh.size = first.size;
            dead_.pop_back();
            const bool widen = chance(50);
            for (std::size_t i = 0; widen && i < dead_.size();) {
                const buffer& other = made_.buffers[static_cast<std::size_t>(dead_[i])];
                if (other.base + other.size != fresh.base && fresh.base + fresh.size != other.base) {
                    ++i;
                    continue;
                }
                fresh.base = std::min(fresh.base, other.base);
                fresh.size += other.size;
                fresh.made_of.push_back(dead_[i]);
                dead_.erase(dead_.begin() + static_cast<std::ptrdiff_t>(i));
                i = 0;
            }
            reuse_.what = action::make;
            reuse_.object = static_cast<int>(made_.buffers.size());
            alive_.push_back(reuse_.object);
            shared_.push_back(0);
            made_.buffers.push_back(std::move(fresh));
            return true;
        }
        if (alive_.empty()) {
            return false;
        }
        const auto which = static_cast<std::size_t>(below(static_cast<int>(alive_.size())));
        if (shared_[static_cast<std::size_t>(alive_[which])] != 0) {
            return false;  // its memory is the package's, or is subject to rule L5
        }
        reuse_.what = action::drop;
        reuse_.object = alive_[which];
        dead_.push_back(alive_[which]);
        alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(which));
        return true;
    }

    bool add_foreign() {
        foreign_ = {};
        foreign_.package = below(static_cast<int>(made_.packages.size()));
        const unsigned mine = 1U << foreign_.package;
        const int roll = below(10);
        if (roll == 0) {
            foreign_.what = action::move_package;
            foreign_.stream = stream();
            return true;
        }
        if (alive_.empty()) {
            return false;
        }
        const int b = alive_[static_cast<std::size_t>(below(static_cast<int>(alive_.size())))];
        unsigned& shared = shared_[static_cast<std::size_t>(b)];
        if ((shared & mine) == 0) {
            foreign_.what = action::hand_out;
            foreign_.object = b;
            shared |= mine;
            return true;
        }
        foreign_.what = action::foreign;
        foreign_.touches = {access_to(b)};
        return true;
    }

    recipe how_;
    int eventful_ = 0;  // how many more of a hundred steps record an event, and as many wait for one
    std::mt19937_64 random_;
    program made_;
    std::vector<int> alive_;
    std::vector<int> dead_;
    std::vector<unsigned> shared_;
    step reuse_;
    step foreign_;
};

const char* name(action what) {
    switch (what) {
        case action::launch:
            return "launch";
        case action::record:
            return "record";
        case action::wait_event:
            return "wait for event";
        case action::wait_stream:
            return "wait for stream";
        case action::host:
            return "host";
        case action::drop:
            return "drop";
        case action::make:
            return "make";
        case action::foreign:
            return "foreign";
        case action::move_package:
            return "move package";
        case action::hand_out:
            return "hand out";
    }
    return "?";
}

const char* name(order_by mode) {
    return mode == order_by::weir ? "automatic" : mode == order_by::program ? "manual" : "-";
}

}  // namespace

program random_program(const recipe& how, std::uint64_t seed) { return generator{how, seed}.make(); }

std::string describe(const program& p) {
    std::ostringstream text;
    text << "process " << name(p.process) << ", streams";
    for (const order_by mode : p.streams) {
        text << ' ' << name(mode);
    }
    for (std::size_t i = 0; i < p.packages.size(); ++i) {
        text << ", package " << i << " on stream " << p.packages[i];
    }
    text << '\n';
    for (std::size_t b = 0; b < p.buffers.size(); ++b) {
        const buffer& it = p.buffers[b];
        text << "buffer " << b << ": bytes " << it.base << " to " << it.base + it.size << ", " << name(it.mode);
        for (const int former : it.made_of) {
            text << ", was " << former;
        }
        text << ", packages " << it.packages << '\n';
    }
    for (std::size_t i = 0; i < p.steps.size(); ++i) {
        const step& it = p.steps[i];
        text << operation(static_cast<int>(i)) << ": " << name(it.what) << ", stream " << it.stream << ", object "
             << it.object << ", package " << it.package << ", scope " << name(it.scope);
        for (const touch& t : it.touches) {
            text << (t.write ? ", writes " : ", reads ") << t.buffer << '[' << t.begin << ", " << t.end << ')';
        }
        for (const int event : it.after) {
            text << ", after event " << event;
        }
        text << '\n';
    }
    return text.str();
}

std::string describe(const outcome& o) {
    std::ostringstream text;
    const auto list = [&](const char* what, const std::vector<edge>& edges) {
        for (const edge& e : edges) {
            text << what << ": stream " << e.stream << " up to " << e.upto << " before stream " << e.to << " from "
                 << e.from << ' ' << e.why << '\n';
        }
    };
    list("wait", o.waits);
    list("host wait", o.host_waits);
    list("over", o.over);
    return text.str();
}

}  // namespace order_test
