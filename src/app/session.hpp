// SPDX-License-Identifier: Apache-2.0
//
// One problem, ready to be judged and searched: the oracle is up, the graph lowered, the judge
// made. This is where concrete types meet; nothing else knows them.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/models.hpp"
#include "app/workspace.hpp"
#include "base/events.hpp"
#include "base/result.hpp"
#include "domain/machine.hpp"
#include "eval/device/memory_share.hpp"
#include "eval/evaluator.hpp"
#include "graph/graph.hpp"
#include "ir/program.hpp"
#include "oracle/oracle.hpp"
#include "os/clock.hpp"
#include "search/search.hpp"
#include "target/target.hpp"

namespace ke::app {

// Where a device's problems are computed, as PyTorch names it.
inline constexpr std::string_view kDeviceName = "cuda:0";

// How this binary is told to be the runner host (eval/runner/host.hpp).
inline constexpr const char* kRunnerHostCommand = "__runner-host";
// How it is told to be a launcher (eval/launcher/child.hpp); the driver's library follows.
inline constexpr const char* kLauncherCommand = "__launcher";

struct SessionOptions {
  std::string problem_path;
  std::string problem_name;  // empty: from the path
  std::string target;
  Precision precision = Precision::strict;
  std::string dtype = "as-is";
  bool sandbox_required = false;
  std::string libraries = "none";  // see parse_library_policy()
  Determinism determinism = Determinism::bitwise;
  int32_t threads = 0;  // 0: all this process may run on
};

class Session {
 public:
  // Emits "stage" events while it works: starting the oracle takes seconds. Errors are sentences
  // for the user: Errc::invalid for the problem or an option, Errc::unavailable for the machine.
  static Result<std::unique_ptr<Session>> open(const SessionOptions& options, Workspace& workspace,
                                               EventSink& events);

  const Problem& problem() const { return oracles_.front()->problem(); }  // of case 0
  std::vector<const Problem*> cases() const;  // at least one; live as long as the session
  const std::vector<ir::Program>& programs() const { return programs_; }  // empty, or one a case
  const std::string& lowering_error() const { return lowering_error_; }
  const MachineProfile& machine() const { return machine_; }
  const Target& target() const { return *target_; }
  const std::string& target_name() const { return options_.target; }
  const SessionOptions& options() const { return options_; }
  const std::string& libraries() const;  // the sidecar's word, else the option's
  Evaluator& evaluator() { return *evaluator_; }
  ExperienceGraph& graph() { return graph_; }

  // What the library makes of the problem, for a search to begin with; none for targets whose
  // kernels are no Python modules. Waits for torch.compile. A failure is told and gives none.
  std::vector<SeedKernel> seed_forms(EventSink& events);

  // `models`: null for a run without.
  SearchDependencies dependencies(EventSink& events, std::stop_token stop,
                                  ModelSet* models = nullptr);

 private:
  Session(SessionOptions options, Workspace& workspace)
      : options_(std::move(options)), graph_(workspace.store()) {}

  Result<void> enter_device(const Workspace& workspace);
  void lower_cases();
  Result<EvaluatorOptions> evaluator_options(const Workspace& workspace, Oracle& oracle);
  Result<std::unique_ptr<Evaluator>> make_judge(Workspace& workspace);
  Determinism determinism() const;  // the sidecar's word, else the option's

  SessionOptions options_;
  ExperienceGraph graph_;
  os::SystemClock clock_;
  std::unique_ptr<Target> target_;
  MachineProfile machine_;
  int64_t device_bytes_ = 0;  // memory of the device, where there is one
  std::optional<DeviceMemoryShare> memory_;  // of it; before oracles_, which use it
  std::vector<std::unique_ptr<Oracle>> oracles_;  // one a shape case
  std::vector<ir::Program> programs_;
  std::string lowering_error_;
  std::unique_ptr<Evaluator> evaluator_;  // before oracles_ go: it refers to them
};

// "level1/19_ReLU" for …/level1/19_ReLU.py, else the file's stem.
std::string problem_name_of(const std::string& path);

// The interpreter with PyTorch: $KE_PYTHON, an activated or nearby .venv, or python3.
Result<std::string> find_python();

// The target of that name, or Errc::invalid with the names there are.
Result<const TargetInfo*> target_named(const std::string& name);
// Errc::unavailable, in a sentence, when the target's kernels need a device that is not here.
Result<void> require_device(const TargetInfo& target);

int32_t available_threads();

}  // namespace ke::app
