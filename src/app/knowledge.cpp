// SPDX-License-Identifier: Apache-2.0
#include "app/knowledge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.hpp"
#include "knowledge/skill.hpp"
#include "os/file_system.hpp"

namespace ke::app {
namespace {

namespace fs = std::filesystem;
using knowledge::Document;
using knowledge::SkillStatus;

constexpr int64_t kSuggestionsMax = 3;

// One line a document: what it is for, and for a lesson where it was learnt.
std::string for_whom(const Document& document) {
  std::vector<std::string_view> bounds;
  for (const knowledge::Bound bound : document.bounds) bounds.push_back(enum_name(bound));
  std::string text = fmt::format("for {}", fmt::join(document.targets, ", "));
  if (!bounds.empty()) text += fmt::format("; about {}", fmt::join(bounds, ", "));
  if (document.origin != knowledge::kBundled) text += "; from " + document.origin;
  return text;
}

std::string provenance(const Document& document) {
  std::string text;
  if (!document.skill) return text;
  for (const std::string& one : document.skill->evidence) {
    text += fmt::format("    learnt from {}\n", one);
  }
  return text;
}

}  // namespace

fs::path knowledge_folder(const fs::path& workspace) { return workspace / "knowledge"; }

knowledge::Catalogue load_knowledge(const fs::path& workspace) {
  const fs::path folders[] = {knowledge_folder(workspace)};
  return knowledge::Catalogue::load(folders);
}

Result<const Document*> show_document(const knowledge::Library& library, const std::string& path) {
  if (const Document* document = library.catalogue().find(path)) return document;
  std::vector<std::string> close;
  for (const Document* one : library.find_path(fs::path(path).stem().string(), kSuggestionsMax)) {
    close.push_back(one->path);
  }
  return Error{Errc::not_found,
               close.empty()
                   ? fmt::format("there is no document {}; `kernelevolve kb search WORDS` finds "
                                 "them, `kb show index.md` lists them.",
                                 path)
                   : fmt::format("there is no document {}; did you mean {}?", path,
                                 fmt::join(close, " or "))};
}

Result<fs::path> add_document(const fs::path& file, const fs::path& workspace) {
  const std::string name = file.filename().string();
  if (file.extension() != ".md") {
    return Error{Errc::invalid,
                 fmt::format("{} is no Markdown document; its name must end in .md.",
                             file.string())};
  }
  const std::string text =
      TRY(os::read_file(file, knowledge::kDocumentBytesMax).context("the document"));
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  TRY(knowledge::parse_document(name, text, folder));
  const fs::path target = knowledge_folder(workspace) / name;
  if (os::exists(target)) {
    if (TRY(os::read_file(target, knowledge::kDocumentBytesMax)) == text) return target;
    return Error{Errc::conflict,
                 fmt::format("{} exists and differs; remove it, or give the new file another name.",
                             target.string())};
  }
  TRY(os::make_directories(target.parent_path()).context("the workspace's documents"));
  TRY(os::write_file_atomically(target, text).context("the document"));
  return target;
}

std::vector<const Document*> proposed_skills(const knowledge::Catalogue& catalogue) {
  std::vector<const Document*> skills;
  for (const Document& document : catalogue.documents()) {
    if (document.skill && document.skill->status == SkillStatus::proposed) {
      skills.push_back(&document);
    }
  }
  return skills;
}

std::string id_of_skill(const Document& document) {
  return fs::path(document.path).stem().string();
}

Result<void> decide_skill(const std::string& id, SkillStatus status, const fs::path& workspace) {
  const std::string path = knowledge::skill_path(id);
  const fs::path folder = knowledge_folder(workspace);
  const bool is_name = !id.empty() && id.find('/') == std::string::npos;
  if (!is_name || !os::exists(folder / path)) {
    return Error{Errc::not_found,
                 fmt::format("there is no skill '{}' in {}; `kernelevolve kb review` lists them.",
                             id, (folder / "skills").string())};
  }
  const std::string text =
      TRY(os::read_file(folder / path, knowledge::kDocumentBytesMax).context("the skill"));
  const Document document = TRY(knowledge::parse_document(path, text, folder.string()));
  return os::write_file_atomically(folder / path, knowledge::with_status(document, status))
      .context("the skill");
}

// --- Text and JSON ------------------------------------------------------------------------------

std::string hits_text(const std::vector<knowledge::Hit>& hits) {
  if (hits.empty()) return "nothing found\n";
  std::string text;
  for (const knowledge::Hit& hit : hits) {
    const Document& document = *hit.document;
    text += fmt::format("{}\n    {}\n    {}\n", document.path, document.title, for_whom(document));
    text += provenance(document);
    if (!hit.snippet.empty()) text += fmt::format("    {}\n", hit.snippet);
  }
  return text;
}

std::string lines_text(const std::vector<knowledge::FoundLine>& lines) {
  if (lines.empty()) return "nothing found\n";
  std::string text;
  for (const knowledge::FoundLine& line : lines) {
    text += fmt::format("{}:{}: {}\n", line.document->path, line.line, line.text);
  }
  return text;
}

Json describe(const Document& document) {
  Json bounds = Json::array();
  for (const knowledge::Bound bound : document.bounds) bounds.push_back(enum_name(bound));
  Json json{{"path", document.path},       {"title", document.title},
            {"targets", document.targets}, {"topics", document.topics},
            {"bottleneck", bounds},        {"origin", document.origin}};
  if (document.skill) {
    json["status"] = enum_name(document.skill->status);
    json["evidence"] = document.skill->evidence;
  }
  return json;
}

Json encode(const knowledge::Hit& hit) {
  Json json = describe(*hit.document);
  json["score"] = hit.score;
  json["snippet"] = hit.snippet;
  return json;
}

Json encode(const knowledge::FoundLine& line) {
  return {{"path", line.document->path}, {"line", line.line}, {"text", line.text}};
}

std::string skills_text(const std::vector<const Document*>& skills) {
  if (skills.empty()) return "no skill waits for a decision\n";
  std::string text;
  for (const Document* skill : skills) {
    text += fmt::format("{}\n    {}\n{}", id_of_skill(*skill), skill->title, provenance(*skill));
  }
  text += "\n`kernelevolve kb review --accept ID` lets searches find it, `--reject ID` never.\n";
  return text;
}

}  // namespace ke::app
