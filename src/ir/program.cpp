// SPDX-License-Identifier: Apache-2.0
//
// Small accessors of a program and its digest.
#include "ir/program.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace ke::ir {

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  uint64_t step = 1;  // unsigned: a hostile shape may wrap; verify() refuses it
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = static_cast<int64_t>(step);
    step *= static_cast<uint64_t>(std::max<int64_t>(shape[i], 1));
  }
  return strides;
}

ExprPtr element_offset(const Tensor& tensor, const std::vector<ExprPtr>& indices,
                       const std::vector<int64_t>& extents) {
  KE_ASSERT(indices.size() == tensor.strides.size());
  ExprPtr offset = index_constant(0);
  for (size_t i = 0; i < indices.size(); ++i) {
    const ExprPtr step = index_constant(tensor.strides[i]);
    offset = binary(BinaryOp::add, offset, binary(BinaryOp::mul, indices[i], step));
  }
  return simplify_index(offset, extents);
}

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

const Stage* Program::writer(TensorId id) const {
  for (const Stage& stage : stages) {
    if (stage.output == id) return &stage;
  }
  return nullptr;
}

Digest digest_of(const Program& program) { return ke::digest_of(print(program)); }

}  // namespace ke::ir
