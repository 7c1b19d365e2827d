// SPDX-License-Identifier: Apache-2.0
#include "target/x86/decisions.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace ke::x86 {
namespace {

using Meaning = std::pair<std::string_view, std::string_view>;

constexpr std::array<Meaning, 19> kMeanings{{
    {"unroll", "vectors (of a product: steps of k) that the innermost loop handles at a time"},
    {"parallel", "1: over all threads, 0: on one"},
    {"chunk", "elements a task of the parallel loop"},
    {"streaming", "1: non-temporal stores past the cache, 0: ordinary stores"},
    {"rows_in_lanes", "1: each vector lane reduces a row of its own, 0: lanes share one row"},
    {"tile", "neighbouring rows that one task reduces together"},
    {"rows_per_task", "rows a task of the parallel loop"},
    {"split", "parts of each row that are reduced apart, so that more threads have work"},
    {"keep_terms", "1: terms are computed once and kept for the next pass, 0: computed again"},
    {"tile_m", "rows of the register tile"},
    {"tile_n", "columns of the register tile"},
    {"block_m", "rows of the block that a thread takes"},
    {"block_n", "columns of the block that a thread takes"},
    {"block_k", "depth over which a register tile is kept"},
    {"pack_a", "left operand: 0 read in place, 1 copied block by block"},
    {"pack_b", "right operand: 0 read in place, 1 copied block by block, 2 copied whole first"},
    {"threads", "threads that share the blocks"},
    {"split_k", "parts of k that are summed apart and combined"},
    {"prefetch", "1: the next block of k is fetched while this one is packed"},
}};

}  // namespace

std::string_view meaning_of(std::string_view decision) {
  const auto* found = std::ranges::find(kMeanings, decision, &Meaning::first);
  return found == kMeanings.end() ? std::string_view() : found->second;
}

}  // namespace ke::x86
