// SPDX-License-Identifier: Apache-2.0
//
// A run as `graph export` writes it, read back into rows: what a replay is compared with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "domain/evaluation.hpp"
#include "domain/experience.hpp"

namespace ke {

inline constexpr int kRecordingSchema = 2;

struct RecordedEvaluation {
  NodeId node;
  std::string effort;
  EvaluationId reused_from;
  Evaluation evaluation;
};

struct Recording {
  std::string problem;  // its name
  Digest problem_digest;
  RunRow run;
  std::map<NodeId, NodeRow> nodes;
  std::map<EvaluationId, RecordedEvaluation> evaluations;
  std::map<PromptId, PromptRow> prompts;
  std::map<AnswerId, AnswerRow> answers;
  std::vector<JournalRow> journal;    // names rows above only
  std::vector<StatisticRow> spent;    // of the nodes above; other statistics are computed anew
};

// Errc::invalid when it is no recording; conflict when another version wrote it, or one that kept
// no journal.
Result<Recording> decode_recording(const Json& json);

}  // namespace ke
