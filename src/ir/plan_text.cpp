// SPDX-License-Identifier: Apache-2.0
//
// Plans as text (for people and digests) and as JSON (for the store and for models, whose answers
// are hostile input).
#include <fmt/format.h>

#include "base/json.hpp"
#include "ir/plan.hpp"

namespace ke::ir {
namespace {

constexpr size_t kKernelsMax = 4096;
constexpr size_t kScheduleMax = 64;
constexpr size_t kPlanNameMax = 64;

Result<StageId> decode_stage(const Json& json, const Program& program) {
  if (!json.is_number_integer()) {
    return Error{Errc::invalid, "a stage of a kernel is no whole number"};
  }
  const auto index = json.is_number_unsigned() ? json.get<uint64_t>() : ~uint64_t{0};
  if (index >= program.stages.size()) {
    return Error{Errc::invalid, fmt::format("a kernel names a stage outside 0..{}",
                                            static_cast<int64_t>(program.stages.size()) - 1)};
  }
  return StageId{static_cast<int>(index)};
}

Result<Schedule> decode_schedule(const Json& json) {
  if (!json.is_object() || json.size() > kScheduleMax) {
    return Error{Errc::invalid, "a kernel's schedule is no object of at most 64 entries"};
  }
  Schedule schedule;
  for (const auto& [name, value] : json.items()) {
    if (!is_identifier(name) || name.size() > kPlanNameMax) {
      return Error{Errc::invalid, "a schedule has an entry whose name is no identifier"};
    }
    const bool large =
        value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
    if (!value.is_number_integer() || large) {
      return Error{Errc::invalid, fmt::format("schedule entry {} is no whole number", name)};
    }
    schedule[name] = value.get<int64_t>();
  }
  return schedule;
}

Result<KernelPlan> decode_kernel(const Json& json, const Program& program) {
  Fields fields = TRY(Fields::of(json, "a kernel of the plan"));
  KernelPlan kernel;
  const auto skeleton = parse_enum<Skeleton>(TRY(fields.get<std::string>("skeleton")));
  if (!skeleton)
    return Error{Errc::invalid, "a kernel's skeleton is none of map, reduce, contract, scan"};
  kernel.skeleton = *skeleton;
  const Json* stages = fields.find("stages");
  if (!stages || !stages->is_array() || stages->size() > program.stages.size()) {
    return Error{Errc::invalid, "a kernel's stages are no list of the program's stages"};
  }
  for (const Json& stage : *stages) kernel.stages.push_back(TRY(decode_stage(stage, program)));
  if (const Json* schedule = fields.find("schedule")) {
    kernel.schedule = TRY(decode_schedule(*schedule));
  }
  TRY(fields.finish());
  return kernel;
}

}  // namespace

std::string print(const Plan& plan) {
  std::string text;
  for (const KernelPlan& kernel : plan.kernels) {
    text += enum_name(kernel.skeleton);
    for (StageId id : kernel.stages) text += fmt::format(" {}", id.index);
    if (!kernel.schedule.empty()) text += " {";
    for (const auto& [name, value] : kernel.schedule) {
      text += fmt::format("{}{}={}", text.back() == '{' ? "" : ", ", name, value);
    }
    text += kernel.schedule.empty() ? "\n" : "}\n";
  }
  return text;
}

Json encode(const Plan& plan) {
  Json kernels = Json::array();
  for (const KernelPlan& kernel : plan.kernels) {
    Json stages = Json::array();
    for (StageId id : kernel.stages) stages.push_back(id.index);
    Json schedule = Json::object();
    for (const auto& [name, value] : kernel.schedule) schedule[name] = value;
    kernels.push_back({{"skeleton", enum_name(kernel.skeleton)},
                       {"stages", std::move(stages)},
                       {"schedule", std::move(schedule)}});
  }
  return {{"kernels", std::move(kernels)}};
}

Result<Plan> decode_plan(const Json& json, const Program& program) {
  Fields fields = TRY(Fields::of(json, "the plan"));
  const Json* kernels = fields.find("kernels");
  if (!kernels || !kernels->is_array() || kernels->size() > kKernelsMax) {
    return Error{Errc::invalid, "the plan's kernels are no list of at most 4096 kernels"};
  }
  Plan plan;
  for (const Json& kernel : *kernels) {
    plan.kernels.push_back(TRY(decode_kernel(kernel, program)));
  }
  TRY(fields.finish());
  return plan;
}

Digest digest_of(const Plan& plan) { return ke::digest_of(print(plan)); }

}  // namespace ke::ir
