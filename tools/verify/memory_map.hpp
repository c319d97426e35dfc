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
    std::uint64_t resource = 0;  ///< whose it was
    party who;
};

/// A piece of memory, or what is tracked like memory, and its accesses.
struct resource {
    std::uint64_t bytes = 0;
    text device = nullptr;      ///< null: no allocation is in the log
    std::uint64_t address = 0;  ///< 0: it is no memory, or not known
    std::uint64_t line = 0;     ///< of the log: its allocation
    std::vector<past_access> own;
    std::vector<past_access> former;  ///< by former owners of the same bytes, as ranges of this one
};

/// Whole numbers from which there is no way back, as intervals: numbers that are used up one after the other cost nothing.
class number_set {
public:
    [[nodiscard]] bool contains(std::uint64_t one) const;
    void insert(std::uint64_t one);

private:
    std::map<std::uint64_t, std::uint64_t> ranges_;  ///< from first to last
};

/// Who owns which memory, and what former owners did to memory that nobody owns now.
class memory_map {
public:
    /// What is wrong with it; empty if nothing is. `other` becomes the log's line of the owner that is in the way.
    [[nodiscard]] std::string allocate(const allocation_record& what, std::uint64_t line, std::uint64_t& other);
    /// What is wrong with it; empty if nothing is. What is over is not remembered.
    [[nodiscard]] std::string drop(std::uint64_t id, const happens_before& order, bool trust_completion);
    [[nodiscard]] bool was_dropped(std::uint64_t id) const { return dropped_.contains(id); }
    /// The resource of that number; a new one where the log has no allocation.
    [[nodiscard]] resource& at(std::uint64_t id) { return resources_[id]; }

    /// Forgets what is settled.
    void prune(const happens_before& order);

private:
    /// Memory that nobody owns.
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
