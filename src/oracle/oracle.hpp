// SPDX-License-Identifier: Apache-2.0
//
// The oracle: one trusted PyTorch process per problem, seen from C++. It owns the reference, the
// inputs, the float64 truth, PyTorch's own error and the baselines (DESIGN D1, D2).
//
// Threads: one call at a time, except pause/resume, which any thread may call between calls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "domain/evaluation.hpp"
#include "domain/limits.hpp"
#include "domain/problem.hpp"
#include "os/shared_memory.hpp"

namespace ke {

// nominal: get_inputs() as written. The others are probes over the float arguments (D3); special
// plants NaN, infinities, -0, denormals and large magnitudes, as far as the domain admits them.
enum class SetKind : uint8_t { nominal, scaled, planted, tied, mantissa_tail, special };

struct SetRequest {
  SetKind kind = SetKind::nominal;
  uint64_t seed = 0;
  bool with_truth = true;  // false: inputs alone, to rotate through while timing
};

// One tensor in a memory file whose data ends less than 64 bytes before the end of the file, so
// that a mapping followed by a guard page catches overruns. offset is a multiple of 64; the bytes
// around the data are canary (random, different in each file).
struct TensorMemory {
  os::SharedMemory memory;
  int64_t offset = 0;
  int64_t bytes = 0;
};

// Expected values of one output. Never leaves the judge.
struct OutputTruth {
  os::SharedMemory values;  // float64 for floating outputs (dense, contiguous); else the dtype
  os::SharedMemory ignore;  // one byte an element, 1 = not graded; empty when all are graded
  double rms_truth = 0;     // over finite elements
  double pytorch_rms = 0;   // error of PyTorch in the problem's precision, absolute
  double pytorch_max = 0;
  double atol = 0, rtol = 0;         // elementwise; see truth.py for what is attainable
  bool any_non_finite_kind = false;  // behind a product: any non-finite value matches another
};

struct InputSet {
  int64_t id = 0;  // the oracle's handle, for ring() and release()
  SetRequest request;
  std::vector<TensorMemory> inputs;  // in the contract's order; judge maps, then seals (D2)
  std::vector<OutputTruth> truths;   // one an output; empty when not requested
};

enum class BaselineState : uint8_t { absent, building, ready, failed };

class DeviceBench;
class DeviceSlots;

class Oracle {
 public:
  virtual ~Oracle() = default;

  virtual const Problem& problem() const = 0;
  virtual Result<InputSet> make_set(const SetRequest& request) = 0;
  virtual void release(int64_t set_id) = 0;

  // Starts building torch.compile in the background when asked first; eager is always ready.
  virtual Result<BaselineState> baseline(BaselineKind kind) = 0;

  // Runs the baseline once for each listed set, in order, and returns the wall time of the whole
  // batch by this process's clock. An empty kind list measures the doorbell: calls = 0 is allowed.
  virtual Result<Nanoseconds> ring(BaselineKind kind, const std::vector<int64_t>& set_ids) = 0;

  // Stops and continues every thread of the oracle (SIGSTOP/SIGCONT), so that it cannot disturb a
  // measurement. ring() and make_set() resume by themselves.
  void pause() { set_running(false); }
  void resume() { set_running(true); }
  virtual void set_running(bool running) = 0;

  // What an oracle whose tensors lie on a device does instead of make_set() and release(), and
  // instead of ring(); null for one on the processor, the oracle's otherwise.
  DeviceSlots* device_slots() const { return slots_; }
  DeviceBench* device_bench() const { return bench_; }

  // While frozen it stands still whatever pause() and resume() say; calls wait. For others who
  // measure on this machine. Any thread may call it at any time.
  virtual void freeze(bool frozen) { (void)frozen; }

 protected:
  void offer(DeviceSlots* slots, DeviceBench* bench) {
    slots_ = slots;
    bench_ = bench;
  }

 private:
  DeviceSlots* slots_ = nullptr;
  DeviceBench* bench_ = nullptr;
};

namespace oracle {
class Zygote;
}  // namespace oracle

struct OracleOptions {
  std::string python;  // interpreter with torch
  std::string problem_path;
  std::string problem_name;
  Precision precision = Precision::strict;
  std::string dtype = "as-is";  // or fp16, bf16
  int32_t shape_case = 0;       // which arguments: 0 is get_inputs(), then get_input_cases()
  uint64_t seed = 0;            // secret, per run
  int32_t threads = 1;
  std::string cache_dir;  // torch.compile's cache and the unpacked Python files
  Limits limits;          // python_start_max and oracle_*
  // Where Model, inputs and truth live, in PyTorch's words ("cuda:0"); empty: on the processor.
  std::string device = {};
  std::string driver = "libcuda.so.1";  // of that device, for dlopen
  // Forks the process, where it can; null: the interpreter is started and imports torch anew.
  oracle::Zygote* zygote = nullptr;
};

// Fails with Errc::invalid and one sentence when the problem file is at fault, with
// Errc::unavailable when Python or torch is missing.
Result<std::unique_ptr<Oracle>> start_oracle(const OracleOptions& options);

// One oracle a shape case, in order; options.shape_case is 0. Fails as start_oracle, and with
// Errc::invalid when the cases differ in more than shapes or are more than the limit.
Result<std::vector<std::unique_ptr<Oracle>>> start_oracles(const OracleOptions& options);

}  // namespace ke

template <>
inline constexpr std::array<std::string_view, 6> ke::kEnumNames<ke::SetKind>{
    "nominal", "scaled", "planted", "tied", "mantissa_tail", "special"};
