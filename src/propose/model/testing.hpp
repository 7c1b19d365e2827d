// SPDX-License-Identifier: Apache-2.0
//
// A run with a history, to diagnose and to make prompts from in tests. Everything is fixed: the
// machine, the problem, the times.
#pragma once

#include <gtest/gtest.h>

#include "base/json.hpp"
#include "propose/testing.hpp"

namespace ke::testing_support {

// Softmax over the columns of a product.
inline constexpr const char* kSoftmaxOfProduct = R"(
tensor %0 x: float32[16, 64] input
tensor %1 w: float32[64, 32] input
tensor %2 y: float32[16, 32] intermediate
tensor %3 top: float32[16] intermediate
tensor %4 total: float32[16] intermediate
tensor %5 out: float32[16, 32] output
inputs %0, %1
stage %2[m=16, n=32] = sum[k=64] in float32: mul(load %0[i0, i2], load %1[i2, i1])  # aten.mm
stage %3[m=16] = maximum[n=32] in float32: load %2[i0, i1]
stage %4[m=16] = sum[n=32] in float32: exp(sub(load %2[i0, i1], load %3[i0]))
stage %5[m=16, n=32] = map: div(exp(sub(load %2[i0, i1], load %3[i0])), load %4[i0])
outputs %5
)";

class History : public testing::Test {
 protected:
  History() {
    machine_.cpu = "a processor of tests";
    machine_.threads = 2;
    machine_.bandwidth_all = 1e10;  // 10 GB/s
    machine_.bandwidth_llc_all = 1e11;
    machine_.flops_f32_all = 1e11;  // 100 GFLOP/s
    problem_.name = "tests/softmax_of_product";
    problem_.inputs = {{"x", ir::DType::float32, {16, 64}, {64, 1}, ir::InputKind::argument},
                       {"w", ir::DType::float32, {64, 32}, {1, 64}, ir::InputKind::parameter}};
    problem_.outputs = {{"out", ir::DType::float32, {16, 32}, {32, 1}, ir::InputKind::argument}};
    problem_.flops = 70'000;
    Result<ir::Program> program = ir::parse_program(kSoftmaxOfProduct);
    EXPECT_TRUE(program.has_value());
    program_ = std::move(*program);
    scope_ = Scope{*graph_.add_problem({.name = problem_.name, .digest = digest_of("p")}), "fake",
                   "fake 1"};
    run_ = *graph_.add_run({.scope = scope_, .config = "{}"});
  }

  struct NodeSpec {
    NodeKind kind = NodeKind::draft;
    std::vector<NodeId> parents = {};
    std::string proposer = "synth";
    std::string source = {};
    std::string plan = {};
    std::string note = {};
    std::optional<Evaluation> evaluation = {};
  };
  NodeId add(NodeSpec spec) {
    ++step_;
    if (spec.source.empty()) spec.source = fmt::format("int kernel_{};\n", step_);
    const NodeId id = *graph_.add_node({.run = run_,
                                        .step = step_,
                                        .kind = spec.kind,
                                        .parents = spec.parents,
                                        .proposer = spec.proposer,
                                        .source = spec.source,
                                        .plan = spec.plan,
                                        .note = spec.note});
    if (spec.evaluation) {
      EXPECT_TRUE(graph_.add_evaluation(id, *spec.evaluation, "full"));
    }
    return id;
  }

  // Bytes and operations of the problem as if it took these shares of `time_ns` at full speed.
  void shape_problem(double memory_share, double compute_share, int64_t time_ns) {
    const auto time = static_cast<double>(time_ns);
    const auto elements = static_cast<int64_t>(memory_share * time * 10 / 4 / 2);
    problem_.inputs = {{"x", ir::DType::float32, {elements}, {1}, ir::InputKind::argument}};
    problem_.outputs = {{"y", ir::DType::float32, {elements}, {1}, ir::InputKind::argument}};
    problem_.flops = static_cast<int64_t>(compute_share * time * 100);
  }

  static Evaluation accepted(double speedup, int64_t time_ns = 100'000, double noise = 0.001,
                             std::vector<std::string> flags = {}) {
    Evaluation evaluation{.verdict = Verdict::accepted, .flags = std::move(flags)};
    evaluation.measurement =
        Measurement{.candidate_ns = {time_ns},
                    .eager_ns = {static_cast<int64_t>(speedup * static_cast<double>(time_ns))},
                    .time_ns = time_ns,
                    .eager_median_ns =
                        static_cast<int64_t>(speedup * static_cast<double>(time_ns)),
                    .speedup = speedup,
                    .speedup_low = speedup * (1 - noise),
                    .speedup_high = speedup * (1 + noise)};
    return evaluation;
  }
  static Evaluation rejected(Verdict verdict, std::string detail, std::string diagnostics = {}) {
    return {.verdict = verdict, .detail = std::move(detail), .diagnostics = std::move(diagnostics)};
  }

  ProposalContext context(NodeKind kind, const std::vector<NodeId>& parents = {},
                          Memory memory = Memory::both) {
    ProposalContext context{.problem = problem_,
                            .programs = std::span(&program_, has_program_ ? 1 : 0),
                            .target = target_,
                            .machine = machine_,
                            .kind = kind,
                            .parents = {},
                            .memory = memory,
                            .graph = graph_,
                            .run = run_,
                            .is_known = [this](std::string_view source) {
                              return known_.contains(normalised_digest(source));
                            }};
    for (const NodeId id : parents) {
      ParentView view{.node = *graph_.node(id), .evaluation = {}, .profile = profile_};
      if (auto found = *graph_.verdict_of(id)) view.evaluation = found->evaluation;
      context.parents.push_back(std::move(view));
    }
    return context;
  }

  std::string greedy_plan() const { return dump_json(ir::encode(ir::fuse_greedily(program_))); }

  Problem problem_;
  MachineProfile machine_;
  FakeTarget target_;
  ir::Program program_;
  bool has_program_ = true;
  std::optional<KernelProfile> profile_;
  std::unique_ptr<Store> store_ = make_memory_store();
  ExperienceGraph graph_{*store_};
  Scope scope_;
  RunId run_;
  int64_t step_ = 0;
  std::set<Digest> known_;
};

}  // namespace ke::testing_support
