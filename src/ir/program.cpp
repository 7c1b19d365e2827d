// SPDX-License-Identifier: Apache-2.0
//
// Small accessors of a program and its digest.
#include "ir/program.hpp"

namespace ke::ir {

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
