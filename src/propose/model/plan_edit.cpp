// SPDX-License-Identifier: Apache-2.0
#include "propose/model/plan_edit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/json.hpp"
#include "ir/fuse.hpp"
#include "propose/model/text.hpp"

namespace ke::model {
namespace {

constexpr size_t kEditsMax = 64;
constexpr size_t kNameBytesMax = 60;  // of what is quoted back
constexpr size_t kValuesMax = 24;

enum class Op : uint8_t { set, skeleton, merge, split, inline_stage, keep };
constexpr std::array<std::string_view, 6> kOps{"set", "skeleton", "merge", "split", "inline",
                                               "keep"};

// Fields convert what is no whole number, and must not.
Result<int64_t> whole_number(Fields& fields, const char* key) {
  const Json* value = fields.find(key);
  if (value != nullptr && value->is_number_integer()) return value->get<int64_t>();
  return Error{Errc::invalid, fmt::format("its '{}' is no whole number", key)};
}

struct NumberedKernel {
  int64_t number = 0;
  ir::KernelPlan plan;
  std::set<std::string> asked = {};  // decisions that the model wrote

  void start_anew() {
    plan.schedule.clear();
    asked.clear();
  }
};
using Kernels = std::vector<NumberedKernel>;

// Kernels with the numbers by which the model knows them.
class Editor {
 public:
  Editor(const ir::Program& program, const ir::Plan& base) : program_(program) {
    for (const ir::KernelPlan& kernel : base.kernels) kernels_.push_back({next_++, kernel});
  }

  Result<void> apply(const Json& edit) {
    Fields fields = TRY(Fields::of(edit, "it"));
    const auto name = TRY(fields.get<std::string>("op"));
    const auto* found = std::ranges::find(kOps, name);
    if (found == kOps.end()) {
      return Error{Errc::invalid,
                   fmt::format("there is no operation '{}'; there are {}",
                               one_line(name, kNameBytesMax), fmt::join(kOps, ", "))};
    }
    switch (static_cast<Op>(found - kOps.begin())) {
      case Op::set:
        return set(fields);
      case Op::skeleton:
        return skeleton(fields);
      case Op::merge:
        return merge(fields);
      case Op::split:
        return split(fields);
      case Op::inline_stage:
        return inline_stage(fields);
      case Op::keep:
        return keep(fields);
    }
    return {};
  }

  ir::Plan plan() const {
    ir::Plan plan;
    for (const NumberedKernel& kernel : kernels_) plan.kernels.push_back(kernel.plan);
    return plan;
  }
  Kernels& kernels() { return kernels_; }
  std::vector<int64_t> numbers() const {
    std::vector<int64_t> numbers;
    for (const NumberedKernel& kernel : kernels_) numbers.push_back(kernel.number);
    return numbers;
  }

 private:
  Result<size_t> position_of(int64_t number) const {
    const auto found = std::ranges::find(kernels_, number, &NumberedKernel::number);
    if (found != kernels_.end()) return static_cast<size_t>(found - kernels_.begin());
    return Error{Errc::invalid, fmt::format("there is no kernel {}; there are {}", number,
                                            fmt::join(numbers(), ", "))};
  }
  Result<size_t> kernel(Fields& fields) const {
    return position_of(TRY(whole_number(fields, "kernel")));
  }
  Result<ir::StageId> stage(Fields& fields, const char* key) const {
    const auto index = TRY(whole_number(fields, key));
    if (index >= 0 && index < static_cast<int64_t>(program_.stages.size())) {
      return ir::StageId{static_cast<int>(index)};
    }
    return Error{Errc::invalid, fmt::format("there is no stage {}; the last one is {}", index,
                                            static_cast<int64_t>(program_.stages.size()) - 1)};
  }

  // Takes the change over when it is legal, else says why not.
  Result<void> become(Kernels changed) {
    std::swap(kernels_, changed);
    Result<void> legal = ir::verify(program_, plan());
    if (!legal) {
      std::swap(kernels_, changed);
      return Error{Errc::invalid, legal.error().to_string()};
    }
    return {};
  }

  Result<void> set(Fields& fields) {
    const size_t at = TRY(kernel(fields));
    const auto name = TRY(fields.get<std::string>("decision"));
    const int64_t value = TRY(whole_number(fields, "value"));
    TRY(fields.finish());
    if (!ir::is_identifier(name)) {
      return Error{Errc::invalid, fmt::format("'{}' is not the name of a decision",
                                              one_line(name, kNameBytesMax))};
    }
    kernels_[at].plan.schedule[name] = value;
    kernels_[at].asked.insert(name);
    return {};
  }

  Result<void> skeleton(Fields& fields) {
    const size_t at = TRY(kernel(fields));
    const auto to = parse_enum<ir::Skeleton>(TRY(fields.get<std::string>("to")));
    TRY(fields.finish());
    if (!to) return Error{Errc::invalid, "a skeleton is map, reduce, contract or scan"};
    Kernels changed = kernels_;
    changed[at].plan.skeleton = *to;
    changed[at].start_anew();
    return become(std::move(changed));
  }

