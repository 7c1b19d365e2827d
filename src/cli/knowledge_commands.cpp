// SPDX-License-Identifier: Apache-2.0
//
// `kernelevolve kb`: search, show, add, review.
#include <fmt/format.h>

#include <cstdio>

#include "app/embeddings.hpp"
#include "app/knowledge.hpp"
#include "base/json.hpp"
#include "cli/commands.hpp"
#include "cli/convert.hpp"
#include "cli/results.hpp"

namespace ke::cli {
namespace {

using knowledge::Library;
using What = KnowledgeArguments::What;

constexpr int kSuccess = 0;
constexpr int kNothingFound = 1;

// Documents that could not be read are said on stderr; everything else goes on.
Library open_library(const KnowledgeArguments& arguments,
                     std::unique_ptr<knowledge::Vectorizer> vectorizer = nullptr) {
  knowledge::Catalogue catalogue = app::load_knowledge(arguments.workspace);
  for (const std::string& warning : catalogue.warnings()) {
    fmt::print(stderr, "skipped: {}\n", warning);
  }
  return Library(std::move(catalogue), std::move(vectorizer));
}

template <class Found>
int show_found(const std::vector<Found>& found, bool json,
               std::string (*text)(const std::vector<Found>&)) {
  if (json) {
    Json rows = Json::array();
    for (const Found& one : found) rows.push_back(app::encode(one));
    print(dump_json({{"results", std::move(rows)}}) + "\n");
  } else {
    print(text(found));
  }
  return found.empty() ? kNothingFound : kSuccess;
}

Result<int> search(const KnowledgeArguments& arguments, EventSink& events) {
  if (!arguments.embeddings.empty() && arguments.mode != "words") {
    return Error{Errc::invalid, "--embeddings finds by meaning and --in exactly; leave out one."};
  }
  Library library = open_library(
      arguments, TRY(app::open_vectorizer(arguments.embeddings, arguments.workspace, events)));
  const std::string& text = arguments.text;
  if (arguments.mode == "text") {
    return show_found(library.find_text(text, arguments.limit), arguments.json, app::lines_text);
  }
  if (arguments.mode == "regex") {
    return show_found(TRY(library.find_regex(text, arguments.limit)), arguments.json,
                      app::lines_text);
  }
  std::vector<knowledge::Hit> hits;
  if (arguments.mode == "path") {
    for (const knowledge::Document* document : library.find_path(text, arguments.limit)) {
      hits.push_back({document, 0, ""});
    }
  } else {
    knowledge::Query query{.text = text,
                           .targets = split_commas(arguments.target),
                           .bound = parse_enum<knowledge::Bound>(arguments.bound),
                           .limit = arguments.limit};
    hits = TRY(library.find(query));
  }
  return show_found(hits, arguments.json, app::hits_text);
}

Result<int> show(const KnowledgeArguments& arguments) {
  const Library library = open_library(arguments);
  const knowledge::Document* document = TRY(app::show_document(library, arguments.text));
  if (arguments.json) {
    Json json = app::describe(*document);
    json["text"] = document->text;
    print(dump_json(json) + "\n");
  } else {
    print(document->text);
  }
  return kSuccess;
}

Result<int> add(const KnowledgeArguments& arguments) {
  const auto path = TRY(app::add_document(arguments.text, arguments.workspace));
  print(arguments.json ? dump_json({{"path", path.string()}}) + "\n" : path.string() + "\n");
  return kSuccess;
}

Result<int> review(const KnowledgeArguments& arguments) {
  using knowledge::SkillStatus;
  if (!arguments.accept.empty()) {
    TRY(app::decide_skill(arguments.accept, SkillStatus::accepted, arguments.workspace));
  }
  if (!arguments.reject.empty()) {
    TRY(app::decide_skill(arguments.reject, SkillStatus::rejected, arguments.workspace));
  }
  const Library library = open_library(arguments);
  const auto skills = app::proposed_skills(library.catalogue());
  if (arguments.json) {
    Json rows = Json::array();
    for (const knowledge::Document* skill : skills) {
      Json row = app::describe(*skill);
      row["id"] = app::id_of_skill(*skill);
      rows.push_back(std::move(row));
    }
    print(dump_json({{"proposed", std::move(rows)}}) + "\n");
  } else {
    print(app::skills_text(skills));
  }
  return kSuccess;
}

}  // namespace

Result<int> run_command(const KnowledgeArguments& arguments, const Environment& environment) {
  switch (arguments.what) {
    case What::search:
      return search(arguments, environment.events);
    case What::show:
      return show(arguments);
    case What::add:
      return add(arguments);
    case What::review:
      return review(arguments);
  }
  return kSuccess;
}

}  // namespace ke::cli
