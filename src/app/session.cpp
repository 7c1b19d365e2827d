// SPDX-License-Identifier: Apache-2.0
#include "app/session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <regex>

#include "base/json.hpp"
#include "eval/device/evaluator.hpp"
#include "eval/device/profile.hpp"
#include "eval/evaluator.hpp"
#include "eval/profile.hpp"
#include "eval/shape_cases.hpp"
#include "ir/lower/lower.hpp"
#include "os/file_system.hpp"
#include "target/model_printer.hpp"
#include "os/random.hpp"
#include "os/sandbox.hpp"

namespace ke::app {
namespace {

namespace fs = std::filesystem;

void stage(EventSink& events, const std::string& what) { events.emit("stage", {{"what", what}}); }

OracleOptions oracle_options(const SessionOptions& options, const MachineProfile& machine,
                             Workspace& workspace, const std::string& python) {
  OracleOptions oracle;
  oracle.python = python;
  oracle.problem_path = options.problem_path;
  oracle.problem_name = options.problem_name;
  oracle.precision = options.precision;
  oracle.dtype = options.dtype;
  oracle.seed = os::random_seed();
  oracle.threads = machine.threads;
  oracle.cache_dir = workspace.cache().string();
  oracle.zygote = &workspace.zygote();
  return oracle;
}

// What a target needs of this machine beyond its compiler.
Result<void> require_protections() {
  const os::RoomReport report = TRY(os::probe_protections());
  if (report.missing.empty()) return {};
  return Error{
      Errc::unavailable,
      fmt::format("--sandbox required, but this machine lacks {} ({}); see "
                  "`kernelevolve doctor`.",
                  enum_name(report.missing.front().protection), report.missing.front().why)};
}

Result<std::unique_ptr<Evaluator>> device_judge(const EvaluatorOptions& judge,
                                                int64_t memory_bytes, Workspace& workspace) {
  DeviceEvaluatorOptions options;
  options.judge = judge;
  options.memory_bytes = memory_bytes;
  options.python = TRY(find_python());
  options.cache_dir = workspace.cache().string();
  options.zygote = &workspace.zygote();
  options.launcher_command = {TRY(os::own_executable()).string(), kLauncherCommand,
                              options.driver};
  return make_device_evaluator(options);
}

// One lock for every search of this user on the machine, wherever its workspace is.
fs::path device_lock_path() {
  return fs::temp_directory_path() / fmt::format("kernelevolve-device-{}.lock", getuid());
}

}  // namespace

std::string problem_name_of(const std::string& path) {
  const fs::path file = fs::absolute(path);
  const std::string parent = file.parent_path().filename().string();
  static const std::regex kLevel("level[0-9]+");
  const std::string stem = file.stem().string();
  return std::regex_match(parent, kLevel) ? parent + "/" + stem : stem;
}

Result<std::string> find_python() {
  if (const char* named = std::getenv("KE_PYTHON"); named && *named) {
    if (os::exists(named)) return std::string(named);
    return Error{Errc::unavailable,
                 fmt::format("KE_PYTHON names {}, which does not exist; point it at a Python with "
                             "PyTorch.",
                             named)};
  }
  std::vector<fs::path> candidates;
  if (const char* active = std::getenv("VIRTUAL_ENV"); active && *active) {
    candidates.push_back(fs::path(active) / "bin/python");
  }
  candidates.push_back(fs::current_path() / ".venv/bin/python");
  if (const auto binary = os::own_executable()) {
    candidates.push_back(binary->parent_path().parent_path() / ".venv/bin/python");
  }
  for (const fs::path& candidate : candidates) {
    if (os::exists(candidate)) return candidate.string();
  }
  if (const auto found = os::find_program("python3")) return found->string();
  return Error{Errc::unavailable,
               "no Python was found; install one with PyTorch and name it in KE_PYTHON."};
}

Result<const TargetInfo*> target_named(const std::string& name) {
  if (const TargetInfo* info = find_target(name)) return info;
  std::vector<std::string_view> names;
  for (const TargetInfo* info : all_targets()) names.push_back(info->name);
  return Error{Errc::invalid,
               fmt::format("there is no target '{}'; there is {}.", name, fmt::join(names, ", "))};
}

Result<void> require_device(const TargetInfo& info) {
  if (info.device == nullptr) return {};
  TRY(info.device());
  return {};
}

int32_t available_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

Result<std::unique_ptr<Session>> Session::open(const SessionOptions& options, Workspace& workspace,
                                               EventSink& events) {
  const TargetInfo* info = TRY(target_named(options.target));
  if (!os::exists(options.problem_path)) {
    return Error{Errc::invalid,
                 fmt::format("the problem file {} does not exist.", options.problem_path)};
  }
  SessionOptions named = options;
  if (named.problem_name.empty()) named.problem_name = problem_name_of(options.problem_path);
  std::unique_ptr<Session> session(new Session(std::move(named), workspace));
  if (options.sandbox_required) TRY(require_protections());
  TRY(require_device(*info));
  session->target_ = info->make();
  TRY(session->target_->toolchain());  // no compiler: say so before PyTorch is started
  const std::string python = TRY(find_python());
  const int32_t threads = options.threads > 0 ? options.threads : available_threads();
  const bool on_device = info->device != nullptr;
  // Seconds of work on all processors, in which nobody else can measure anything there.
  std::optional<os::FileLock> turn;
  if (!on_device) turn = TRY(os::FileLock::lock(device_lock_path()));
  if (on_device) {
    session->machine_.threads = threads;  // PyTorch's; the rest is known once it has been asked
  } else {
    session->machine_ = TRY(load_or_measure_profile(workspace.cache(), threads));
  }

  stage(events,
        fmt::format("{}: reading the problem with PyTorch", session->options_.problem_name));
  OracleOptions asked = oracle_options(session->options_, session->machine_, workspace, python);
  if (on_device) asked.device = kDeviceName;
  session->oracles_ = TRY(start_oracles(asked));
  if (on_device) {
    TRY(session->enter_device(workspace));
  }
  turn.reset();
  if (const std::string why = workspace.zygote().why_not(); !why.empty()) {
    stage(events, fmt::format("every oracle imports PyTorch anew, which takes seconds: {}", why));
  }
  session->lower_cases();
  if (session->programs_.empty()) {
    stage(events, fmt::format("{}: the proposer synth has nothing to offer here: {}",
                              session->options_.problem_name, session->lowering_error_));
  }
  session->evaluator_ = TRY(session->make_judge(workspace));
  return session;
}

// What the device is, and as much of its memory as these problems take.
Result<void> Session::enter_device(const Workspace& workspace) {
  const fs::path lock = device_lock_path();
  const DeviceFacts facts =
      TRY(device_facts(*oracles_.front()->device_bench(), workspace.cache(), lock));
  machine_ = device_profile(facts);
  device_bytes_ = facts.memory_bytes;
  int64_t needed = 0;
  for (const auto& oracle : oracles_) {
    needed += device_bytes_needed(oracle->problem(), machine_, Limits());
  }
  memory_ = TRY(DeviceMemoryShare::take(lock, needed, facts.memory_bytes));
  return {};
}

std::vector<const Problem*> Session::cases() const {
  std::vector<const Problem*> problems;
  for (const auto& oracle : oracles_) problems.push_back(&oracle->problem());
  return problems;
}

// All or none: a kernel must serve every case.
void Session::lower_cases() {
  for (const auto& oracle : oracles_) {
    const Problem& problem = oracle->problem();
    Result<ir::Program> program =
        problem.graph ? ir::lower(*problem.graph)
                      : Result<ir::Program>(Error{Errc::unavailable, problem.graph_error});
    if (!program) {
      lowering_error_ = program.error().to_string();
      if (oracles_.size() > 1) {
        lowering_error_ = fmt::format("in case {} ({}): {}", problem.shape_case, shapes_of(problem),
                                      lowering_error_);
      }
      programs_.clear();
      return;
    }
    programs_.push_back(std::move(*program));
  }
}

Result<std::unique_ptr<Evaluator>> Session::make_judge(Workspace& workspace) {
  std::vector<ShapeCase> cases;
  for (const auto& oracle : oracles_) {
    const EvaluatorOptions options = TRY(evaluator_options(workspace, *oracle));
    auto judge = TRY(oracle->device_slots() != nullptr
                         ? device_judge(options, device_bytes_, workspace)
                         : make_evaluator(options));
    if (oracles_.size() == 1) return judge;
    cases.push_back({std::move(judge), oracle.get()});
  }
  return make_case_evaluator(std::move(cases));
}

Result<EvaluatorOptions> Session::evaluator_options(const Workspace& workspace, Oracle& oracle) {
  EvaluatorOptions judge;
  judge.oracle = &oracle;
  judge.target = target_.get();
  judge.clock = &clock_;
  judge.machine = machine_;
  judge.artifacts = workspace.artifacts();
  judge.runner_command = {TRY(os::own_executable()).string(), kRunnerHostCommand};
  judge.precision = options_.precision;
  judge.libraries = TRY(parse_library_policy(libraries()));
  judge.determinism = determinism();
  judge.threads = machine_.threads;
  judge.seed = os::random_seed();
  judge.device_lock = device_lock_path();
  return judge;
}

const std::string& Session::libraries() const {
  return problem().libraries.empty() ? options_.libraries : problem().libraries;
}

Determinism Session::determinism() const {
  return problem().determinism.value_or(options_.determinism);
}

std::vector<SeedKernel> Session::seed_forms(EventSink& events) {
  std::vector<SeedKernel> seeds;
  if (dynamic_cast<const ModelPrinter*>(target_.get()) == nullptr || oracles_.size() != 1 ||
      oracles_.front()->device_bench() == nullptr) {
    return seeds;
  }
  stage(events, fmt::format("{}: compiling with torch.compile, for kernels to begin with",
                            problem().name));
  const auto forms = oracles_.front()->device_bench()->library_forms();
  if (!forms) {
    stage(events, "no form of the library's to begin with: " + forms.error().to_string());
    return seeds;
  }
  for (const LibraryForm& form : *forms) seeds.push_back({form.name, form.source, "library"});
  return seeds;
}

SearchDependencies Session::dependencies(EventSink& events, std::stop_token stop,
                                         ModelSet* models) {
  const bool on_device = oracles_.front()->device_bench() != nullptr;
  const int judge_version = on_device ? kDeviceJudgeVersion : kJudgeVersion;
  return SearchDependencies{.clock = clock_,
                            .evaluator = *evaluator_,
                            .graph = graph_,
                            .target = *target_,
                            .target_name = options_.target,
                            .conditions = {.precision = options_.precision,
                                           .dtype = options_.dtype,
                                           .libraries = libraries(),
                                           .determinism = determinism(),
                                           .shape_cases = static_cast<int32_t>(oracles_.size()),
                                           .judge_version = judge_version},
                            .machine = machine_,
                            .problem = problem(),
                            .cases = oracles_.size() > 1 ? cases() : std::vector<const Problem*>(),
                            .programs = programs_,
                            .models = models ? &models->models() : nullptr,
                            .tasks = models ? &models->tasks() : nullptr,
                            .events = events,
                            .stop = std::move(stop)};
}

}  // namespace ke::app
