// SPDX-License-Identifier: Apache-2.0
//
// A document of the knowledge base: Markdown behind front matter that says for whom it is.
//
//   ---
//   title: Scans, cumulative sum, product, maximum
//   targets: [any]                  any, or names of targets
//   topics: [scan, cumsum]
//   bottleneck: [latency, memory]   of memory, compute, latency, overhead, correctness; or absent
//   ---
//
// The front matter is a subset of YAML: one `key: value` or `key: [a, b]` a line. A skill, which is
// a document below skills/, also has `status` and `evidence` (knowledge/skill.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.hpp"
#include "base/result.hpp"

namespace ke::knowledge {

inline constexpr std::string_view kBundled = "bundled";  // the origin of what the binary holds

// What holds a kernel back.
enum class Bound : uint8_t { memory, compute, latency, overhead, correctness };

// Whether a person has looked at a lesson that was distilled from a run. Searches find what is
// accepted.
enum class SkillStatus : uint8_t { proposed, accepted, rejected };

struct SkillHeader {
  SkillStatus status = SkillStatus::proposed;
  std::vector<std::string> evidence;  // one a pair of nodes, as skill.hpp writes it
};

struct Document {
  std::string path;  // below its root: "guidance/scans.md"
  std::string title;
  std::vector<std::string> targets;
  std::vector<std::string> topics;
  std::vector<Bound> bounds;
  std::optional<SkillHeader> skill;
  std::string text;    // the whole file, front matter included
  std::string body;    // what follows the front matter
  std::string origin;  // kBundled, or the folder it was read from

  std::string lead() const;  // the first paragraph
  bool is_for(std::string_view target) const;
  bool names(std::string_view target) const;  // is_for(), and not only through `any`
  bool is_about(Bound bound) const;
  bool searchable() const { return !skill || skill->status == SkillStatus::accepted; }
};

inline constexpr int64_t kDocumentBytesMax = 256 * 1024;

// Errc::invalid with one sentence that names the path and the line.
Result<Document> parse_document(std::string path, std::string_view text, std::string origin);

// Splits at `separator` and trims; empty parts are dropped.
std::vector<std::string> split_trimmed(std::string_view text, char separator);

}  // namespace ke::knowledge

template <>
inline constexpr std::array<std::string_view, 5> ke::kEnumNames<ke::knowledge::Bound>{
    "memory", "compute", "latency", "overhead", "correctness"};
template <>
inline constexpr std::array<std::string_view, 3> ke::kEnumNames<ke::knowledge::SkillStatus>{
    "proposed", "accepted", "rejected"};
