// SPDX-License-Identifier: Apache-2.0
//
// An oracle without Python, for tests: the problem is given, inputs are drawn here, and a C++
// function computes the truth. It honours the same memory layout as the real one.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "oracle/oracle.hpp"

namespace ke {

// One tensor, dense and row-major, as doubles: exact for every type but large int64.
using FakeTensor = std::vector<double>;

struct FakeOracleScript {
  Problem problem;  // contiguous inputs and outputs
  // Expected outputs from the inputs as stored (already rounded to their types).
  std::function<std::vector<FakeTensor>(const std::vector<FakeTensor>& inputs)> truth;
  // What PyTorch would compute in the problem's precision. Its error is reported, and raises the
  // absolute tolerance as in truth.py; without it, the two figures below are reported.
  std::function<std::vector<FakeTensor>(const std::vector<FakeTensor>& inputs)> own;
  double pytorch_rms = 0, pytorch_max = 0;  // absolute
  double atol = 1e-4, rtol = 1e-4;
  bool any_non_finite_kind = false;
  Nanoseconds eager_call{1'000'000};  // what ring() reports, per call
  Nanoseconds compile_call{500'000};
  Nanoseconds empty_ring{20'000};
  int slow_empty_rings = 0;  // the first ones take an hour
  BaselineState compile_state = BaselineState::absent;
};

// ring() returns scripted times without waiting. Safe to use like any Oracle.
std::unique_ptr<Oracle> make_fake_oracle(FakeOracleScript script);

}  // namespace ke
