// SPDX-License-Identifier: Apache-2.0
#include "propose/model/deep_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json.hpp"
#include "embedded/ke_prompts.hpp"
#include "llm/answer_json.hpp"
#include "propose/model/prompt.hpp"
#include "propose/model/text.hpp"

namespace ke {
namespace {

constexpr size_t kDocumentsMax = 6;
constexpr size_t kSearchesMax = 4;
constexpr size_t kReasonBytesMax = 300;
constexpr size_t kPathBytesMax = 160;
constexpr size_t kTitleBytesMax = 120;
constexpr size_t kEntryTextBytesMax = 300;

std::string entry_lines(const std::vector<IndexEntry>& entries) {
  std::string text;
  for (const IndexEntry& entry : entries) {
    text += fmt::format("{}: {}", model::one_line(entry.path, kPathBytesMax),
                        model::one_line(entry.title, kTitleBytesMax));
    const std::string topics = model::one_line(entry.topics, kTitleBytesMax);
    if (!topics.empty()) text += fmt::format(" [{}]", topics);
    const std::string more = model::one_line(entry.text, kEntryTextBytesMax);
    text += more.empty() ? "\n" : fmt::format("\n    {}\n", more);
  }
  return text;
}

std::string found_text(const std::vector<Found>& found) {
  std::string text;
  for (const Found& one : found) {
    std::string lines = entry_lines(one.entries);
    if (!one.note.empty()) lines += model::one_line(one.note, kEntryTextBytesMax) + "\n";
    if (lines.empty()) lines = "Nothing was found.\n";
    const std::string_view kind = one.search.tool == llm::Tool::search ? "query"
                                  : one.search.by == llm::FindBy::text ? "string"
                                  : one.search.by == llm::FindBy::path ? "name"
                                                                       : "regex";
    text += fmt::format("{}{} {}:\n{}", text.empty() ? "" : "\n", kind,
                        model::one_line(one.search.what, kTitleBytesMax), lines);
  }
  return text;
}

Result<llm::ToolCall> search_from(const Json& json) {
  Fields fields = TRY(Fields::of(json, "a search"));
  llm::ToolCall call;
  int given = 0;
  const auto take = [&](const char* key, llm::Tool tool, llm::FindBy by) -> Result<void> {
    if (fields.find(key) == nullptr) return {};
    ++given;
    call = {.tool = tool, .by = by, .what = TRY(llm::line_field(fields, key)), .source = {}};
    return {};
  };
  TRY(take("query", llm::Tool::search, llm::FindBy::text));
  TRY(take("string", llm::Tool::find, llm::FindBy::text));
  TRY(take("regex", llm::Tool::find, llm::FindBy::regex));
  TRY(take("name", llm::Tool::find, llm::FindBy::path));
  if (given != 1 || !fields.finish()) {
    return Error{Errc::invalid, "a search has one of query, string, regex and name, and nothing "
                                "else"};
  }
  return call;
}

Result<ChosenDocument> choice_from(const Json& json, const std::vector<std::string>& shown) {
  Fields fields = TRY(Fields::of(json, "a document"));
  ChosenDocument chosen{.path = TRY(llm::line_field(fields, "path")), .reason = {}};
  const std::string reason = TRY(llm::line_field(fields, "reason"));
  if (reason.size() > kReasonBytesMax) {
    return Error{Errc::invalid, fmt::format("a reason has {} bytes, and {} are allowed",
                                            reason.size(), kReasonBytesMax)};
  }
  chosen.reason = model::one_line(reason, kReasonBytesMax);
  if (!fields.finish()) {
    return Error{Errc::invalid, "a document has path and reason, and nothing else"};
  }
  if (std::ranges::find(shown, chosen.path) == shown.end()) {
    return Error{Errc::invalid, fmt::format("'{}' is no document that you were shown",
                                            model::one_line(chosen.path, kPathBytesMax))};
  }
  return chosen;
}

// A list of at most so many, each read by `read`.
template <class T, class Read>
Result<std::vector<T>> list_from(const Json& list, const char* key, size_t count_max, Read read) {
  if (!list.is_array() || list.size() > count_max) {
    return Error{Errc::invalid,
                 fmt::format("'{}' is no list of at most {} objects", key, count_max)};
  }
  std::vector<T> all;
  for (const Json& one : list) {
    all.push_back(TRY(read(one)));
  }
  return all;
}

Result<ReaderAnswer> answer_from(const Json& json, const std::vector<std::string>& shown) {
  Fields fields = TRY(Fields::of(json, "the choice"));
  const Json* documents = fields.find("documents");
  const Json* searches = fields.find("searches");
  if ((documents == nullptr) == (searches == nullptr) || !fields.finish()) {
    return Error{Errc::invalid, "it has either documents or searches, and nothing else"};
  }
  ReaderAnswer answer;
  if (documents != nullptr) {
    answer.documents = TRY(list_from<ChosenDocument>(
        *documents, "documents", kDocumentsMax,
        [&](const Json& one) { return choice_from(one, shown); }));
    std::set<std::string> seen;  // the first mention of a document counts
    std::erase_if(*answer.documents,
                  [&](const ChosenDocument& one) { return !seen.insert(one.path).second; });
    return answer;
  }
  answer.searches =
      TRY(list_from<llm::ToolCall>(*searches, "searches", kSearchesMax, search_from));
  if (answer.searches.empty()) return Error{Errc::invalid, "'searches' names none"};
  return answer;
}

}  // namespace

Result<std::optional<ModelTask>> make_reader_task(const ProposalContext& context, ModelStyle style,
                                                  const PromptOptions& options) {
  ModelTask task{.style = style,
                 .agent = Agent::deep_search,
                 .kind = context.kind,
                 .memory = context.memory};
  if (options.ground == nullptr) return std::optional<ModelTask>();
  const bool advised = context.advice != nullptr && context.advice->diagnosis;
  task.diagnosis = advised ? *context.advice->diagnosis : TRY(diagnose(context));
  task.ground.shown = TRY(options.ground->index(context, task.diagnosis));
  if (task.ground.shown.empty()) return std::optional<ModelTask>();
  if (advised) task.ground.diagnosis = task.diagnosis;
  model::Material material;
  const std::string rounds = fmt::format("{}", kSearchRoundsMax);
  material.stable = fmt::format("{}\n{}", embedded::role_search_md,
                                model::fill(embedded::answer_search_md, {{"rounds", rounds}}));
  material.problem = model::problem_section(context);
  material.diagnosis = advised ? model::diagnosis_by_model_section(task.diagnosis)
                               : model::diagnosis_section(task.diagnosis);
  material.base = model::fill(embedded::documents_shown_md,
                              {{"entries", model::fenced(entry_lines(task.ground.shown))}});
  material.request = embedded::request_search_md;
  model::Assembled assembled = TRY(model::assemble(material, options));
  task.request.stable = std::move(assembled.stable);
  task.request.messages = {{llm::Role::user, std::move(assembled.message)}};
  task.contract.sources = false;
  return std::optional<ModelTask>(std::move(task));
}

tl::expected<ReaderAnswer, llm::AnswerProblem> read_choice(std::string_view answer,
                                                           llm::FinishReason finish,
                                                           const std::vector<std::string>& shown) {
  const llm::JsonResult json = llm::parse_json_answer(answer, finish, "the choice");
  if (!json) return tl::make_unexpected(json.error());
  Result<ReaderAnswer> read = answer_from(*json, shown);
  if (read) return std::move(*read);
  return tl::make_unexpected(
      llm::AnswerProblem{llm::AnswerFault::bad_fields,
                         fmt::format("The choice cannot be used: {}.", read.error().message)});
}

llm::CompletionRequest go_on_reading(const ModelTask& task, std::string_view answer,
                                     const std::vector<Found>& found, int left) {
  const std::string next =
      left > 0 ? fmt::format("You may search {} more time{}, or choose.", left,
                             left == 1 ? "" : "s")
               : std::string("You cannot search again: choose.");
  return model::go_on_with(task.request, answer,
                           model::fill(embedded::search_result_md,
                                       {{"found", model::fenced(found_text(found))},
                                        {"left", next}}));
}

}  // namespace ke