  // At the place of the first of the two, else at that of the second: only one may be legal.
  Result<void> merge(Fields& fields) {
    const Json* pair = fields.find("kernels");
    TRY(fields.finish());
    const bool two = pair != nullptr && pair->is_array() && pair->size() == 2 &&
                     (*pair)[0].is_number_integer() && (*pair)[1].is_number_integer() &&
                     (*pair)[0] != (*pair)[1];
    if (!two) return Error{Errc::invalid, "its 'kernels' are no two different numbers"};
    const size_t first = TRY(position_of((*pair)[0].get<int64_t>()));
    const size_t second = TRY(position_of((*pair)[1].get<int64_t>()));
    NumberedKernel whole = kernels_[first];
    const ir::KernelPlan& other = kernels_[second].plan;
    whole.plan.stages.insert(whole.plan.stages.end(), other.stages.begin(), other.stages.end());
    std::ranges::sort(whole.plan.stages);
    whole.plan.skeleton = std::max(whole.plan.skeleton, other.skeleton);
    whole.start_anew();
    Kernels early = kernels_, late = kernels_;
    const auto [low, high] = std::minmax(first, second);
    early[low] = whole;
    early.erase(early.begin() + static_cast<std::ptrdiff_t>(high));
    late[high] = whole;
    late.erase(late.begin() + static_cast<std::ptrdiff_t>(low));
    Result<void> done = become(std::move(early));
    return done ? done : become(std::move(late));
  }

  Result<void> split(Fields& fields) {
    const size_t at = TRY(kernel(fields));
    const ir::StageId before = TRY(stage(fields, "before"));
    TRY(fields.finish());
    Kernels changed = kernels_;
    std::vector<ir::StageId>& stages = changed[at].plan.stages;
    const auto cut = std::ranges::find(stages, before);
    if (cut == stages.end() || cut == stages.begin()) {
      return Error{Errc::invalid,
                   fmt::format("stage {} is not in the kernel, or is its first", before.index)};
    }
    NumberedKernel rest{next_, {changed[at].plan.skeleton, {cut, stages.end()}, {}}};
    stages.erase(cut, stages.end());
    changed[at].start_anew();
    for (ir::KernelPlan* part : {&changed[at].plan, &rest.plan}) {
      const ir::Skeleton plain = ir::skeleton_of(program_, part->stages);
      if (plain != ir::Skeleton::reduce) part->skeleton = plain;
    }
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(rest));
    TRY(become(std::move(changed)));
    ++next_;
    return {};
  }

  Result<void> inline_stage(Fields& fields) {
    const ir::StageId id = TRY(stage(fields, "stage"));
    TRY(fields.finish());
    Kernels changed = kernels_;
    for (size_t k = 0; k < changed.size(); ++k) {
      if (std::erase(changed[k].plan.stages, id) == 0) continue;
      changed[k].start_anew();
      if (changed[k].plan.stages.empty()) {
        changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(k));
      }
      return become(std::move(changed));
    }
    return Error{Errc::invalid, fmt::format("stage {} is inlined already", id.index)};
  }

  Result<void> keep(Fields& fields) {
    const ir::StageId id = TRY(stage(fields, "stage"));
    std::optional<size_t> where;
    if (fields.find("kernel") != nullptr) where = TRY(kernel(fields));
    TRY(fields.finish());
    const bool held = std::ranges::any_of(kernels_, [id](const NumberedKernel& kernel) {
      return std::ranges::find(kernel.plan.stages, id) != kernel.plan.stages.end();
    });
    if (held) return Error{Errc::invalid, fmt::format("stage {} has a kernel already", id.index)};
    if (where) {
      Kernels changed = kernels_;
      changed[*where].plan.stages.push_back(id);
      std::ranges::sort(changed[*where].plan.stages);
      changed[*where].start_anew();
      return become(std::move(changed));
    }
    return keep_alone(id);
  }

  // Before the first kernel where that is legal.
  Result<void> keep_alone(ir::StageId id) {
    const NumberedKernel alone{next_, {ir::skeleton_of(program_, {id}), {id}, {}}};
    Result<void> done;
    for (size_t k = 0; k <= kernels_.size(); ++k) {
      Kernels changed = kernels_;
      changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(k), alone);
      done = become(std::move(changed));
      if (!done) continue;
      ++next_;
      return {};
    }
    return done;
  }

  const ir::Program& program_;
  Kernels kernels_;
  int64_t next_ = 0;
};

Error unknown_decision(int64_t number, ir::Skeleton skeleton, std::string_view name,
                       const std::vector<ScheduleChoice>& choices) {
  std::string names;
  for (const ScheduleChoice& one : choices) names += (names.empty() ? "" : ", ") + one.name;
  return Error{Errc::invalid, fmt::format("kernel {} ({}) has no decision '{}'; it has {}", number,
                                          enum_name(skeleton), one_line(name, kNameBytesMax),
                                          names.empty() ? "none" : names)};
}

