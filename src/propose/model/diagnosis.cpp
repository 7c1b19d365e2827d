// SPDX-License-Identifier: Apache-2.0
#include "propose/model/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "propose/model/text.hpp"
#include "propose/synth/genome.hpp"

namespace ke {
namespace model {
namespace {

constexpr double kBusy = 0.5;       // of the time: a unit that is busy for half of it limits
constexpr double kNearFloor = 0.8;  // of the time: little is left to gain
constexpr size_t kDetailBytesMax = 600;
constexpr size_t kCompilerLinesMax = 12;
constexpr size_t kCompilerLineBytesMax = 200;
constexpr size_t kTriedMax = 20;

double bytes_of(const ir::Program& program, const std::vector<ir::TensorId>& tensors) {
  double bytes = 0;
  for (const ir::TensorId id : tensors) {
    const ir::Tensor& tensor = program.tensor(id);
    bytes += static_cast<double>(tensor.elements() * ir::bytes_of(tensor.dtype));
  }
  return bytes;
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

void describe_speed(const Facts& facts, std::vector<std::string>& evidence) {
  const Measurement& measured = *facts.evaluation->measurement;
  const auto time = static_cast<double>(measured.time_ns);
  std::string text = fmt::format("One call takes {}", duration(time));
  if (measured.eager_median_ns) {
    text += fmt::format(", eager PyTorch {}",
                        duration(static_cast<double>(*measured.eager_median_ns)));
  }
  if (measured.compile_median_ns) {
    text += fmt::format(", torch.compile {}",
                        duration(static_cast<double>(*measured.compile_median_ns)));
  }
  evidence.push_back(text + ".");
  if (const auto share = facts.memory_share()) {
    evidence.push_back(fmt::format(
        "Moving the {:.3g} MB of inputs and outputs once needs {} at {:.1f} GB/s: {} of the time "
        "({:.1f} GB/s achieved).",
        facts.roof.bytes / 1e6, duration(facts.roof.moving_ns),
        facts.roof.bytes / facts.roof.moving_ns, percent(*share), facts.roof.bytes / time));
  }
  if (const auto share = facts.compute_share()) {
    evidence.push_back(fmt::format(
        "Its {:.3g} million operations need {} at {:.0f} GFLOP/s: {} of the time ({:.1f} GFLOP/s "
        "achieved).",
        facts.roof.flops / 1e6, duration(facts.roof.computing_ns),
        facts.roof.flops / facts.roof.computing_ns, percent(*share), facts.roof.flops / time));
  } else {
    evidence.emplace_back("How many operations the problem needs is not known.");
  }
  if (facts.has_flag("tie")) {
    evidence.emplace_back("It is as fast as the better baseline within the noise.");
  }
}

void describe_plan(const Facts& facts, std::vector<std::string>& evidence) {
  if (!facts.plan_bytes || facts.roof.bytes <= 0) return;
  evidence.push_back(fmt::format(
      "Its plan has {} kernel{}, which read and write {:.3g} MB in all: {:.2f} times the inputs "
      "and outputs.",
      facts.plan_kernels, facts.plan_kernels == 1 ? "" : "s", *facts.plan_bytes / 1e6,
      *facts.plan_bytes / facts.roof.bytes));
}

// Lines of the compiler's output that say something, without this machine's folders.
std::vector<std::string> compiler_lines(std::string_view diagnostics) {
  std::vector<std::string> lines;
  while (!diagnostics.empty() && lines.size() < kCompilerLinesMax) {
    const size_t end = std::min(diagnostics.find('\n'), diagnostics.size());
    const std::string_view line = diagnostics.substr(0, end);
    diagnostics.remove_prefix(std::min(end + 1, diagnostics.size()));
    const bool telling = line.find("error") != std::string_view::npos ||
                         line.find("undefined") != std::string_view::npos ||
                         line.find("note: ") != std::string_view::npos;
    if (telling) lines.push_back(one_line(line, kCompilerLineBytesMax));
  }
  return lines;
}

void describe_failure(const Evaluation& evaluation, std::vector<std::string>& evidence) {
  evidence.push_back(fmt::format("The judge rejected it: {}: {}", enum_name(evaluation.verdict),
                                 one_line(evaluation.detail, kDetailBytesMax)));
  for (size_t i = 0; i < evaluation.errors.size(); ++i) {
    const OutputError& error = evaluation.errors[i];
    if (!(error.rms_budget > 0) || !(error.max_budget > 0)) continue;
    evidence.push_back(fmt::format(
        "Output {}: the rms error is {:.3g} times its budget, the largest error {:.3g} times.", i,
        error.rms / error.rms_budget, error.max / error.max_budget));
  }
  for (std::string& line : compiler_lines(evaluation.diagnostics)) {
    evidence.push_back("The compiler: " + std::move(line));
  }
}

// What the processor counted. The system's events (faults, switches) tell more of the machine.
void describe_counters(const std::map<std::string, double>& counters,
                       std::vector<std::string>& evidence) {
  const auto of = [&](const char* name) -> std::optional<double> {
    const auto found = counters.find(name);
    return found == counters.end() ? std::nullopt : std::optional(found->second);
  };
  if (const auto rate = of("instructions_per_cycle")) {
    evidence.push_back(fmt::format("It ran at {:.2f} instructions a cycle.", *rate));
  }
  std::string misses;
  const std::pair<const char*, const char*> kinds[] = {
      {"l1d_misses_per_kiloinstruction", "first-level cache"},
      {"llc_misses_per_kiloinstruction", "last-level cache"},
      {"dtlb_misses_per_kiloinstruction", "data TLB"},
      {"branch_misses_per_kiloinstruction", "branch predictor"}};
  for (const auto& [name, unit] : kinds) {
    const auto rate = of(name);
    if (!rate) continue;
    misses += fmt::format("{}{:.3g} of the {}", misses.empty() ? "" : ", ", *rate, unit);
  }
  if (!misses.empty()) {
    evidence.push_back(fmt::format("Misses in a thousand instructions: {}.", misses));
  }
}

void describe_profile(const KernelProfile& profile, std::vector<std::string>& evidence) {
  if (profile.vector_instructions && profile.scalar_instructions) {
    evidence.push_back(
        fmt::format("The hot loop has {} vector and {} scalar floating instructions.",
                    *profile.vector_instructions, *profile.scalar_instructions));
  }
  if (profile.spills) {
    evidence.push_back(fmt::format("The hot loop touches the stack {} times.", *profile.spills));
  }
  if (profile.cycles_per_iteration) {
    const std::string limit =
        profile.bottleneck ? ", limited by " + one_line(*profile.bottleneck, 120) : "";
    evidence.push_back(
        fmt::format("A static model gives the hot loop {:.1f} cycles an iteration{}.",
                    *profile.cycles_per_iteration, limit));
  }
  describe_counters(profile.counters, evidence);
  for (const auto& [metric, reason] : profile.missing) {
    evidence.push_back(fmt::format("Not known: {} ({}).", one_line(metric, 60),
                                   one_line(reason, 160)));
  }
}

}  // namespace

bool Facts::accepted() const { return rejected_as(Verdict::accepted); }

bool Facts::rejected_as(Verdict verdict) const {
  return evaluation != nullptr && evaluation->verdict == verdict;
}

std::optional<double> Facts::time_ns() const {
  if (!accepted() || !evaluation->measurement || evaluation->measurement->time_ns <= 0) {
    return std::nullopt;
  }
  return static_cast<double>(evaluation->measurement->time_ns);
}

bool Facts::has_flag(std::string_view flag) const {
  return evaluation != nullptr &&
         std::ranges::find(evaluation->flags, flag) != evaluation->flags.end();
}

std::optional<double> Facts::memory_share() const {
  const std::optional<double> time = time_ns();
  if (!time || roof.moving_ns <= 0) return std::nullopt;
  return roof.moving_ns / *time;
}

std::optional<double> Facts::compute_share() const {
  const std::optional<double> time = time_ns();
  if (!time || roof.computing_ns <= 0) return std::nullopt;
  return roof.computing_ns / *time;
}

bool Facts::near_floor() const {
  return std::max(memory_share().value_or(0), compute_share().value_or(0)) >= kNearFloor;
}

Result<Facts> facts_of(const ProposalContext& context) {
  Facts facts{.kind = context.kind, .machine = &context.machine};
  facts.roof = roofline(context.problem, context.machine, true);
  facts.history = TRY(history_of(context));
  if (context.parents.empty()) return facts;
  const ParentView& base = context.parents.front();
  facts.source = base.node.source;
  if (base.evaluation) facts.evaluation = &*base.evaluation;
  if (base.profile) facts.profile = &*base.profile;
  if (facts.time_ns() && !base.evaluation->measurement->cold) {
    facts.roof = roofline(context.problem, context.machine, false);
  }
  if (context.programs.empty()) return facts;
  if (const std::optional<synth::Genome> genome = synth::genome_of(context, base.node)) {
    // Times and floors are compared with case 0's bytes.
    const ir::Program& program = context.programs.front();
    const synth::CaseGenome& first = genome->cases.front();
    facts.plan_kernels = first.kernels.size();
    facts.plan_bytes = 0;
    for (const ir::FusedKernel& kernel : first.kernels) {
      *facts.plan_bytes += bytes_of(program, kernel.reads) + bytes_of(program, kernel.writes);
    }
  }
  return facts;
}

std::string_view bound_of(const Facts& facts) {
  if (facts.evaluation == nullptr) return "unknown";
  if (!facts.accepted()) return "correctness";
  if (facts.has_flag("too_small")) return "overhead";
  const double memory = facts.memory_share().value_or(0);
  const double compute = facts.compute_share().value_or(0);
  if (std::max(memory, compute) >= kBusy) return memory >= compute ? "memory" : "compute";
  // Neither is busy. Without a count of operations the arithmetic may be.
  return facts.time_ns() && facts.compute_share() ? "latency" : "unknown";
}

}  // namespace model

Json encode(const Diagnosis& diagnosis) {
  return Json{{"bound", diagnosis.bound},
              {"evidence", diagnosis.evidence},
              {"tried", diagnosis.tried},
              {"directives", diagnosis.directives}};
}

Result<Diagnosis> decode_diagnosis(const Json& json) {
  Fields fields = TRY(Fields::of(json, "a diagnosis"));
  Diagnosis diagnosis;
  diagnosis.bound = TRY(fields.get<std::string>("bound"));
  diagnosis.evidence = TRY(fields.get<std::vector<std::string>>("evidence"));
  diagnosis.tried = TRY(fields.get<std::vector<std::string>>("tried"));
  diagnosis.directives = TRY(fields.get<std::vector<std::string>>("directives"));
  TRY(fields.finish());
  return diagnosis;
}

Result<Diagnosis> diagnose(const ProposalContext& context) {
  const model::Facts facts = TRY(model::facts_of(context));
  Diagnosis diagnosis{.bound = std::string(model::bound_of(facts))};
  if (facts.evaluation != nullptr && !facts.accepted()) {
    model::describe_failure(*facts.evaluation, diagnosis.evidence);
  }
  if (facts.time_ns()) model::describe_speed(facts, diagnosis.evidence);
  model::describe_plan(facts, diagnosis.evidence);
  if (facts.profile != nullptr) model::describe_profile(*facts.profile, diagnosis.evidence);
  for (const auto* attempts : {&facts.history.trajectory, &facts.history.siblings}) {
    for (const model::Attempt& attempt : *attempts) {
      if (diagnosis.tried.size() < model::kTriedMax) {
        diagnosis.tried.push_back(model::sentence(attempt));
      }
    }
  }
  for (const model::Rule& rule : model::rules()) {
    if (!rule.holds(facts)) continue;
    diagnosis.directives.push_back(fmt::format("{} {}", rule.directive, rule.reason));
  }
  return diagnosis;
}

}  // namespace ke
