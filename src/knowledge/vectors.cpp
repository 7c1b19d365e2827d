// SPDX-License-Identifier: Apache-2.0
#include "knowledge/vectors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace ke::knowledge {
namespace {

// Of the paper. It lessens what the very first places of one ranking weigh against two rankings
// that agree.
constexpr double kFusion = 60;

// At a character's boundary.
std::string cut(std::string_view text) {
  if (text.size() <= kVectorTextMax) return std::string(text);
  size_t end = kVectorTextMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end));
}

}  // namespace

std::string vector_text(const Document& document) {
  return cut(fmt::format("{}\n{}\n\n{}", document.title, fmt::join(document.topics, ", "),
                         document.body));
}

std::string vector_text(std::string_view question) { return cut(question); }

double cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0, a_squared = 0, b_squared = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double x = a[i], y = b[i];
    product += x * y;
    a_squared += x * x;
    b_squared += y * y;
  }
  const double lengths = std::sqrt(a_squared) * std::sqrt(b_squared);
  return lengths > 0 ? product / lengths : 0;
}

std::vector<FusedRank> fuse(std::span<const Ranking> rankings) {
  std::vector<FusedRank> fused;
  for (const Ranking& ranking : rankings) {
    for (size_t i = 0; i < ranking.size(); ++i) {
      auto at = std::ranges::find(fused, ranking[i], &FusedRank::document);
      if (at == fused.end()) at = fused.insert(fused.end(), {ranking[i], 0});
      at->score += 1 / (kFusion + static_cast<double>(i + 1));
    }
  }
  std::ranges::stable_sort(fused, std::ranges::greater(), &FusedRank::score);
  return fused;
}

}  // namespace ke::knowledge
