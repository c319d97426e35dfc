// A pool that has one free block of memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "support/devices.hpp"
#include "weir/weir.hpp"

namespace weir::test {

/// The pool has exactly one free block of `bytes` bytes and can get no other while this lives.
class one_piece {
public:
    one_piece(std::size_t bytes, const stream& s) : before_(memory::stats(here()).limit) {
        here().synchronize();
        memory::trim(here());
        const memory::statistics now = memory::stats(here());
        memory::limit(here(), now.live + now.pending + now.cached + bytes);
        // Uses up what other tests left in the pool, so that the block is all there is.
        while (memory::stats(here()).cached > 0) {
            fillers_.emplace_back(std::min<std::size_t>(memory::stats(here()).cached, 256), s);
        }
        { const buffer whole(bytes, s); }
    }
    ~one_piece() { memory::limit(here(), before_); }
    one_piece(const one_piece&) = delete;
    one_piece& operator=(const one_piece&) = delete;

private:
    std::size_t before_;
    std::vector<buffer> fillers_;
};

}  // namespace weir::test
