// SPDX-License-Identifier: Apache-2.0
//
// The rows of the experience graph (DESIGN D8). They are only ever inserted; what changes over time
// is a statistic, which is a new row with a later step. Ids are 0 until the store hands them out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/enum_names.hpp"
#include "base/ids.hpp"
#include "domain/verdict.hpp"

namespace ke {

// How a node came to be: given by a person or an earlier run, made from nothing, from one parent,
// from two.
enum class NodeKind : uint8_t { seed, draft, mutate, cross };

// What a proposer may read of a node's history (the memory operator): its parents' trajectory, the
// parents' other children, both, or nothing (a clean restart).
enum class Memory : uint8_t { nothing, parents, siblings, both };

struct ProblemRow {
  ProblemId id;
  std::string name;  // "level1/19_ReLU"
  std::string path;
  Digest digest;  // of the file and its sidecar; (name, digest) is unique
};

// Timings of different toolchains say nothing about each other.
struct Scope {
  ProblemId problem;
  std::string target;     // "x86"
  std::string toolchain;  // Target::toolchain() and whatever else decides a verdict
  bool operator==(const Scope&) const = default;
};

struct RunRow {
  RunId id;
  Scope scope;
  std::string config;  // JSON of the options, as search::encode writes them
  // JSON of what a replay needs beside the rows: problem and machine. Kept once; empty: unknown.
  std::string description = {};
  uint64_t seed = 0;
  int64_t started_utc_ms = 0;
  // Of the latest end; a resumed run ends more than once. Absent while running or after a kill.
  std::optional<int64_t> ended_utc_ms;
  std::string end_reason;
};

struct RunEndRow {
  RunId run;
  int64_t ended_utc_ms = 0;
  std::string reason;
};

struct NodeRow {
  NodeId id;
  RunId run;
  int64_t step = 0;  // position in the run, from 1; unique within it
  NodeKind kind = NodeKind::draft;
  Memory memory = Memory::parents;
  std::vector<NodeId> parents;  // in the order the proposer used them
  std::string proposer;         // "synth"
  std::string source;
  Digest source_digest;
  Digest normalised_digest;  // without comments and layout: equal means the same kernel
  std::string plan;          // JSON of the genome; empty when the source has none
  std::string note;          // one line: what changed
  PromptId prompt = {};      // a model's answer to it holds the source; 0: no model wrote it
};

struct EvaluationRow {
  EvaluationId id;
  NodeId node;
  std::string evaluation;  // JSON, domain/evaluation.hpp
  std::string effort;      // "screen", "full", "confirm"
  bool confirmed = false;
  EvaluationId reused_from;  // of an equal source in an earlier run; 0 when judged here
  Verdict verdict = Verdict::crashed;
  std::optional<double> fitness;  // ranking_fitness(); accepted only
};

// What a language model is asked, as it is sent. Inserted before the call.
struct PromptRow {
  PromptId id;
  RunId run;
  int64_t step = 0;      // nodes of the run at that moment
  int64_t consumed = 0;  // results the run had taken into account by then
  PromptId follows;      // the prompt before it in the conversation; 0: it begins one
  std::string style;     // the proposer, and who is asked for it: "llm", "llm/context_memory"
  std::string model;     // "openai:NAME"
  NodeKind kind = NodeKind::draft;
  Memory memory = Memory::parents;
  std::vector<NodeId> parents;
  Digest digest;         // of stable part and messages
  Digest stable_digest;
  std::string stable;    // the part that many prompts share; stores keep it once
  std::string request;   // JSON of the rest: messages and options
  std::string ground;    // JSON of what else it draws on; empty for one that follows a fault
};

// What came back: an answer, or why there was none. A prompt with a row here is never asked again.
struct AnswerRow {
  AnswerId id;
  PromptId prompt;
  int64_t consumed = 0;  // as in PromptRow, when it came
  bool early = false;    // a complete block while the model went on writing; another row may follow
  std::string outcome;   // JSON: text, finish, usage, money and time, or the failure
  std::string fault;     // why no kernel could be read out of it, for the next prompt; may be empty
};

struct ExchangeRow {
  PromptRow prompt;
  std::vector<AnswerRow> answers;  // in order; none while the model thinks
};

// The order in which the rows of a run were inserted.
enum class JournalKind : uint8_t { node, evaluation, prompt, answer };
struct JournalRow {
  JournalKind kind = JournalKind::node;
  int64_t row = 0;  // the row's id
  bool operator==(const JournalRow&) const = default;
};

// One change of a statistic: `name` of `node` is `value` from `step` on, until a later row.
struct StatisticRow {
  int64_t step = 0;
  NodeId node;
  std::string name;  // "visits", "value", "island", …
  double value = 0;
  bool operator==(const StatisticRow&) const = default;
};

}  // namespace ke

template <>
inline constexpr std::array<std::string_view, 4> ke::kEnumNames<ke::NodeKind>{"seed", "draft",
                                                                              "mutate", "cross"};
template <>
inline constexpr std::array<std::string_view, 4> ke::kEnumNames<ke::Memory>{"nothing", "parents",
                                                                            "siblings", "both"};
template <>
inline constexpr std::array<std::string_view, 4> ke::kEnumNames<ke::JournalKind>{
    "node", "evaluation", "prompt", "answer"};
