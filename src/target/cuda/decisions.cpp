// SPDX-License-Identifier: Apache-2.0
#include "target/cuda/decisions.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace ke::cuda {
namespace {

using Meaning = std::pair<std::string_view, std::string_view>;

constexpr std::array<Meaning, 20> kMeanings{{
    {"width", "neighbouring elements that a thread loads and stores at once"},
    {"items", "groups of neighbours a thread, loaded together"},
    {"block", "threads a block"},
    {"columns", "1: neighbouring threads reduce neighbouring rows, 0: they share one row"},
    {"columns_a_block", "neighbouring threads of a block that reduce neighbouring rows"},
    {"threads_per_row", "threads of a block that share one row"},
    {"cluster", "blocks that share one row, and join through each other's shared memory"},
    {"split", "parts of each row that are reduced apart, so that more blocks have work"},
    {"in_flight", "groups of neighbours of a row that a thread loads before it uses the first"},
    {"recompute",
     "1: what a pass computes is computed again by the next, 0: it goes through memory"},
    {"keep_row", "1: what several passes load waits in registers, 0: each loads it"},
    {"block_m", "rows of the tile that a block computes"},
    {"block_n", "columns of the tile that a block computes"},
    {"block_k", "depth of the slice of both operands that shared memory holds"},
    {"tile_m", "rows of the tile that a thread keeps in registers"},
    {"tile_n", "columns of the tile that a thread keeps in registers"},
    {"stages", "slices of the operands in shared memory: 2 loads one while another is used"},
    {"tensor_core", "1: tensor cores multiply 16-bit parts of the operands, 0: plain arithmetic"},
    {"terms", "products of parts a product: 3 keeps fp32's precision, 1 is faster and rounds"},
    {"split_k", "parts of k that are summed apart and combined"},
}};

}  // namespace

std::string_view meaning_of(std::string_view decision) {
  const auto* found = std::ranges::find(kMeanings, decision, &Meaning::first);
  return found == kMeanings.end() ? std::string_view() : found->second;
}

}  // namespace ke::cuda
