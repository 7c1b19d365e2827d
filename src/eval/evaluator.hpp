// SPDX-License-Identifier: Apache-2.0
//
// The judge: builds a candidate, runs it in a locked room, compares with the truth, times it
// against the baselines. See README.md of this folder for the order of the checks.
//
// Threads: build() may be called from many threads; judge() from one at a time, and beside it
// count_events(), which waits for it. While judge() times, running builds are frozen (TimingLock).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "domain/evaluation.hpp"
#include "domain/kernel_profile.hpp"
#include "domain/limits.hpp"
#include "domain/machine.hpp"
#include "domain/problem.hpp"
#include "eval/library_policy.hpp"
#include "oracle/oracle.hpp"
#include "os/clock.hpp"
#include "target/target.hpp"

namespace ke {

// screen: what a search step needs. full: `verify`, `bench`. confirm: fresh seeds, new processes
// and more samples; only confirmed figures are reported or exported.
enum class Effort : uint8_t { screen, full, confirm };

struct JudgeOptions {
  Effort effort = Effort::screen;
  bool measure = true;             // false: correctness alone (verify)
  std::optional<int64_t> best_ns;  // stop timing early when clearly slower than this
  // Say what was expected and got at one wrong position: for a person, never for a proposer (D4).
  bool tell_values = false;
};

// Whatever changes a verdict raises it: nodes judged by another version are judged again.
inline constexpr int kJudgeVersion = 3;
inline constexpr int kDeviceJudgeVersion = 4;  // of kernels that run on a device

// A built candidate, or why it did not build.
struct Artifact {
  std::string built_path;             // library or device package; empty when the build failed
  std::optional<Evaluation> failure;  // compile_error or policy_violation
  int64_t build_ms = 0;
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual Result<Artifact> build(const std::string& source) = 0;
  virtual Result<Evaluation> judge(const Artifact& artifact, const JudgeOptions& options) = 0;

  // What the target's tools say about a source, without running it. Errc::unavailable when there
  // are none, refused when the source asks for what it may not. Threads as build().
  virtual Result<KernelProfile> profile(const std::string& /*source*/) {
    return Error{Errc::unavailable, "this judge has no tools that look at kernels"};
  }

  // Runs a source that judge() has accepted some more, and says what the machine counted meanwhile.
  // Never for a verdict or a time. Errc::unavailable when this judge cannot.
  virtual Result<EventCounts> count_events(const std::string& /*source*/) {
    return Error{Errc::unavailable, "this judge counts no events"};
  }

  // Admission (D3): flags found by screening the problem with decoys. Done once, by the first call.
  virtual Result<std::vector<std::string>> admission_flags() = 0;

  // Least time the hardware permits for this problem: max(bytes / bandwidth, minimal flops / rate).
  virtual int64_t floor_ns() const = 0;
};

// Everything here must outlive the evaluator.
struct EvaluatorOptions {
  Oracle* oracle = nullptr;
  const Target* target = nullptr;
  os::Clock* clock = nullptr;
  MachineProfile machine;
  Limits limits;
  std::filesystem::path artifacts;          // folder for built libraries; created when absent
  std::vector<std::string> runner_command;  // a program that calls runner_host_main(3), see runner/
  LibraryPolicy libraries;
  Precision precision = Precision::strict;
  Determinism determinism = Determinism::bitwise;
  int32_t threads = 1;                // of a kernel, and of the baselines
  uint64_t seed = 0;                  // secret, per run
  std::filesystem::path device_lock;  // shared by all searches on the machine; empty: none
};

// Errc::unavailable when the toolchain is missing. Cheap: sets, baselines and the runner host are
// made by the first judge().
Result<std::unique_ptr<Evaluator>> make_evaluator(const EvaluatorOptions& options);

}  // namespace ke

template <>
inline constexpr std::array<std::string_view, 3> ke::kEnumNames<ke::Effort>{"screen", "full",
                                                                            "confirm"};
