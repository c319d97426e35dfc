#include "region.hpp"

#include <algorithm>
#include <cstddef>

namespace weir_verify {

namespace {

constexpr std::size_t most_levels = 64;

std::int64_t to_signed(std::uint64_t n) { return static_cast<std::int64_t>(n); }

/// The largest number of whole strides that is not more than n.
std::int64_t floor_div(std::int64_t n, std::int64_t stride) {
    const std::int64_t quotient = n / stride;
    return n % stride < 0 ? quotient - 1 : quotient;
}

/// The inner levels of a region, from one level on, at some offset.
class part {
public:
    part(const region& of, std::int64_t base, std::size_t depth, std::int64_t span)
        : of_(&of), base_(base), depth_(depth), span_(span) {}
    explicit part(const region& of) : part(of, to_signed(of.begin), 0, to_signed(of.end - of.begin)) {}

    [[nodiscard]] std::int64_t base() const { return base_; }
    [[nodiscard]] std::int64_t end() const { return base_ + span_; }
    [[nodiscard]] bool is_solid() const { return depth_ == of_->levels.size(); }
    [[nodiscard]] std::int64_t stride() const { return to_signed(of_->levels[depth_].stride); }
    [[nodiscard]] std::int64_t count() const { return to_signed(of_->levels[depth_].count); }
    [[nodiscard]] std::int64_t inner_span() const { return span_ - stride() * (count() - 1); }
    /// The part at an index of the outermost level, moved by `index` strides.
    [[nodiscard]] part inner(std::int64_t index) const {
        return {*of_, base_ + index * stride(), depth_ + 1, inner_span()};
    }
    [[nodiscard]] bool holds(std::int64_t byte) const { return is_solid() && base_ <= byte && byte < end(); }

private:
    const region* of_;
    std::int64_t base_;
    std::size_t depth_;
    std::int64_t span_;
};

class comparison {
public:
    [[nodiscard]] bool gave_up() const { return steps_left_ <= 0; }

    /// Whether the two share a byte; also true if the search was given up.
    bool meet(const part& a, const part& b) {
        if (a.end() <= b.base() || b.end() <= a.base()) {
            return false;
        }
        // A part always contains its first byte.
        if (--steps_left_ <= 0 || a.base() == b.base() || a.holds(b.base()) || b.holds(a.base())) {
            return true;
        }
        if (!a.is_solid() && !b.is_solid() && a.stride() == b.stride()) {
            return meet_in_step(a, b);
        }
        // Split the part with the larger stride.
        return b.is_solid() || (!a.is_solid() && a.stride() > b.stride()) ? meet_inside(a, b) : meet_inside(b, a);
    }

private:
    /// Only the difference of the two indices counts.
    bool meet_in_step(const part& a, const part& b) {
        const std::int64_t gap = b.base() - a.base();
        const std::int64_t low = std::max(floor_div(gap - a.inner_span(), a.stride()) + 1, 1 - b.count());
        const std::int64_t high = std::min(floor_div(gap + b.inner_span() - 1, a.stride()), a.count() - 1);
        const part other = b.inner(0);
        for (std::int64_t difference = low; difference <= high; ++difference) {
            if (meet(a.inner(difference), other)) {
                return true;
            }
        }
        return false;
    }

    bool meet_inside(const part& apart, const part& whole) {
        const std::int64_t gap = whole.base() - apart.base();
        const std::int64_t low = std::max(floor_div(gap - apart.inner_span(), apart.stride()) + 1, std::int64_t{0});
        const std::int64_t high =
            std::min(floor_div(whole.end() - 1 - apart.base(), apart.stride()), apart.count() - 1);
        for (std::int64_t index = low; index <= high; ++index) {
            if (meet(apart.inner(index), whole)) {
                return true;
            }
        }
        return false;
    }

    int steps_left_ = 1 << 20;
};

}  // namespace

std::string flaw_of(const region& one) {
    if (one.begin > one.end) {
        return "\"end\" is before \"begin\"";
    }
    if (one.end > most_bytes) {
        return "no memory is that large";
    }
    if (one.levels.empty()) {
        return {};
    }
    if (one.levels.size() > most_levels) {
        return "too many levels";
    }
    std::uint64_t left = one.end - one.begin;
    if (one.run == 0 || one.run > left) {
        return "\"run\" does not fit in";
    }
    left -= one.run;
    for (std::size_t i = 0; i < one.levels.size(); ++i) {
        const level& each = one.levels[i];
        if (each.stride == 0 || each.count < 2) {
            return "a level is [stride, count], a stride of at least 1 and a count of at least 2";
        }
        if (i > 0 && each.stride > one.levels[i - 1].stride) {
            return "the outermost level comes first";
        }
        if (each.stride > left / (each.count - 1)) {
            return "the levels reach beyond \"end\"";
        }
        left -= each.stride * (each.count - 1);
    }
    return left == 0 ? std::string() : "the levels do not reach \"end\"";
}

sharing compare(const region& a, const region& b) {
    if (a.empty() || b.empty() || std::max(a.begin, b.begin) >= std::min(a.end, b.end)) {
        return sharing::none;
    }
    if (a.levels.empty() && b.levels.empty()) {
        return sharing::certain;
    }
    comparison one;
    const bool shared = one.meet(part(a), part(b));
    if (one.gave_up()) {
        return sharing::unknown;
    }
    return shared ? sharing::certain : sharing::none;
}

bool covers(const region& outer, const region& inner) {
    if (inner.empty() || outer == inner) {
        return true;
    }
    return outer.levels.empty() && outer.begin <= inner.begin && inner.end <= outer.end;
}

std::string to_string(const region& one) {
    std::string said = "bytes [" + std::to_string(one.begin) + ", " + std::to_string(one.end) + ")";
    for (const level& each : one.levels) {
        said += (&each == one.levels.data() ? " in runs of " + std::to_string(one.run) + ": " : " of ") +
                std::to_string(each.count) + " every " + std::to_string(each.stride);
    }
    return said;
}

}  // namespace weir_verify
