// SPDX-License-Identifier: Apache-2.0
//
// Walks the graph in order and applies to each call the rule of its operation.
#include "ir/lower/lower.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/lower/context.hpp"

namespace ke::ir {

#define KE_LOWERING_FAMILY(name) extern const LoweringFamily lowering_##name;
#include "lowering_families.inc"
#undef KE_LOWERING_FAMILY

namespace {

std::vector<const LoweringFamily*> families() {
  return {
#define KE_LOWERING_FAMILY(name) &lowering_##name,
#include "lowering_families.inc"
#undef KE_LOWERING_FAMILY
  };
}

LoweringRule find_rule(std::string_view op) {
  for (const LoweringFamily* family : families()) {
    for (const auto& [name, rule] : family->rules) {
      if (name == op) return rule;
    }
  }
  return nullptr;
}

}  // namespace

Result<Program> lower(const Graph& graph) {
  LoweringContext context(graph);
  for (const Node& node : graph.nodes) {
    const LoweringRule rule = find_rule(node.op);
    if (!rule) return Error{Errc::unavailable, fmt::format("no lowering for {}", node.op)};
    context.begin(node);
    TRY(context.require_arguments(node));
    TRY(rule(context, node));
  }
  TRY(context.require_outputs());
  Program program = context.finish();
  TRY(verify(program).context("the lowered program"));
  return program;
}

std::vector<std::string_view> lowered_operations() {
  std::vector<std::string_view> names;
  for (const LoweringFamily* family : families()) {
    for (const auto& [name, rule] : family->rules) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ke::ir
