// SPDX-License-Identifier: Apache-2.0
#include "target/triton/reductions.hpp"

#include <fmt/format.h>

namespace ke::triton {

using ir::ReduceOp;

std::string_view identity_of(ReduceOp op, bool floating) {
  switch (op) {
    case ReduceOp::product:
      return floating ? "1.0" : "1";
    case ReduceOp::maximum:
      return "float('-inf')";
    case ReduceOp::minimum:
      return "float('inf')";
    case ReduceOp::all:
      return "1";
    case ReduceOp::none:
    case ReduceOp::sum:
    case ReduceOp::argmax:
    case ReduceOp::argmin:
    case ReduceOp::any:
      break;
  }
  return floating ? "0.0" : "0";
}

std::string combined(ReduceOp op, const std::string& a, const std::string& b) {
  switch (op) {
    case ReduceOp::product:
      return fmt::format("{} * {}", a, b);
    case ReduceOp::maximum:
    case ReduceOp::any:
      return fmt::format("largest({}, {})", a, b);
    case ReduceOp::minimum:
    case ReduceOp::all:
      return fmt::format("smallest({}, {})", a, b);
    case ReduceOp::none:
    case ReduceOp::sum:
    case ReduceOp::argmax:
    case ReduceOp::argmin:
      break;
  }
  return fmt::format("{} + {}", a, b);
}

std::string collected(ReduceOp op, const std::string& a) {
  switch (op) {
    case ReduceOp::product:
      return fmt::format("tl.reduce({}, 1, product, keep_dims=True)", a);
    case ReduceOp::maximum:
    case ReduceOp::any:
      return fmt::format("tl.reduce({}, 1, largest, keep_dims=True)", a);
    case ReduceOp::minimum:
    case ReduceOp::all:
      return fmt::format("tl.reduce({}, 1, smallest, keep_dims=True)", a);
    case ReduceOp::none:
    case ReduceOp::sum:
    case ReduceOp::argmax:
    case ReduceOp::argmin:
      break;
  }
  return fmt::format("tl.sum({}, axis=1, keep_dims=True)", a);
}

std::string scanned(ReduceOp op, const std::string& a, bool backwards) {
  const std::string_view way = backwards ? ", reverse=True" : "";
  if (op == ReduceOp::sum) return fmt::format("tl.cumsum({}, 1{})", a, way);
  const std::string_view join = op == ReduceOp::product   ? "product"
                                : op == ReduceOp::maximum ? "largest"
                                                          : "smallest";
  return fmt::format("tl.associative_scan({}, 1, {}{})", a, join, way);
}

}  // namespace ke::triton
