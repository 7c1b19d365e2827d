// SPDX-License-Identifier: Apache-2.0
#include "app/doctor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "app/session.hpp"
#include "base/json.hpp"
#include "eval/profile.hpp"
#include "oracle/zygote.hpp"
#include "os/file_system.hpp"
#include "os/perf_counters.hpp"
#include "os/process.hpp"
#include "os/sandbox.hpp"

namespace ke::app {
namespace {

using State = DoctorItem::State;

DoctorItem python_item() {
  const auto python = find_python();
  if (!python) return {State::missing, "Python", python.error().message};
  os::RunOptions options;
  options.process.argv = {*python, "-c", "import torch; print(torch.__version__)"};
  options.process.environment = os::minimal_environment();
  options.time_max = Milliseconds(120'000);
  const auto ran = os::run(options);
  if (!ran || !ran->status.success()) {
    return {State::missing, "PyTorch",
            fmt::format("{} cannot import torch; install it (pip install torch) or name another "
                        "Python in KE_PYTHON. Nothing can be judged without it.",
                        *python)};
  }
  std::string version = ran->output;
  while (!version.empty() && version.back() == '\n') version.pop_back();
  return {State::works, "PyTorch", fmt::format("{} in {}", version, *python)};
}

// Whether oracles are forked instead of started anew.
DoctorItem zygote_item(const std::filesystem::path& cache) {
  const auto python = find_python();
  const Result<void> forks = python ? oracle::probe_zygote(*python, cache)
                                    : Result<void>(Error{Errc::unavailable, "no Python"});
  if (forks) return {State::works, "Zygote", "PyTorch is imported once, oracles are forked"};
  return {State::limited, "Zygote",
          fmt::format("every oracle imports PyTorch anew, which takes seconds: {}",
                      forks.error().to_string())};
}

DoctorItem sandbox_item() {
  const auto probed = os::probe_protections();
  if (!probed) return {State::missing, "Sandbox", probed.error().to_string()};
  if (probed->missing.empty()) return {State::works, "Sandbox", probed->protections()};
  std::string missing;
  for (const auto& piece : probed->missing) {
    missing += fmt::format("{}{} ({})", missing.empty() ? "" : ", ", enum_name(piece.protection),
                           piece.why);
  }
  return {State::limited, "Sandbox",
          fmt::format("{}; missing: {}. Run as root or allow user namespaces to add them.",
                      probed->protections(), missing)};
}

DoctorItem target_item(const TargetInfo& info) {
  const auto target = info.make();
  const auto toolchain = target->toolchain();
  const std::string name = fmt::format("Target {}", info.name);
  if (!toolchain) return {State::missing, name, toolchain.error().to_string()};
  const std::string built = fmt::format("{}, built by {}", info.dialect, *toolchain);
  if (info.device == nullptr) return {State::works, name, built};
  const auto device = info.device();
  if (!device) return {State::limited, name, fmt::format("{}; {}", built, device.error().message)};
  return {State::works, name, fmt::format("{}; on {}", built, *device)};
}

DoctorItem tool_item(const char* program, const char* adds) {
  const auto found = os::find_program(program);
  if (found) return {State::works, program, found->string()};
  return {State::limited, program, fmt::format("not found; it would add {}", adds)};
}

// What `verify --profile` and models get to know of a kernel beside its time.
DoctorItem counters_item() {
  const os::PerfCounters counters = os::PerfCounters::open(getpid());
  std::vector<std::string_view> missing;
  std::string why;
  for (const auto& [counter, reason] : counters.missing()) {
    missing.push_back(enum_name(counter));
    if (why.empty()) why = reason;
  }
  if (missing.empty()) {
    return {State::works, "Counters", "cycles, instructions, misses, faults and switches"};
  }
  return {State::limited, "Counters",
          fmt::format("without {}: {}", fmt::join(missing, ", "), why)};
}

}  // namespace

Result<DoctorReport> examine_machine(const std::filesystem::path& cache, bool remeasure) {
  DoctorReport report;
  TRY(os::make_directories(cache));
  const int32_t threads = available_threads();
  report.machine = remeasure ? TRY(measure_profile(cache, threads))
                             : TRY(load_or_measure_profile(cache, threads));
  report.items.push_back(python_item());
  bool any_target = false;
  for (const TargetInfo* info : all_targets()) {
    report.items.push_back(target_item(*info));
    any_target |= report.items.back().state == State::works;
  }
  report.items.push_back(sandbox_item());
  report.items.push_back(zygote_item(cache));
  report.items.push_back(counters_item());
  report.items.push_back(tool_item("c++", "torch.compile as a second baseline"));
  report.items.push_back(tool_item("objdump", "disassembly of kernels by hand"));
  report.usable = any_target && report.items.front().state == State::works;
  return report;
}

std::string doctor_text(const DoctorReport& report) {
  const MachineProfile& machine = report.machine;
  std::string text = fmt::format(
      "{}\n{} threads, vectors of {} bits, caches {} KiB / {} KiB / {} MiB\n"
      "measured: {:.0f} GFLOP/s fp32 on one thread, {:.0f} on all; memory {:.1f} GB/s on one "
      "thread, {:.1f} on all\n\n",
      machine.cpu, machine.threads, machine.vector_bytes * 8, machine.l1_bytes >> 10,
      machine.l2_bytes >> 10, machine.llc_bytes >> 20, machine.flops_f32_single / 1e9,
      machine.flops_f32_all / 1e9, machine.bandwidth_single / 1e9, machine.bandwidth_all / 1e9);
  for (const DoctorItem& item : report.items) {
    text += fmt::format("{:<8} {:<14} {}\n", enum_name(item.state), item.name, item.detail);
  }
  text += report.usable ? "\nkernelevolve optimize can work here.\n"
                        : "\nkernelevolve optimize cannot work here; see what is missing above.\n";
  return text;
}

Json encode(const DoctorReport& report) {
  Json items = Json::array();
  for (const DoctorItem& item : report.items) {
    items.push_back(
        {{"state", enum_name(item.state)}, {"name", item.name}, {"detail", item.detail}});
  }
  return {{"machine", encode(report.machine)}, {"items", items}, {"usable", report.usable}};
}

Result<JudgeExamination> examine_judge(
    const std::function<void(const SelfTestOutcome& outcome)>& tell) {
  std::unique_ptr<Target> target;
  for (const TargetInfo* info : all_targets()) {
    if (target || info->device != nullptr) continue;
    auto made = info->make();
    if (made->toolchain()) target = std::move(made);
  }
  if (!target) {
    return Error{Errc::unavailable, "no target has its compiler here; see `kernelevolve doctor`."};
  }
  SelfTest test =
      TRY(SelfTest::create(*target, {TRY(os::own_executable()).string(), kRunnerHostCommand}));
  JudgeExamination examination;
  for (const SelfTestCase& tested : self_test_cases()) {
    examination.outcomes.push_back(TRY(test.judge(tested)));
    const SelfTestOutcome& outcome = examination.outcomes.back();
    examination.wrong += outcome.right ? 0 : 1;
    if (!outcome.evaluation.protections.empty()) {
      examination.protections = outcome.evaluation.protections;
    }
    tell(outcome);
  }
  return examination;
}

std::string outcome_text(const SelfTestOutcome& outcome) {
  std::string required;
  for (const Verdict verdict : outcome.allowed) {
    required += fmt::format("{}{}", required.empty() ? "" : " or ", enum_name(verdict));
  }
  const std::string_view found = !outcome.enforceable ? "n/a" : outcome.right ? "right" : "WRONG";
  if (!outcome.enforceable) {
    return fmt::format("{:<6} {:<28} {:<17} the rooms here lack the protection that it needs\n",
                       found, outcome.name, enum_name(outcome.evaluation.verdict));
  }
  return fmt::format(
      "{:<6} {:<28} {:<17} {}\n", found, outcome.name, enum_name(outcome.evaluation.verdict),
      outcome.right ? outcome.evaluation.detail
                    : fmt::format("must be {}: {}", required, outcome.evaluation.detail));
}

Json encode(const JudgeExamination& examination) {
  Json kernels = Json::array();
  for (const SelfTestOutcome& outcome : examination.outcomes) {
    Json allowed = Json::array();
    for (const Verdict verdict : outcome.allowed) allowed.push_back(enum_name(verdict));
    kernels.push_back({{"name", outcome.name},
                       {"allowed", allowed},
                       {"verdict", enum_name(outcome.evaluation.verdict)},
                       {"detail", outcome.evaluation.detail},
                       {"enforceable", outcome.enforceable},
                       {"right", outcome.right}});
  }
  return {
      {"kernels", kernels}, {"wrong", examination.wrong}, {"protections", examination.protections}};
}

}  // namespace ke::app