Error illegal_value(int64_t number, int64_t value, const ScheduleChoice& choice) {
  const auto shown = static_cast<std::ptrdiff_t>(std::min(choice.values.size(), kValuesMax));
  const bool all = choice.values.size() <= kValuesMax;
  const auto begin = choice.values.begin();
  return Error{Errc::invalid,
               fmt::format("{} of kernel {} may not be {}; legal: {}{}", choice.name, number, value,
                           fmt::join(begin, begin + shown, ", "), all ? "" : ", …")};
}

// Every decision that the model wrote is one that the target offers, with a value that it allows.
// What it did not write and no longer fits (one decision may do away with others) goes.
Result<ir::Plan> with_legal_schedules(const ProposalContext& context, Kernels numbered) {
  const ir::Program& program = context.programs[edited_case(context)];
  ir::Plan plan;
  for (const NumberedKernel& kernel : numbered) plan.kernels.push_back(kernel.plan);
  const std::vector<ir::FusedKernel> kernels = TRY(ir::realize(program, plan));
  for (size_t k = 0; k < kernels.size(); ++k) {
    const std::vector<ScheduleChoice> choices =
        context.target.choices(program, kernels[k], context.machine);
    for (const auto& [name, value] : numbered[k].plan.schedule) {
      const auto choice = std::ranges::find(choices, name, &ScheduleChoice::name);
      const bool offered = choice != choices.end();
      if (offered && std::ranges::find(choice->values, value) != choice->values.end()) continue;
      if (!numbered[k].asked.contains(name)) {
        plan.kernels[k].schedule.erase(name);
      } else if (!offered) {
        return unknown_decision(numbered[k].number, plan.kernels[k].skeleton, name, choices);
      } else {
        return illegal_value(numbered[k].number, value, *choice);
      }
    }
  }
  return plan;
}

Result<ir::Plan> by_edits(const ProposalContext& context, const ir::Plan& base,
                          const Json& edits) {
  if (!edits.is_array() || edits.empty() || edits.size() > kEditsMax) {
    return Error{Errc::invalid, fmt::format("its edits are no list of 1 to {} edits", kEditsMax)};
  }
  Editor editor(context.programs[edited_case(context)], base);
  for (size_t i = 0; i < edits.size(); ++i) {
    if (Result<void> done = editor.apply(edits[i]); !done) {
      return Error{Errc::invalid,
                   fmt::format("edit {} is not legal: {}", i + 1, done.error().to_string())};
    }
  }
  return with_legal_schedules(context, std::move(editor.kernels()));
}

Result<ir::Plan> whole_plan(const ProposalContext& context, const Json& json) {
  const ir::Program& program = context.programs[edited_case(context)];
  ir::Plan plan = TRY(ir::decode_plan(json, program));
  TRY(ir::verify(program, plan));
  Kernels kernels;
  for (ir::KernelPlan& kernel : plan.kernels) {
    NumberedKernel one{static_cast<int64_t>(kernels.size()), std::move(kernel)};
    for (const auto& [name, value] : one.plan.schedule) one.asked.insert(name);
    kernels.push_back(std::move(one));
  }
  return with_legal_schedules(context, std::move(kernels));
}

Result<ir::Plan> read_plan(const ProposalContext& context, const ir::Plan& base, const Json& json) {
  if (json.is_array()) return by_edits(context, base, json);
  if (!json.is_object()) return Error{Errc::invalid, "it is no JSON object"};
  const auto edits = json.find("edits");
  if (edits == json.end()) {
    if (!json.contains("kernels")) {
      return Error{Errc::invalid, "it has neither \"edits\" nor \"kernels\""};
    }
    return whole_plan(context, json);
  }
  if (json.size() != 1) return Error{Errc::invalid, "beside \"edits\" it holds something else"};
  return by_edits(context, base, *edits);
}

}  // namespace

std::optional<synth::Genome> base_genome(const ProposalContext& context) {
  if (context.programs.empty()) return std::nullopt;
  if (!context.parents.empty()) return synth::genome_of(context, context.parents.front().node);
  synth::Genome genome;
  for (const ir::Program& program : context.programs) {
    auto one = synth::complete(context, program, ir::fuse_greedily(program));
    if (!one) return std::nullopt;
    genome.cases.push_back(std::move(*one));
  }
  return genome;
}

size_t edited_case(const ProposalContext& context) { return synth::cases_to_vary(context).front(); }

Result<ir::Plan> edit_plan(const ProposalContext& context, const ir::Plan& base,
                           std::string_view json) {
  const Json parsed = TRY(parse_json(json));
  Result<ir::Plan> plan = read_plan(context, base, parsed);
  if (plan) return plan;
  return Error{Errc::invalid, fmt::format("The plan cannot be used: {}.",
                                          one_line(plan.error().to_string(), 600))};
}

}  // namespace ke::model
