// SPDX-License-Identifier: Apache-2.0
//
// A context to call proposers with in tests, and a target that prints schedules instead of code.
#pragma once

#include <fmt/format.h>

#include <set>

#include "graph/source.hpp"
#include "propose/proposer.hpp"

namespace ke::testing_support {

// Prints one line a decision. Its cost model likes large values.
class FakeTarget final : public Target {
 public:
  bool refuses_contractions = false;
  bool rounds = false;  // contractions have a decision on it, and rather round more

  std::vector<ScheduleChoice> choices(const ir::Program&, const ir::FusedKernel& kernel,
                                      const MachineProfile&) const override {
    if (kernel.skeleton == ir::Skeleton::map) {
      return {{"unroll", {1, 2, 4}, 2}, {"width", {8, 16}, 8}};
    }
    std::vector<ScheduleChoice> all = {{"block", {16, 32, 64, 128}, 32}, {"split", {1, 2}, 1}};
    if (rounds && kernel.skeleton == ir::Skeleton::contract) {
      all.push_back({"terms", {1, 3}, 1, {}, 3});
    }
    return all;
  }
  double estimate_ns(const ir::Program&, const ir::FusedKernel& kernel,
                     const MachineProfile&) const override {
    double estimate = 1000;
    for (const auto& [name, value] : kernel.schedule) estimate += 100.0 / double(value);
    return estimate;
  }
  Result<std::string> print_cases(std::span<const CaseKernels> cases,
                                  const MachineProfile&) const override {
    std::string text;
    for (const CaseKernels& one : cases) {
      for (const ir::FusedKernel& kernel : one.kernels) text += TRY(printed(kernel));
      if (cases.size() > 1) text += "end of case;\n";
    }
    return text;
  }
  Result<BuildRecipe> recipe(std::string_view) const override {
    return BuildRecipe{{"cp", "{source}", "{output}"}, "kernel.txt", "kernel.out"};
  }
  Result<std::string> toolchain() const override { return std::string("fake 1"); }

 private:
  Result<std::string> printed(const ir::FusedKernel& kernel) const {
    if (refuses_contractions && kernel.skeleton == ir::Skeleton::contract) {
      return Error{Errc::unavailable, "no contractions"};
    }
    std::string text =
        fmt::format("kernel {} {}", enum_name(kernel.skeleton), kernel.stages.size());
    for (const auto& [name, value] : kernel.schedule) text += fmt::format(" {}={}", name, value);
    for (const ir::TensorId id : kernel.writes) text += fmt::format(" w{}", id.index);
    return text + ";\n";
  }
};

class ContextFixture {
 public:
  ContextFixture() : store_(make_memory_store()), graph_(*store_) {}

  ProposalContext context(NodeKind kind, const std::vector<std::string>& parent_sources,
                          const std::vector<std::string>& parent_plans = {}) {
    ProposalContext context{.problem = problem_,
                            .programs = programs,
                            .target = target,
                            .machine = machine_,
                            .kind = kind,
                            .parents = {},
                            .graph = graph_,
                            .run = run_,
                            .is_known = [this](std::string_view source) {
                              return known_.contains(normalised_digest(source));
                            }};
    for (size_t i = 0; i < parent_sources.size(); ++i) {
      NodeRow node{.id = NodeId{static_cast<int64_t>(i) + 1}, .source = parent_sources[i]};
      if (i < parent_plans.size()) node.plan = parent_plans[i];
      context.parents.push_back({std::move(node), std::nullopt, std::nullopt});
    }
    return context;
  }
  void know(std::string_view source) { known_.insert(normalised_digest(source)); }
  // Makes it a node of the run that contexts are of, with this verdict.
  void judge(std::string_view source, Verdict verdict) {
    know(source);
    ExperienceGraph graph(*store_);
    if (run_ == RunId{}) {
      const ProblemId problem = graph.add_problem({.name = "p", .path = "/p.py"}).value();
      run_ = graph.add_run({.scope = {problem, "fake", "fake 1"}, .config = "{}"}).value();
    }
    NodeRow row{.run = run_, .step = ++steps_, .proposer = "synth", .source = std::string(source)};
    const NodeId node = graph.add_node(std::move(row)).value();
    graph.add_evaluation(node, {.verdict = verdict}, "screen").value();
  }

  FakeTarget target;
  std::vector<ir::Program> programs;

 private:
  Problem problem_;
  MachineProfile machine_;
  std::unique_ptr<Store> store_;
  GraphReader graph_;
  RunId run_;
  int64_t steps_ = 0;
  std::set<Digest> known_;
};

}  // namespace ke::testing_support
