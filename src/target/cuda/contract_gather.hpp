// SPDX-License-Identifier: Apache-2.0
//
// Operands whose elements meet several rows, as the input of a convolution does: instead of tiles
// with every element as often as it is used, scratch holds each once, as a 16-bit part with its
// channels next to each other, and the product's producers gather pieces of eight channels. A
// 16-bit tensor that lies in memory so is gathered from there.
//
// For that, the contraction's inner axes are put in another order: the channel last, padded to a
// multiple of eight. Its guard (padding, holes of a transposed convolution) and its other indices
// may be anything that does not depend on the channel.
#pragma once

#include <array>
#include <optional>

#include "target/contract_shape.hpp"

namespace ke::cuda {

constexpr int64_t kPieceElements = 8;  // 16 bytes

struct Gather {
  ir::TensorId tensor;
  bool in_place = false;  // from the tensor itself
  // Elements have one scale an image: an index that is the same along all of k, if there is one.
  int64_t images = 1, pixels = 1, channels = 1;
  int64_t padded_channels = kPieceElements;
  ir::ExprPtr packed;           // an element, over (image, pixel, channel)
  ir::ExprPtr flat;             // the same over (image, position), in the order of memory
  ir::ExprPtr image;            // of a row, over the canonical axes
  ir::ExprPtr piece;            // its number, over the canonical axes with k counted in pieces
  ir::ExprPtr inside;           // whether the piece exists, over the same; null when it does
  bool along_channels = false;  // channels are neighbours in memory

  int64_t packed_elements() const { return images * pixels * padded_channels; }
};

// The contraction as the tensor-core family sees it.
struct TensorShape {
  target::ContractShape shape;
  std::array<std::optional<Gather>, 2> gathers;  // of the left and the right operand
};

TensorShape tensor_shape(const ir::Program& program, const ir::FusedKernel& kernel,
                         const target::ContractShape& shape);

// The 16-bit type that holds every value of an operand, or another type.
ir::DType half_type(const ir::Expr& value);

}  // namespace ke::cuda
