// SPDX-License-Identifier: Apache-2.0
//
// An evaluation: what the judge found about one candidate. A rejected candidate is a successful
// evaluation with another verdict; numbers exist only when they were measured.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "domain/verdict.hpp"

namespace ke {

enum class BaselineKind : uint8_t { eager, compile };

// Raw nanoseconds per call, one entry a batch; candidate[i] and baselines[i] were taken next to
// each other (A B A B). The empty kernel's time is already subtracted. compile_ns is shorter than
// the others, and its batches have fewer calls, where torch.compile is clearly slower than eager:
// its median is then eager's times the median ratio of the pairs that have both.
struct Measurement {
  std::vector<int64_t> candidate_ns;
  std::vector<int64_t> eager_ns;
  std::vector<int64_t> compile_ns;  // empty while torch.compile is not ready or failed
  int64_t empty_call_ns = 0;        // what was subtracted
  int32_t calls_per_batch = 1;
  bool cold = true;  // rotated through more memory than the last-level cache

  // Cold medians, per call.
  int64_t time_ns = 0;
  std::optional<int64_t> eager_median_ns;
  std::optional<int64_t> compile_median_ns;
  // baseline / candidate of the better baseline: median of paired ratios with its 95 % interval.
  double speedup = 0;
  double speedup_low = 0;
  double speedup_high = 0;

  // Per call when the same set is used again and again; absent where it was not measured.
  std::optional<int64_t> warm_ns;           // the candidate
  std::optional<int64_t> warm_baseline_ns;  // the better baseline
  // Per call when each call is captured as a graph once and replayed, on both sides; absent where
  // the target or the effort has no such figure, or the baseline cannot be captured.
  std::optional<int64_t> graph_ns;           // the candidate
  std::optional<int64_t> graph_baseline_ns;  // eager
  // The baseline's last third of samples over its first: what the machine's clock or other work did
  // meanwhile. 1: nothing.
  double drift = 1;
};

// One output against the truth, pooled over all sets, relative to rms(truth).
struct OutputError {
  double rms = 0, max = 0;                  // the candidate's
  double pytorch_rms = 0, pytorch_max = 0;  // PyTorch's own
  double rms_budget = 0, max_budget = 0;
  int64_t ungraded = 0;  // elements where PyTorch itself misses tolerance
};

// One of several shape cases of an accepted candidate.
struct CaseResult {
  std::string shapes;              // "x [1, 768]": of the arguments
  std::vector<std::string> flags;  // of this case
  // Whether it counts in the mean. An empty output is proved and timed, but nothing is computed.
  bool counted = true;
  std::optional<Measurement> measurement;
};

struct Evaluation {
  Verdict verdict = Verdict::crashed;
  std::string detail;                      // one sentence for people: why it was rejected
  std::string diagnostics;                 // compiler output, capped
  std::vector<OutputError> errors;         // one an output, when outputs were compared
  // Accepted only. With several shape cases: means over those that count (mean_of), no samples.
  std::optional<Measurement> measurement;
  std::vector<CaseResult> cases;           // accepted only, in order; empty when there is one
  std::vector<std::string> flags;          // tie, too_small, drift, nondeterministic, trivial…
  std::string kernel_class = "own";        // own, mixed, library
  std::string protections;     // what the sandbox had: "user,mnt,pid,net,ipc,uts,seccomp"
  bool confirmed = false;      // fresh seeds, processes and samples (D4)
  bool stopped_early = false;  // clearly slower than the best: few samples
  int64_t build_ms = 0;
  int64_t judge_ms = 0;
};

// A flag of the kernel itself: its calls differ in their bits, which the policy allowed.
inline constexpr const char* kNondeterministicFlag = "nondeterministic";

// Below this a call's time is mostly that of launching (`too_small`), and a ratio of such times,
// however large, says nothing about the kernel: in a mean over shape cases it counts as this.
inline constexpr int64_t kLaunchNs = 2'000;

// The figures of several cases as one: geometric means of times and speed-ups over those that are
// counted (over all when none is). Nothing unless every case was measured.
std::optional<Measurement> mean_of(const std::vector<CaseResult>& cases);

Json encode(const Measurement& measurement);
Json encode(const Evaluation& evaluation);
Result<Evaluation> decode_evaluation(const Json& json);

// Geometric mean over shape cases of min(eager, compile) / time; absent unless accepted (DESIGN
// D4).
std::optional<double> fitness(const Evaluation& evaluation);

// For ranking the nodes of one run: against eager, whichever baseline was timed beside the
// candidate, so that figures from before and after torch.compile became ready can be compared.
std::optional<double> ranking_fitness(const Evaluation& evaluation);

}  // namespace ke

template <>
inline constexpr std::array<std::string_view, 2> ke::kEnumNames<ke::BaselineKind>{"eager",
                                                                                  "compile"};
