// SPDX-License-Identifier: Apache-2.0
//
// What an oracle does whose tensors lie on a device, beyond the judge's reach: it hands out memory
// there, fills it, and compares what kernels left in it. The judge gets figures and decides (D2).
//
// A slot is memory for the inputs and outputs of one call. Its content is what was filled in last.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "domain/comparison.hpp"
#include "domain/evaluation.hpp"
#include "oracle/oracle.hpp"
#include "os/file_descriptor.hpp"

namespace ke {

// Device memory as another process can map it, and where in it the tensor's bytes lie.
struct DeviceTensor {
  os::FileDescriptor memory;
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t memory_bytes = 0;  // of the whole allocation
};

struct DeviceSlot {
  int64_t id = 0;
  std::vector<DeviceTensor> inputs, outputs;  // in the contract's order
};

struct SlotComparison {
  std::vector<Comparison> outputs;
  std::vector<bool> canaries_intact;  // one an output
  std::vector<int64_t> poisoned;      // elements that hold nothing but the poison byte
};

// One batch of baseline calls.
struct Rung {
  Nanoseconds wall{0};     // by this process's clock, from the bell to the answer
  int64_t device_ns = 0;   // by the device's events around the batch
};

// The device that an oracle computes on, as it finds it.
struct DeviceFacts {
  std::string name;  // "NVIDIA H200"
  std::string driver, torch;
  int32_t multiprocessors = 0;
  int64_t memory_bytes = 0, free_bytes = 0, l2_bytes = 0;
  double bandwidth = 0;  // bytes read and written per second, of a copy; 0: not measured
  double flops_f32 = 0;  // per second, of a matrix product, TF32 allowed; 0: not measured
};

// What the library makes of the problem, as a Python module that a search can begin with.
struct LibraryForm {
  std::string name;  // "torch.compile, replayed"
  std::string source;
};

enum class BaselineMode : uint8_t { plain, graph };  // graph: captured once, replayed

class DeviceSlots {
 public:
  virtual ~DeviceSlots() = default;

  virtual Result<DeviceSlot> make_slot() = 0;
  virtual void drop_slot(int64_t slot) = 0;
  // Writes an input set into the slot's inputs: the same bytes for the same request. What the truth
  // is like, one entry an output, without its values; nothing unless it was asked for.
  virtual Result<std::vector<OutputTruth>> fill(int64_t slot, const SetRequest& request) = 0;
  // Fills the outputs with a byte and makes new canaries around them.
  virtual Result<void> poison(int64_t slot, uint8_t value) = 0;
  // The outputs against the truth of the slot's content, which must have one.
  virtual Result<SlotComparison> compare(int64_t slot) = 0;
  // Whether the outputs of two slots are bit for bit the same, one entry an output.
  virtual Result<std::vector<bool>> same(int64_t a, int64_t b) = 0;
};

// What the same oracle runs and knows of its device.
class DeviceBench {
 public:
  virtual ~DeviceBench() = default;

  // As Oracle::ring. Errc::unavailable when a graph cannot be captured.
  virtual Result<Rung> ring(BaselineKind kind, BaselineMode mode,
                            const std::vector<int64_t>& slots) = 0;
  // Stops what builds torch.compile in the background, and lets it go on.
  virtual Result<void> hold_background(bool held) = 0;
  virtual Result<DeviceFacts> facts(bool measured) = 0;
  // The most promising first; waits for torch.compile, whose kernels are among them.
  virtual Result<std::vector<LibraryForm>> library_forms() = 0;
};

}  // namespace ke

template <>
inline constexpr std::array<std::string_view, 2> ke::kEnumNames<ke::BaselineMode>{"plain", "graph"};
