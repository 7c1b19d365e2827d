// SPDX-License-Identifier: Apache-2.0
#include "ir/lower/window.hpp"

#include <fmt/format.h>

namespace ke::ir {
namespace {

constexpr int64_t kStepMax = int64_t{1} << 20;

}  // namespace

Tap within(const ExprPtr& place, int64_t extent) {
  return {place, both(binary(BinaryOp::ge, place, index_constant(0)),
                      binary(BinaryOp::lt, place, index_constant(extent)))};
}

Tap tap_of(const Window& window, const ExprPtr& output, const ExprPtr& tap) {
  const ExprPtr start = multiply_add(output, window.stride, index_constant(-window.padding));
  return within(multiply_add(tap, window.dilation, start), window.extent);
}

ExprPtr both(const ExprPtr& a, const ExprPtr& b) { return binary(BinaryOp::logical_and, a, b); }

ExprPtr multiply_add(const ExprPtr& a, int64_t factor, const ExprPtr& b) {
  return binary(BinaryOp::add, binary(BinaryOp::mul, a, index_constant(factor)), b);
}

Result<std::vector<int64_t>> by_dimension(const Call& call, size_t position, std::string_view name,
                                          const std::vector<int64_t>& absent, int64_t least) {
  std::vector<int64_t> given = TRY(call.integers(position, name));
  if (given.empty()) return absent;
  if (given.size() == 1) given.assign(absent.size(), given[0]);
  bool fits = given.size() == absent.size();
  for (const int64_t number : given) fits = fits && number >= least && number <= kStepMax;
  if (!fits) return call.wrong(fmt::format("'{}' does not fit", name));
  return given;
}

}  // namespace ke::ir
