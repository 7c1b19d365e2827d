// SPDX-License-Identifier: Apache-2.0
#include "knowledge/skill.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/digest.hpp"

namespace ke::knowledge {
namespace {

// What stands in a list of the front matter can hold no separator of it.
std::string plain(std::string_view text) {
  std::string safe(text);
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.' || c == '/' || c == '-';
  };
  std::ranges::replace_if(safe, [&](char c) { return !is_plain(c); }, '_');
  return safe.empty() ? "_" : safe;
}

std::string text_of(const DecisionChange& change) {
  return fmt::format("{} {} to {}", change.name, change.from, change.to);
}

std::string changes_text(const Skill& skill, std::string_view separator) {
  std::vector<std::string> texts;
  for (const DecisionChange& change : skill.changes) texts.push_back(text_of(change));
  return fmt::format("{}", fmt::join(texts, separator));
}

std::string operations_text(const Skill& skill) {
  return skill.operations.empty() ? "operations not recorded"
                                  : fmt::format("{}", fmt::join(skill.operations, ", "));
}

std::string evidence_line(const SkillEvidence& one) {
  return fmt::format(
      "problem={} digest={} run={} from={} to={} gain={:.4g} low={:.4g} high={:.4g}{}",
      plain(one.problem), plain(one.digest), one.run, one.from, one.to, one.gain, one.low, one.high,
      one.confirmed ? " confirmed" : "");
}

template <class T>
bool read(const std::map<std::string, std::string>& fields, const char* key, T& value) {
  const auto at = fields.find(key);
  if (at == fields.end()) return false;
  const char* end = at->second.data() + at->second.size();
  const auto [rest, error] = std::from_chars(at->second.data(), end, value);
  return error == std::errc() && rest == end;
}

Result<SkillEvidence> parse_evidence(const std::string& line, const std::string& path) {
  std::map<std::string, std::string> fields;
  SkillEvidence one;
  for (const std::string& part : split_trimmed(line, ' ')) {
    const size_t equals = part.find('=');
    if (part == "confirmed")
      one.confirmed = true;
    else if (equals != std::string::npos)
      fields[part.substr(0, equals)] = part.substr(equals + 1);
  }
  one.problem = fields["problem"];
  one.digest = fields["digest"];
  const bool complete = !one.problem.empty() && read(fields, "run", one.run) &&
                        read(fields, "from", one.from) && read(fields, "to", one.to) &&
                        read(fields, "gain", one.gain) && read(fields, "low", one.low) &&
                        read(fields, "high", one.high);
  if (!complete) {
    return Error{Errc::invalid, fmt::format("{}: the evidence '{}' lacks one of problem, run, "
                                            "from, to, gain, low, high.",
                                            path, line.substr(0, 80))};
  }
  return one;
}

std::string gains_text(const Skill& skill) {
  std::string text;
  for (const SkillEvidence& one : skill.evidence) {
    text += fmt::format("- {} ({}), run {}, node {} to node {}: {:.3g} times as fast, interval "
                        "{:.3g} to {:.3g}, {}\n",
                        plain(one.problem), plain(one.digest), one.run, one.from, one.to, one.gain,
                        one.low, one.high, one.confirmed ? "confirmed" : "screened only");
  }
  return text;
}

}  // namespace

std::string skill_id(const Skill& skill) {
  const std::string lesson =
      fmt::format("{}|{}|{}|{}", skill.target, skill.skeleton, fmt::join(skill.operations, ","),
                  changes_text(skill, ","));
  return digest_of(lesson).short_hex();
}

std::string skill_path(std::string_view id) { return fmt::format("skills/{}.md", id); }

std::string render(const Skill& skill) {
  std::vector<std::string> topics{"skill", "lesson", skill.skeleton};
  for (const std::string& operation : skill.operations) topics.push_back(plain(operation));
  for (const DecisionChange& change : skill.changes) topics.push_back(change.name);
  std::vector<std::string> evidence;
  for (const SkillEvidence& one : skill.evidence) evidence.push_back(evidence_line(one));
  return fmt::format(
      "---\n"
      "title: Lesson on {target}, {skeleton} ({operations}), {changes} is faster\n"
      "targets: [{target}]\n"
      "topics: [{topics}]\n"
      "status: {status}\n"
      "evidence: [{evidence}]\n"
      "---\n"
      "A lesson from measured runs, for {skeleton} kernels on {target} with these operations: "
      "{operations}.\n"
      "Changing {changes} made the kernel faster; nothing else differed between the two.\n\n"
      "## Evidence\n\n"
      "{gains}\n"
      "It holds for the shapes of these problems; on others it is a first thing to try, not a "
      "rule.\n",
      fmt::arg("target", skill.target), fmt::arg("skeleton", skill.skeleton),
      fmt::arg("operations", operations_text(skill)),
      fmt::arg("changes", changes_text(skill, " and ")),
      fmt::arg("topics", fmt::format("{}", fmt::join(topics, ", "))),
      fmt::arg("status", enum_name(skill.status)),
      fmt::arg("evidence", fmt::format("{}", fmt::join(evidence, ", "))),
      fmt::arg("gains", gains_text(skill)));
}

Result<std::vector<SkillEvidence>> evidence_of(const Document& document) {
  std::vector<SkillEvidence> evidence;
  if (!document.skill) return evidence;
  for (const std::string& line : document.skill->evidence) {
    evidence.push_back(TRY(parse_evidence(line, document.path)));
  }
  return evidence;
}

bool merge_evidence(std::vector<SkillEvidence>& into, const std::vector<SkillEvidence>& more) {
  bool added = false;
  for (const SkillEvidence& one : more) {
    const auto same = std::ranges::find_if(into, [&](const SkillEvidence& other) {
      return other.digest == one.digest && other.run == one.run && other.from == one.from &&
             other.to == one.to;
    });
    if (same != into.end()) continue;
    into.push_back(one);
    added = true;
  }
  return added;
}

std::string with_status(const Document& document, SkillStatus status) {
  const std::string line = fmt::format("status: {}", enum_name(status));
  const size_t header = document.text.size() - document.body.size();
  const size_t at = document.text.find("\nstatus:");
  std::string text = document.text;
  if (at == std::string::npos || at >= header) {
    return text.insert(text.find('\n') + 1, line + "\n");
  }
  return text.replace(at + 1, text.find('\n', at + 1) - at - 1, line);
}

}  // namespace ke::knowledge
