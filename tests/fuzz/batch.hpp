// SPDX-License-Identifier: Apache-2.0
//
// A batch written by random_modules.py: graphs with inputs and what PyTorch says they compute.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "ir/graph.hpp"
#include "ir/interpret.hpp"

namespace ke::fuzz {

struct Expected {
  ir::DType dtype = ir::DType::float32;
  std::vector<double> reals;      // floating outputs: float64 values …
  std::vector<double> tolerance;  // … and how far an element may be off; inf: not graded
  ir::TensorBytes exact;          // other outputs: the bytes
};

struct Case {
  int64_t seed = 0;
  std::string source;  // of the PyTorch function
  ir::Graph graph;
  std::vector<ir::TensorBytes> inputs;
  std::vector<Expected> outputs;
};

// Reads STEM.json and STEM.bin.
Result<std::vector<Case>> read_batch(const std::string& stem);

// The first element that is wrong, as a sentence; nothing when all are right.
std::optional<std::string> compare(const std::vector<Expected>& expected,
                                   const std::vector<ir::TensorBytes>& outputs);

}  // namespace ke::fuzz
