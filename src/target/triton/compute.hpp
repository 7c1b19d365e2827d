// SPDX-License-Identifier: Apache-2.0
//
// The computation of one shape case as a method: library calls and regions in order, each value
// dropped after its last use, as eager PyTorch drops it.
#pragma once

#include <string>
#include <vector>

#include "domain/problem.hpp"
#include "ir/plan.hpp"
#include "target/triton/regions.hpp"

namespace ke::triton {

struct ComputeOptions {
  std::string method = "compute";
  bool channels_last = false;
};

// A constant tensor of the graph, as a buffer of the module.
struct ConstantBuffer {
  std::string name;
  const ir::Value* value = nullptr;
};

struct ComputeText {
  std::string method;     // its lines, not indented
  std::string functions;  // at file scope: kernels and what launches them
  std::vector<ConstantBuffer> constants;
};

// `prefix` begins the names of what is at file scope.
ComputeText print_compute(const Problem& problem, const ModelPlan& plan,
                          const ComputeOptions& options, const std::string& prefix);

}  // namespace ke::triton
