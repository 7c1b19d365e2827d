// SPDX-License-Identifier: Apache-2.0
//
// A skill: what a run taught, as a document that says what changed, on what, how much it gained and
// which nodes show it. The lesson names the file, so equal lessons meet there and share evidence;
// its front matter holds what a program reads back:
//
//   status: proposed                  accepted and rejected once a person has looked at it
//   evidence: [problem=level1/19_ReLU digest=0a1b2c3d4e5f run=3 from=5 to=9 gain=1.12 low=1.08
//              high=1.17 confirmed, …]   (on one line)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "knowledge/document.hpp"

namespace ke::knowledge {

// Two nodes of a run whose plans differ by the lesson's change alone.
struct SkillEvidence {
  std::string problem;
  std::string digest;  // of the problem, short
  int64_t run = 0;
  int64_t from = 0;  // node
  int64_t to = 0;    // node, the faster one
  double gain = 1;   // how many times as fast, with its interval
  double low = 1;
  double high = 1;
  bool confirmed = false;  // both measured again with fresh seeds and processes
  bool operator==(const SkillEvidence&) const = default;
};

// A decision of one kernel's schedule, from the slower to the faster value.
struct DecisionChange {
  std::string name;
  int64_t from = 0;
  int64_t to = 0;
  bool operator==(const DecisionChange&) const = default;
};

struct Skill {
  std::string target;
  std::string skeleton;
  std::vector<std::string> operations;  // of the kernel, sorted: "mm", "relu"
  std::vector<DecisionChange> changes;  // by name
  SkillStatus status = SkillStatus::proposed;
  std::vector<SkillEvidence> evidence;
};

// By the lesson: target, skeleton, operations and changes.
std::string skill_id(const Skill& skill);
std::string skill_path(std::string_view id);  // "skills/ID.md"

// The document's text; parse_document() and evidence_of() read it back.
std::string render(const Skill& skill);

Result<std::vector<SkillEvidence>> evidence_of(const Document& document);

// Adds what is not there yet. True when something was added.
bool merge_evidence(std::vector<SkillEvidence>& into, const std::vector<SkillEvidence>& more);

// The document's text with another status and nothing else changed.
std::string with_status(const Document& document, SkillStatus status);

}  // namespace ke::knowledge
