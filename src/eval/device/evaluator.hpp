// SPDX-License-Identifier: Apache-2.0
//
// The judge of kernels that run on a device: the oracle holds the tensors, a launcher in a locked
// room launches, the judge decides. See README.md of the folder above for the order of the checks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eval/evaluator.hpp"
#include "oracle/device_slots.hpp"
#include "oracle/zygote.hpp"

namespace ke {

// Everything that EvaluatorOptions says, and must say here too: its machine is the device (see
// device_profile), its oracle one with device_slots().
struct DeviceEvaluatorOptions {
  EvaluatorOptions judge;
  std::vector<std::string> launcher_command;  // a program that calls launcher::child_main()
  std::string driver = "libcuda.so.1";        // as for dlopen
  int ordinal = 0;
  int64_t memory_bytes = 0;  // of the device
  // For candidates that are Python modules: see oracle/model_process.hpp.
  std::string python = {};
  std::string cache_dir = {};
  oracle::Zygote* zygote = nullptr;
};

Result<std::unique_ptr<Evaluator>> make_device_evaluator(const DeviceEvaluatorOptions& options);

}  // namespace ke
