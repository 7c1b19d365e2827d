// SPDX-License-Identifier: Apache-2.0
//
// The sum over all places of a convolution's result is, for each tap of the window, the sum of what
// the tap reads times the tap's weight. Taps that read the same elements (all of them, where a
// transposed convolution crops nothing) share one sum, so that their weights can be added up first.
#include "ir/fold_cost.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace ke::ir {
namespace {

constexpr int64_t kTapsMax = 1 << 12;
constexpr int64_t kReachMax = int64_t{1} << 30;

const Value* tensor(const Graph& graph, const Node& node, size_t position) {
  if (position >= node.args.size()) return nullptr;
  const auto* id = std::get_if<ValueId>(&node.args[position].data);
  return id ? &value_of(graph, *id) : nullptr;
}

// The number for spatial dimension `d` of a list that may hold one for all.
std::optional<int64_t> number_for(const Arg& arg, size_t d) {
  const auto* list = std::get_if<std::vector<Arg>>(&arg.data);
  if (!list || list->empty()) return std::nullopt;
  const auto* number = std::get_if<int64_t>(&(*list)[d % list->size()].data);
  if (!number || *number < 0 || *number > kReachMax) return std::nullopt;
  return *number;
}

std::optional<int64_t> integer(const Node& node, size_t position) {
  const auto* number = std::get_if<int64_t>(&node.args[position].data);
  return number ? std::optional(*number) : std::nullopt;
}

struct Stencil {  // one spatial dimension
  int64_t input, output, taps, stride, padding, dilation;
  bool transposed;
};

// How many different ranges of the input the taps read.
int64_t distinct_ranges(const Stencil& s) {
  if (s.taps > kTapsMax || s.stride < 1) return s.taps;
  // The place p of the strided side meets p * stride - padding + tap * dilation of the other.
  const int64_t strided = s.transposed ? s.input : s.output;
  const int64_t other = s.transposed ? s.output : s.input;
  std::set<std::pair<int64_t, int64_t>> ranges;
  for (int64_t tap = 0; tap < s.taps; ++tap) {
    const int64_t shift = tap * s.dilation - s.padding;
    const int64_t first = shift >= 0 ? 0 : (-shift + s.stride - 1) / s.stride;
    if (other - 1 - shift < 0) continue;
    const int64_t last = std::min(strided - 1, (other - 1 - shift) / s.stride);
    if (first > last) continue;
    if (s.transposed) {
      ranges.emplace(first, last);
    } else {
      ranges.emplace(first * s.stride + shift, last * s.stride + shift);
    }
  }
  return std::max<int64_t>(1, static_cast<int64_t>(ranges.size()));
}

std::optional<Product> matrix_product(const Graph& graph, const Node& node, size_t position,
                                      bool batched) {
  const Value* left = tensor(graph, node, position);
  const Value* right = tensor(graph, node, position + 1);
  const size_t rank = batched ? 3 : 2;
  if (!left || !right || left->shape.size() != rank || right->shape.size() != rank) {
    return std::nullopt;
  }
  Product product;
  product.extents = value_of(graph, node.results.front()).shape;
  if (product.extents.size() != rank) return std::nullopt;
  product.sides = {Side::left, Side::right};
  if (batched) product.sides.insert(product.sides.begin(), Side::both);
  product.left_elements = static_cast<double>(element_count(*left));
  product.right_elements = static_cast<double>(element_count(*right));
  product.depth = static_cast<double>(left->shape.back());
  return product;
}

// aten.convolution(input, weight, bias, stride, padding, dilation, transposed, _, groups)
std::optional<Product> convolution(const Graph& graph, const Node& node) {
  const Value* input = tensor(graph, node, 0);
  const Value* weight = tensor(graph, node, 1);
  if (!input || !weight || node.args.size() < 9) return std::nullopt;
  const std::vector<int64_t>& out = value_of(graph, node.results.front()).shape;
  const auto* transposed = std::get_if<bool>(&node.args[6].data);
  const std::optional<int64_t> groups = integer(node, 8);
  const size_t rank = weight->shape.size();
  if (!transposed || !groups || *groups < 1 || rank < 3 || input->shape.size() != rank ||
      out.size() != rank) {
    return std::nullopt;
  }
  Product product;
  product.extents = out;
  product.sides.assign(rank, Side::left);
  product.sides[1] = Side::right;
  product.left_elements = static_cast<double>(element_count(*input));
  product.right_elements = static_cast<double>(element_count(*weight));
  product.first_place = 2;
  product.groups = *groups;
  product.depth = product.depth_of_all_places =
      static_cast<double>(input->shape[1]) / static_cast<double>(*groups);
  for (size_t d = 2; d < rank; ++d) {
    const auto stride = number_for(node.args[3], d - 2), padding = number_for(node.args[4], d - 2),
               dilation = number_for(node.args[5], d - 2);
    if (!stride || !padding || !dilation) return std::nullopt;
    const Stencil stencil{input->shape[d], out[d],    weight->shape[d], *stride,
                          *padding,        *dilation, *transposed};
    product.depth *= static_cast<double>(stencil.taps);
    product.depth_of_all_places *= static_cast<double>(distinct_ranges(stencil));
  }
  return product;
}

}  // namespace

std::optional<Product> product_of(const Graph& graph, const Node& node) {
  if (node.results.size() != 1 || element_count(value_of(graph, node.results.front())) == 0 ||
      !is_floating(value_of(graph, node.results.front()).dtype)) {
    return std::nullopt;
  }
  const std::string_view name = operation_of(node);
  if (name == "mm") return matrix_product(graph, node, 0, false);
  if (name == "addmm") return matrix_product(graph, node, 1, false);
  if (name == "bmm") return matrix_product(graph, node, 0, true);
  if (name == "baddbmm") return matrix_product(graph, node, 1, true);
  if (name == "convolution") return convolution(graph, node);
  return std::nullopt;
}

double folded_flops(const Product& product, const std::vector<int64_t>& kept) {
  bool left_summed = false, right_summed = false;
  bool all_places = product.first_place < product.extents.size();
  double results = 1;
  for (size_t axis = 0; axis < product.extents.size(); ++axis) {
    const bool summed = kept[axis] < product.extents[axis];
    int64_t count = kept[axis];
    if (product.sides[axis] == Side::both) {
      count = product.extents[axis];  // a sum over it only makes the product deeper
    } else if (product.sides[axis] == Side::left) {
      left_summed |= summed;
    } else {
      right_summed |= summed;
      if (axis == 1) count = std::min(product.extents[axis], std::max(count, product.groups));
    }
    if (axis >= product.first_place) all_places &= kept[axis] == 1;
    results *= static_cast<double>(count);
  }
  const double depth = all_places ? product.depth_of_all_places : product.depth;
  double adding = left_summed ? product.left_elements : 0;
  if (right_summed || (all_places && depth < product.depth)) adding += product.right_elements;
  return adding + 2 * results * depth;
}

}  // namespace ke::ir
