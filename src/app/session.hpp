// SPDX-License-Identifier: Apache-2.0
//
// One problem, ready to be judged and searched: the oracle is up, the graph lowered, the judge
// made. This is where concrete types meet; nothing else knows them.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "app/models.hpp"
#include "app/workspace.hpp"
#include "base/events.hpp"
#include "base/result.hpp"
#include "domain/machine.hpp"
#include "eval/evaluator.hpp"
#include "graph/graph.hpp"
#include "ir/program.hpp"
#include "oracle/oracle.hpp"
#include "os/clock.hpp"
#include "search/search.hpp"
#include "target/target.hpp"

namespace ke::app {

// How this binary is told to be the runner host (eval/runner/host.hpp).
inline constexpr const char* kRunnerHostCommand = "__runner-host";

struct SessionOptions {
  std::string problem_path;
  std::string problem_name;  // empty: from the path
  std::string target;
  Precision precision = Precision::strict;
  std::string dtype = "as-is";
  bool sandbox_required = false;
  int32_t threads = 0;  // 0: all this process may run on
};

class Session {
 public:
  // Emits "stage" events while it works: starting the oracle takes seconds. Errors are sentences
  // for the user: Errc::invalid for the problem or an option, Errc::unavailable for the machine.
  static Result<std::unique_ptr<Session>> open(const SessionOptions& options, Workspace& workspace,
                                               EventSink& events);

  const Problem& problem() const { return oracle_->problem(); }
  const std::optional<ir::Program>& program() const { return program_; }
  const std::string& lowering_error() const { return lowering_error_; }
  const MachineProfile& machine() const { return machine_; }
  const Target& target() const { return *target_; }
  const std::string& target_name() const { return options_.target; }
  const SessionOptions& options() const { return options_; }
  Evaluator& evaluator() { return *evaluator_; }
  ExperienceGraph& graph() { return graph_; }

  // `models`: null for a run without.
  SearchDependencies dependencies(EventSink& events, std::stop_token stop,
                                  ModelSet* models = nullptr);

 private:
  Session(SessionOptions options, Workspace& workspace)
      : options_(std::move(options)), graph_(workspace.store()) {}

  Result<EvaluatorOptions> evaluator_options(const Workspace& workspace);

  SessionOptions options_;
  ExperienceGraph graph_;
  os::SystemClock clock_;
  std::unique_ptr<Target> target_;
  MachineProfile machine_;
  std::unique_ptr<Oracle> oracle_;
  std::optional<ir::Program> program_;
  std::string lowering_error_;
  std::unique_ptr<Evaluator> evaluator_;  // before oracle_ goes: it refers to it
};

// "level1/19_ReLU" for …/level1/19_ReLU.py, else the file's stem.
std::string problem_name_of(const std::string& path);

// The interpreter with PyTorch: $KE_PYTHON, an activated or nearby .venv, or python3.
Result<std::string> find_python();

// The target of that name, or Errc::invalid with the names there are.
Result<const TargetInfo*> target_named(const std::string& name);

int32_t available_threads();

}  // namespace ke::app
