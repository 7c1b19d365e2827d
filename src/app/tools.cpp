// SPDX-License-Identifier: Apache-2.0
#include "app/tools.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.hpp"
#include "propose/model/text.hpp"

namespace ke::app {
namespace {

using knowledge::Document;
using knowledge::Library;

constexpr int64_t kHitsMax = 6;
constexpr int64_t kLinesMax = 30;
constexpr int64_t kEntriesMax = 8;
constexpr int64_t kLinesForEntriesMax = 500;  // one document may hold most of them
constexpr size_t kLineBytesMax = 300;
constexpr const char* kNothing = "Nothing was found. Other words may find something.\n";

// Nothing when it builds.
Result<std::string> build_failure(Evaluator& evaluator, const std::string& source) {
  const Artifact artifact = TRY(evaluator.build(source));
  if (!artifact.failure) return std::string();
  return model::without_paths(fmt::format("{}: {}\n{}", enum_name(artifact.failure->verdict),
                                          artifact.failure->detail,
                                          artifact.failure->diagnostics));
}

template <class T>
std::string metric(const KernelProfile& profile, const char* name, const std::optional<T>& value) {
  if (value) return fmt::format("{}: {}\n", name, *value);
  const auto reason = profile.missing.find(name);
  return fmt::format("{}: unknown{}{}\n", name, reason == profile.missing.end() ? "" : ", ",
                     reason == profile.missing.end() ? "" : reason->second);
}

// What was counted, and why the rest was not.
std::string counters_text(const KernelProfile& profile) {
  if (profile.missing.contains("counters")) {
    return metric(profile, "counters", std::optional<double>());
  }
  if (profile.counters.empty()) return {};
  std::string text = "\nCounted while it ran, for one call:\n";
  for (const auto& [name, count] : profile.counters) {
    text += fmt::format("{}: {:.6g}\n", name, count);
  }
  for (const char* name : {"hardware_counters", "cycles", "instructions", "branch_misses",
                           "l1d_misses", "llc_misses", "dtlb_misses", "page_faults",
                           "context_switches", "cpu_migrations", "task_clock_ns"}) {
    if (profile.missing.contains(name)) text += metric(profile, name, std::optional<double>());
  }
  return text;
}

std::string title_of(const Document& document) {
  return fmt::format("{}: {}\n", document.path, document.title);
}

Result<std::string> search_text(Library& library, const std::string& target,
                                const std::string& words) {
  const knowledge::Query query{
      .text = words, .targets = {target}, .bound = std::nullopt, .limit = kHitsMax};
  std::string text;
  for (const knowledge::Hit& hit : TRY(library.find(query))) {
    text += fmt::format("{}  {}\n", title_of(*hit.document), hit.snippet);
  }
  return text.empty() ? kNothing : text;
}

std::string paths_text(const Library& library, const std::string& pattern) {
  std::string text;
  for (const Document* document : library.find_path(pattern, kLinesMax)) {
    text += title_of(*document);
  }
  return text.empty() ? kNothing : text;
}

Result<std::vector<knowledge::FoundLine>> lines_of(const Library& library,
                                                   const llm::ToolCall& call, int64_t limit) {
  if (call.by == llm::FindBy::regex) return library.find_regex(call.what, limit);
  return library.find_text(call.what, limit);
}

Result<std::string> find_text(const Library& library, const llm::ToolCall& call) {
  if (call.by == llm::FindBy::path) return paths_text(library, call.what);
  Result<std::vector<knowledge::FoundLine>> lines = lines_of(library, call, kLinesMax);
  if (!lines && lines.error().code == Errc::invalid) return lines.error().message + "\n";
  if (!lines) return lines.error();
  std::string text;
  for (const knowledge::FoundLine& line : *lines) {
    text += fmt::format("{}:{}: {}\n", line.document->path, line.line,
                        model::one_line(line.text, kLineBytesMax));
  }
  return text.empty() ? kNothing : text;
}

std::string read_text(const Library& library, const std::string& path) {
  const Document* document = library.catalogue().find(path);
  if (document != nullptr && document->searchable()) return document->body;
  return fmt::format("There is no document {}. A search finds documents and says their paths.\n",
                     path);
}

}  // namespace

std::string text_of(const KernelProfile& profile) {
  std::string text = "Of the hot loop:\n";
  text += metric(profile, "vector_instructions", profile.vector_instructions);
  text += metric(profile, "scalar_instructions", profile.scalar_instructions);
  text += metric(profile, "spills", profile.spills);
  text += metric(profile, "cycles_per_iteration", profile.cycles_per_iteration);
  text += metric(profile, "bottleneck", profile.bottleneck);
  text += counters_text(profile);
  if (!profile.hot_loop.empty()) text += fmt::format("\nIt is in {}:\n", profile.function);
  for (const std::string& line : profile.hot_loop) text += line + "\n";
  if (!profile.compiler_remarks.empty()) text += "\nThe compiler's remarks:\n";
  for (const std::string& line : profile.compiler_remarks) text += line + "\n";
  return model::without_paths(text);
}

Result<KernelProfile> profile_accepted(Evaluator& evaluator, const std::string& source) {
  KernelProfile profile = TRY(evaluator.profile(source));
  Result<EventCounts> counts = evaluator.count_events(source);
  if (counts) {
    add(std::move(*counts), profile);
  } else if (counts.error().code != Errc::unavailable) {
    return counts.error();
  }
  return profile;
}

Result<std::string> compile_text(Evaluator& evaluator, const std::string& source) {
  std::string failure = TRY(build_failure(evaluator, source));
  return failure.empty() ? "It compiles, and links nothing that it may not.\n" : failure;
}

Result<std::string> profile_text(Evaluator& evaluator, const std::string& source) {
  std::string failure = TRY(build_failure(evaluator, source));
  if (!failure.empty()) return failure;
  const Result<KernelProfile> profile = evaluator.profile(source);
  if (profile) return "It compiles.\n" + text_of(*profile);
  const Errc code = profile.error().code;
  if (code != Errc::unavailable && code != Errc::refused) return profile.error();
  return fmt::format("It compiles, but it cannot be looked into: {}.\n",
                     model::without_paths(profile.error().message));
}

IndexEntry entry_of(const Document& document, std::string text) {
  return {.path = document.path,
          .title = document.title,
          .topics = fmt::format("{}", fmt::join(document.topics, ", ")),
          .text = std::move(text)};
}

Result<Found> found_by(Library& library, const std::string& target, const llm::ToolCall& call) {
  Found found{.search = call, .entries = {}, .note = {}};
  if (call.tool == llm::Tool::search) {
    const knowledge::Query query{
        .text = call.what, .targets = {target}, .bound = std::nullopt, .limit = kEntriesMax};
    for (knowledge::Hit& hit : TRY(library.search(query))) {
      found.entries.push_back(entry_of(*hit.document, std::move(hit.snippet)));
    }
    return found;
  }
  if (call.by == llm::FindBy::path) {
    for (const Document* document : library.find_path(call.what, kEntriesMax)) {
      found.entries.push_back(entry_of(*document, document->lead()));
    }
    return found;
  }
  Result<std::vector<knowledge::FoundLine>> lines =
      lines_of(library, call, kLinesForEntriesMax);
  if (!lines && lines.error().code != Errc::invalid) return lines.error();
  if (!lines) {
    found.note = lines.error().message;
    return found;
  }
  for (const knowledge::FoundLine& line : *lines) {  // the first line of each document
    const bool more = static_cast<int64_t>(found.entries.size()) < kEntriesMax;
    const std::string& path = line.document->path;
    const bool has = !found.entries.empty() && found.entries.back().path == path;
    if (more && !has) found.entries.push_back(entry_of(*line.document, line.text));
  }
  return found;
}

Result<std::string> knowledge_text(Library& library, const std::string& target,
                                   const llm::ToolCall& call) {
  switch (call.tool) {
    case llm::Tool::search:
      return search_text(library, target, call.what);
    case llm::Tool::find:
      return find_text(library, call);
    case llm::Tool::read:
      return read_text(library, call.what);
    case llm::Tool::compile:
    case llm::Tool::profile:
      break;
  }
  KE_ASSERT(false && "no tool of the knowledge base");
  return std::string();
}

}  // namespace ke::app
