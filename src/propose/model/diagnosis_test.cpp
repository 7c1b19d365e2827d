// SPDX-License-Identifier: Apache-2.0
#include "propose/model/diagnosis.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "propose/model/testing.hpp"

namespace ke::model {
namespace {

using Diagnoses = testing_support::History;

constexpr int64_t kTime = 1'000'000;

bool any_has(const std::vector<std::string>& lines, std::string_view words) {
  return std::ranges::any_of(lines, [&](const std::string& line) {
    return line.find(words) != std::string::npos;
  });
}

// Names of the rules that hold.
std::vector<std::string_view> held(const ProposalContext& context) {
  const Result<Facts> facts = facts_of(context);
  EXPECT_TRUE(facts.has_value());
  std::vector<std::string_view> names;
  for (const Rule& rule : rules()) {
    if (rule.holds(*facts)) names.push_back(rule.name);
  }
  return names;
}

bool holds(const ProposalContext& context, std::string_view rule) {
  const auto names = held(context);
  EXPECT_TRUE(std::ranges::any_of(rules(), [&](const Rule& r) { return r.name == rule; })) << rule;
  return std::ranges::find(names, rule) != names.end();
}

TEST_F(Diagnoses, EveryRuleHasAnOwnName) {
  std::set<std::string_view> names;
  for (const Rule& rule : rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_TRUE(rule.directive.ends_with('.') && rule.reason.ends_with('.')) << rule.name;
  }
}

TEST_F(Diagnoses, BoundFollowsTheRoofline) {
  const struct {
    double memory, compute;
    std::string_view bound;
  } cases[] = {{0.7, 0.2, "memory"},  {0.2, 0.6, "compute"}, {0.2, 0.1, "latency"},
               {0.95, 0.1, "memory"}, {0.1, 0, "unknown"}};
  for (const auto& one : cases) {
    shape_problem(one.memory, one.compute, kTime);
    const NodeId node = add({.evaluation = accepted(1.5, kTime)});
    const Diagnosis diagnosis = *diagnose(context(NodeKind::mutate, {node}));
    EXPECT_EQ(diagnosis.bound, one.bound) << one.memory << " " << one.compute;
    EXPECT_TRUE(any_has(diagnosis.evidence, fmt::format("{:.0f} % of the time", 100 * one.memory)));
  }
}

TEST_F(Diagnoses, WarmCallsAreMeasuredAgainstTheCache) {
  shape_problem(0.7, 0.01, kTime);
  Evaluation warm = accepted(1.5, kTime);
  warm.measurement->cold = false;  // ten times the bandwidth: only 7 % of the time
  const NodeId node = add({.evaluation = warm});
  EXPECT_EQ(diagnose(context(NodeKind::mutate, {node}))->bound, "latency");
}

TEST_F(Diagnoses, EachVerdictHasItsDirective) {
  const struct {
    Verdict verdict;
    std::string detail;
    std::string_view rule;
  } cases[] = {
      {Verdict::compile_error, "it does not compile: kernel.cpp:3: error", "compile"},
      {Verdict::compile_error, "it does not export ke_launch", "entry"},
      {Verdict::crashed, "signal 11", "crash"},
      {Verdict::timed_out, "20000 ms", "time"},
      {Verdict::wrong_output, "output 0: 3 of 9 elements are wrong; 2 elements were never written",
       "unwritten"},
      {Verdict::wrong_output,
       "output 0: the worst at [1], of the wrong kind (not finite, or not equal)", "strange"},
      {Verdict::wrong_output, "output 0: within the tolerance, but its rms error is 3 times",
       "precision"},
      {Verdict::wrong_output, "output 0: 9 of 9 elements are wrong, 1e+05 times what is allowed",
       "wrong"},
      {Verdict::out_of_bounds, "it read behind input 0", "bounds"},
      {Verdict::input_mutated, "it wrote input 0", "inputs"},
      {Verdict::nondeterministic, "output 0 differs", "deterministic"},
      {Verdict::policy_violation, "it opens a socket", "policy"},
      {Verdict::implausible_time, "3 ns", "implausible"},
  };
  for (const auto& one : cases) {
    const NodeId node = add({.evaluation = rejected(one.verdict, one.detail)});
    const ProposalContext asked = context(NodeKind::mutate, {node}, Memory::parents);
    EXPECT_EQ(held(asked), std::vector{one.rule}) << one.detail;
    const Diagnosis diagnosis = *diagnose(asked);
    EXPECT_EQ(diagnosis.bound, "correctness");
    EXPECT_TRUE(any_has(diagnosis.evidence, one.detail));
  }
}

TEST_F(Diagnoses, CompilerErrorsAreShownWithoutFolders) {
  const NodeId node = add(
      {.evaluation = rejected(Verdict::compile_error, "it does not compile: x",
                              "/build/kernel.cpp: In function 'f':\n/build/kernel.cpp:7:3: error: "
                              "no\n  7 | ```\n/usr/include/c++/12/bits/a.h:1:2: note: here\n")});
  const Diagnosis diagnosis = *diagnose(context(NodeKind::mutate, {node}));
  EXPECT_TRUE(any_has(diagnosis.evidence, "The compiler: kernel.cpp:7:3: error: no"));
  EXPECT_TRUE(any_has(diagnosis.evidence, "a.h:1:2: note: here"));
  EXPECT_FALSE(any_has(diagnosis.evidence, "/build"));
  EXPECT_FALSE(any_has(diagnosis.evidence, "/usr"));
}

TEST_F(Diagnoses, ErrorsComeInUnitsOfTheirBudget) {
  Evaluation wrong = rejected(Verdict::wrong_output, "output 0: within the tolerance, but");
  wrong.errors = {OutputError{.rms = 3e-6, .max = 1e-5, .rms_budget = 1e-6, .max_budget = 2e-5}};
  const NodeId node = add({.evaluation = wrong});
  const Diagnosis diagnosis = *diagnose(context(NodeKind::mutate, {node}));
  EXPECT_TRUE(any_has(diagnosis.evidence,
                      "the rms error is 3 times its budget, the largest error 0.5 times"));
}

TEST_F(Diagnoses, GoesBackWhenAChangeBrokeAGoodKernel) {
  const NodeId good = add({.evaluation = accepted(1.5)});
  const NodeId bad = add({.kind = NodeKind::mutate,
                          .parents = {good},
                          .evaluation = rejected(Verdict::crashed, "signal 11")});
  EXPECT_TRUE(holds(context(NodeKind::mutate, {bad}), "back"));
  EXPECT_FALSE(holds(context(NodeKind::mutate, {bad}, Memory::nothing), "back")) << "is not seen";
}

TEST_F(Diagnoses, NearTheFloorOnlyFewerBytesHelp) {
  shape_problem(0.9, 0.1, kTime);
  const NodeId node = add({.source = "parallel_for", .evaluation = accepted(1.5, kTime)});
  EXPECT_EQ(held(context(NodeKind::mutate, {node})), std::vector<std::string_view>{"near-floor"});
}

TEST_F(Diagnoses, WhatIsBusyIsToBeUsedBetter) {
  const struct {
    double memory, compute;
    std::string_view rule;
  } cases[] = {{0.7, 0.2, "memory"}, {0.2, 0.6, "compute"}, {0.2, 0.1, "latency"}};
  for (const auto& one : cases) {
    shape_problem(one.memory, one.compute, kTime);
    const NodeId node = add({.source = "parallel_for", .evaluation = accepted(1.5, kTime)});
    EXPECT_EQ(held(context(NodeKind::mutate, {node})), std::vector{one.rule});
  }
}

TEST_F(Diagnoses, ShortCallsAreOverhead) {
  const NodeId node = add({.evaluation = accepted(1.5, 900, 0.001, {"too_small"})});
  EXPECT_EQ(diagnose(context(NodeKind::mutate, {node}))->bound, "overhead");
  EXPECT_TRUE(holds(context(NodeKind::mutate, {node}), "overhead"));
}

TEST_F(Diagnoses, UnfusedKernelsAreSeenByTheirTraffic) {
  // Every stage a kernel of its own: the product goes to memory and is read three times.
  ir::Plan apart;
  for (int stage = 0; stage < 4; ++stage) {
    apart.kernels.push_back({stage == 3 ? ir::Skeleton::map : ir::Skeleton::reduce,
                             {ir::StageId{stage}}, {}});
  }
  ASSERT_TRUE(ir::verify(program_, apart));
  const NodeId node =
      add({.plan = dump_json(ir::encode(apart)), .evaluation = accepted(1.5, kTime)});
  EXPECT_TRUE(holds(context(NodeKind::mutate, {node}), "fuse"));
  EXPECT_TRUE(any_has(diagnose(context(NodeKind::mutate, {node}))->evidence,
                      "Its plan has 4 kernels"));
  has_program_ = false;
  EXPECT_FALSE(holds(context(NodeKind::mutate, {node}), "fuse"));
}

TEST_F(Diagnoses, OneThreadOfSeveralIsToldToUseThemAll) {
  shape_problem(0.3, 0.1, kTime);
  const NodeId one = add({.source = "for (;;) {}", .evaluation = accepted(1.5, kTime)});
  const NodeId all =
      add({.source = "context->parallel_for(a, b);", .evaluation = accepted(1.5, kTime)});
  EXPECT_TRUE(holds(context(NodeKind::mutate, {one}), "threads"));
  EXPECT_FALSE(holds(context(NodeKind::mutate, {all}), "threads"));
  machine_.threads = 1;
  EXPECT_FALSE(holds(context(NodeKind::mutate, {one}), "threads"));
}

TEST_F(Diagnoses, ProfilesAreTakenAsFactsWhenThereAreAny) {
  const NodeId node = add({.evaluation = accepted(1.5)});
  EXPECT_FALSE(holds(context(NodeKind::mutate, {node}), "vectorise"));
  EXPECT_FALSE(holds(context(NodeKind::mutate, {node}), "spill"));
  profile_ = KernelProfile{.vector_instructions = 1,
                           .scalar_instructions = 9,
                           .spills = 4,
                           .missing = {{"cycles_per_iteration", "there is no llvm-mca"}}};
  EXPECT_TRUE(holds(context(NodeKind::mutate, {node}), "vectorise"));
  EXPECT_TRUE(holds(context(NodeKind::mutate, {node}), "spill"));
  const Diagnosis diagnosis = *diagnose(context(NodeKind::mutate, {node}));
  EXPECT_TRUE(any_has(diagnosis.evidence, "1 vector and 9 scalar"));
  EXPECT_TRUE(any_has(diagnosis.evidence, "cycles_per_iteration (there is no llvm-mca)"));
}

TEST_F(Diagnoses, TellWhatTheProcessorCountedAndNothingWhereItCountedNothing) {
  const NodeId node = add({.evaluation = accepted(1.5)});
  profile_ = KernelProfile{};
  const size_t before = diagnose(context(NodeKind::mutate, {node}))->evidence.size();
  profile_->counters = {{"page_faults", 3}, {"task_clock_ns", 1e6}};
  EXPECT_EQ(diagnose(context(NodeKind::mutate, {node}))->evidence.size(), before);
  profile_->counters = {{"instructions_per_cycle", 0.5},
                        {"l1d_misses_per_kiloinstruction", 62.5},
                        {"dtlb_misses_per_kiloinstruction", 0}};
  const Diagnosis diagnosis = *diagnose(context(NodeKind::mutate, {node}));
  EXPECT_TRUE(any_has(diagnosis.evidence, "0.50 instructions a cycle"));
  EXPECT_TRUE(any_has(diagnosis.evidence,
                      "instructions: 62.5 of the first-level cache, 0 of the data TLB."));
}

TEST_F(Diagnoses, ComparesWithTheBaseline) {
  const NodeId behind = add({.evaluation = accepted(0.8)});
  const NodeId tie = add({.evaluation = accepted(0.99, 100'000, 0.05, {"tie"})});
  EXPECT_TRUE(holds(context(NodeKind::mutate, {behind}), "behind"));
  EXPECT_FALSE(holds(context(NodeKind::mutate, {tie}), "behind"));
  EXPECT_TRUE(holds(context(NodeKind::mutate, {tie}), "tie"));
}

TEST_F(Diagnoses, SeesThatChangesGainNothing) {
  const NodeId parent = add({.evaluation = accepted(1.5)});
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(holds(context(NodeKind::mutate, {parent}), "stalled")) << i;
    add({.kind = NodeKind::mutate, .parents = {parent}, .evaluation = accepted(1.4)});
  }
  EXPECT_TRUE(holds(context(NodeKind::mutate, {parent}), "stalled"));
  EXPECT_FALSE(holds(context(NodeKind::mutate, {parent}, Memory::parents), "stalled"));
  add({.kind = NodeKind::mutate, .parents = {parent}, .evaluation = accepted(2.0)});
  EXPECT_FALSE(holds(context(NodeKind::mutate, {parent}), "stalled"));
  EXPECT_TRUE(holds(context(NodeKind::mutate, {parent}), "build-on"));
}

TEST_F(Diagnoses, SeesARepeatedMistake) {
  const NodeId parent = add({.evaluation = accepted(1.5)});
  add({.kind = NodeKind::mutate, .parents = {parent}, .evaluation = accepted(1.4)});
  add({.kind = NodeKind::mutate,
       .parents = {parent},
       .evaluation = rejected(Verdict::crashed, "signal 11")});
  add({.kind = NodeKind::mutate,
       .parents = {parent},
       .evaluation = rejected(Verdict::out_of_bounds, "it wrote")});
  EXPECT_FALSE(holds(context(NodeKind::mutate, {parent}), "repeated"));
  add({.kind = NodeKind::mutate,
       .parents = {parent},
       .evaluation = rejected(Verdict::crashed, "signal 8")});
  EXPECT_TRUE(holds(context(NodeKind::mutate, {parent}), "repeated"));
}

TEST_F(Diagnoses, KindsHaveTheirOwnDirective) {
  const NodeId a = add({.evaluation = accepted(1.5)}), b = add({.evaluation = accepted(1.6)});
  EXPECT_TRUE(holds(context(NodeKind::cross, {a, b}), "cross"));
  EXPECT_FALSE(holds(context(NodeKind::mutate, {a}), "cross"));
  EXPECT_TRUE(holds(context(NodeKind::draft), "draft"));
  EXPECT_EQ(diagnose(context(NodeKind::draft))->bound, "unknown");
}

TEST_F(Diagnoses, MemoryDecidesWhatIsSeen) {
  const NodeId root = add({.note = "the root", .evaluation = accepted(1.2)});
  const NodeId parent = add({.kind = NodeKind::mutate,
                             .parents = {root},
                             .note = "the parent",
                             .evaluation = accepted(1.5)});
  add({.kind = NodeKind::mutate,
       .parents = {parent},
       .proposer = "llm",
       .note = "a sibling",
       .evaluation = rejected(Verdict::crashed, "signal 11")});
  const auto tried = [&](Memory memory) {
    return diagnose(context(NodeKind::mutate, {parent}, memory))->tried;
  };
  EXPECT_TRUE(tried(Memory::nothing).empty());
  EXPECT_EQ(tried(Memory::parents).size(), 2u);
  EXPECT_TRUE(any_has(tried(Memory::parents), "the parent; accepted"));
  EXPECT_TRUE(any_has(tried(Memory::parents), "1.25 times as fast as its parent"));
  EXPECT_EQ(tried(Memory::siblings).size(), 1u);
  EXPECT_TRUE(any_has(tried(Memory::siblings), "mutate by llm: a sibling; crashed: signal 11"));
  EXPECT_EQ(tried(Memory::both).size(), 3u);
}

TEST_F(Diagnoses, DraftsSeeOtherDraftsUnlessTheyStartClean) {
  const NodeId draft = add({.note = "a draft", .evaluation = accepted(1.2)});
  add({.kind = NodeKind::mutate, .parents = {draft}, .note = "a child"});
  EXPECT_EQ(diagnose(context(NodeKind::draft, {}, Memory::parents))->tried.size(), 1u);
  EXPECT_TRUE(diagnose(context(NodeKind::draft, {}, Memory::nothing))->tried.empty());
}

TEST_F(Diagnoses, SaysWhatPlansChanged) {
  const ir::Plan greedy = ir::fuse_greedily(program_);
  ir::Plan changed = greedy;
  changed.kernels[0].schedule["block"] = 64;
  EXPECT_EQ(difference(greedy, greedy), "");
  EXPECT_NE(difference(greedy, changed).find("block default -> 64"), std::string::npos);
  ir::Plan other = changed;
  other.kernels[0].schedule["block"] = 128;
  EXPECT_NE(difference(changed, other).find("block 64 -> 128"), std::string::npos);
  const std::vector<ir::Plan> neighbours = ir::fusion_neighbours(program_, greedy);
  ASSERT_FALSE(neighbours.empty());
  EXPECT_TRUE(difference(greedy, neighbours[0]).starts_with("fusion: "));
  const NodeId root = add({.plan = dump_json(ir::encode(changed)), .evaluation = accepted(1.0)});
  const NodeId child = add({.kind = NodeKind::mutate,
                            .parents = {root},
                            .proposer = "strategist",
                            .plan = dump_json(ir::encode(other)),
                            .note = "larger blocks",
                            .evaluation = accepted(1.0)});
  const Diagnosis diagnosis = *diagnose(context(NodeKind::mutate, {child}));
  EXPECT_TRUE(any_has(diagnosis.tried, "block 64 -> 128): larger blocks; accepted"));
  EXPECT_TRUE(any_has(diagnosis.tried, "as fast as its parent within the noise"));
}

TEST_F(Diagnoses, AreEncodedWhole) {
  const Diagnosis diagnosis{"memory", {"a"}, {"b"}, {"c", "d"}};
  EXPECT_EQ(dump_json(encode(diagnosis)),
            R"({"bound":"memory","directives":["c","d"],"evidence":["a"],"tried":["b"]})");
}

}  // namespace
}  // namespace ke::model
