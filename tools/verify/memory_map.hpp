#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "finding.hpp"
#include "happens_before.hpp"
#include "record.hpp"

namespace weir_verify {

/// An access that later ones may have to come after.
struct past_access {
    region where;
    bool writes = false;
    position when;
    std::uint64_t resource = 0;  ///< the resource that was accessed
    party who;
};

/// A resource, which is memory or is tracked like memory, and its accesses.
struct resource {
    std::uint64_t bytes = 0;
    text device = nullptr;      ///< null: the log shows no allocation
    std::uint64_t address = 0;  ///< 0: it is no memory, or the address is not known
    std::uint64_t line = 0;     ///< line of its allocation in the log
    std::vector<past_access> own;
    std::vector<past_access> former;  ///< by former owners of the same bytes, as ranges of this resource
};

/// A set of whole numbers that only grows, stored as intervals: numbers that are added one after the other need no extra memory.
class number_set {
public:
    [[nodiscard]] bool contains(std::uint64_t one) const;
    void insert(std::uint64_t one);

private:
    std::map<std::uint64_t, std::uint64_t> ranges_;  ///< from first to last
};

/// The owners of memory, and the accesses of former owners to memory without an owner.
class memory_map {
public:
    /// Returns what is wrong with the allocation; empty if nothing is. `other` becomes the log line of the owner that is in the way.
    [[nodiscard]] std::string allocate(const allocation_record& what, std::uint64_t line, std::uint64_t& other);
    /// Returns what is wrong with it; empty if nothing is. Complete accesses are not kept.
    [[nodiscard]] std::string drop(std::uint64_t id, const happens_before& order, bool trust_completion);
    [[nodiscard]] bool was_dropped(std::uint64_t id) const { return dropped_.contains(id); }
    /// The resource of that number; a new one where the log has no allocation.
    [[nodiscard]] resource& at(std::uint64_t id) { return resources_[id]; }

    /// Drops what is settled.
    void prune(const happens_before& order);

private:
    /// A range of memory without an owner.
    struct piece {
        std::uint64_t end = 0;
        std::vector<past_access> accesses;  ///< by address
    };
    /// One device's memory.
    struct space {
        std::map<std::uint64_t, std::uint64_t> owners;  ///< resources by address
        std::map<std::uint64_t, piece> pieces;          ///< by address; none overlap
    };
    void inherit(space& from, resource& heir);

    std::unordered_map<std::uint64_t, resource> resources_;
    std::map<std::string, space> spaces_;
    number_set dropped_;
};

}  // namespace weir_verify
