// SPDX-License-Identifier: Apache-2.0
//
// The facts that a diagnosis is made of, and the rules that turn them into directives. A rule is a
// row of the table in diagnosis_rules.cpp: when it holds, what to do, and why.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "domain/roofline.hpp"
#include "propose/model/history.hpp"
#include "propose/model/task.hpp"

namespace ke::model {

struct Facts {
  NodeKind kind = NodeKind::draft;
  std::string_view source;                  // of the base
  const Evaluation* evaluation = nullptr;   // of the base; null for a draft or while it is judged
  const KernelProfile* profile = nullptr;   // of the base; null when nobody took one
  const MachineProfile* machine = nullptr;
  Roofline roof;
  // Bytes that the base's plan reads and writes between its kernels and memory; absent without one.
  std::optional<double> plan_bytes;
  size_t plan_kernels = 0;
  History history;

  bool accepted() const;
  bool rejected_as(Verdict verdict) const;
  std::optional<double> time_ns() const;
  bool has_flag(std::string_view flag) const;
  // Which part of the time the memory, or the arithmetic units, would have needed at full speed.
  std::optional<double> memory_share() const;
  std::optional<double> compute_share() const;  // absent also when the operations are not counted
  bool near_floor() const;
};

Result<Facts> facts_of(const ProposalContext& context);

// memory, compute, latency, overhead, correctness, unknown
std::string_view bound_of(const Facts& facts);

struct Rule {
  std::string_view name;
  bool (*holds)(const Facts& facts);
  std::string_view directive;
  std::string_view reason;
};

std::span<const Rule> rules();  // most promising first

}  // namespace ke::model
