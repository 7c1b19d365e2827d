// SPDX-License-Identifier: Apache-2.0
#include "propose/model/prompt.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "embedded/ke_prompts.hpp"
#include "propose/model/text.hpp"

namespace ke::model {
namespace {

constexpr size_t kWorthShowing = 256;  // bytes: less of a graph or a document tells nothing
constexpr size_t kFenceBytes = 64;     // of a fence and of the line that says what was cut

int64_t bytes_of_tokens(int64_t tokens) { return 4 * tokens; }

// The parts in the order of the prompt, a blank line between them.
std::string joined(std::initializer_list<std::string_view> sections) {
  std::string text;
  for (std::string_view section : sections) {
    while (section.ends_with('\n')) section.remove_suffix(1);
    if (section.empty()) continue;
    if (!text.empty()) text += "\n\n";
    text += section;
  }
  return text.empty() ? text : text + "\n";
}

// Room that is left for what may be cut.
class Room {
 public:
  explicit Room(int64_t bytes) : left_(bytes) {}
  size_t left() const { return left_ < 0 ? 0 : static_cast<size_t>(left_); }
  bool take(std::string_view section) {
    const auto size = static_cast<int64_t>(section.size()) + 2;
    if (section.empty() || size > left_) return false;
    left_ -= size;
    return true;
  }
  // Something was cut: what matters less gets nothing.
  void close() { left_ = 0; }

 private:
  int64_t left_;
};

std::string graph_section(std::string_view graph) {
  return fill(embedded::problem_graph_md, {{"graph", fenced(graph)}});
}

// The whole graph, as many of its first lines as fit, or nothing.
std::string fitted_graph(const std::string& graph, Room& room) {
  if (graph.empty()) return {};
  std::string section = graph_section(graph);
  if (room.take(section)) return section;
  const size_t around = graph_section("").size() + kFenceBytes;
  const size_t left = room.left();
  room.close();
  if (left < around + kWorthShowing) return {};
  return graph_section(head(graph, left - around));
}

std::string fitted_history(const std::vector<std::string>& attempts, Room& room) {
  std::string list, section;
  for (const std::string& attempt : attempts) {
    list += fmt::format("- {}\n", attempt);
    std::string longer = fill(embedded::history_md, {{"attempts", list}});
    if (longer.size() + 2 > room.left()) {
      room.close();
      return section;
    }
    section = std::move(longer);
  }
  return room.take(section) ? section : std::string();
}

std::string document_text(const PromptDocument& document, std::string_view text) {
  return fill(embedded::document_md, {{"title", one_line(document.title, 120)},
                                      {"path", one_line(document.path, 160)},
                                      {"reason", one_line(document.reason, 240)},
                                      {"text", fenced(text, "markdown")}});
}

std::string fitted_documents(const std::vector<PromptDocument>& documents, size_t bytes_max,
                             std::vector<std::string>& paths) {
  std::string all;
  for (const PromptDocument& document : documents) {
    const size_t used = all.size() + fill(embedded::documents_md, {{"documents", ""}}).size();
    const size_t left = bytes_max > used ? bytes_max - used : 0;
    std::string text = document_text(document, document.text);
    if (text.size() + 1 > left) {
      const size_t around = document_text(document, "").size() + kFenceBytes + 1;
      if (left < around + kWorthShowing) break;
      text = document_text(document, head(document.text, left - around));
      if (text.size() + 1 > left) break;
    }
    all += (all.empty() ? "" : "\n") + text;
    paths.push_back(document.path);
  }
  return all.empty() ? all : fill(embedded::documents_md, {{"documents", all}});
}

}  // namespace

Result<Assembled> assemble(const Material& material, const PromptOptions& options) {
  Assembled result{.stable = material.stable};
  const std::string fixed =
      joined({material.problem, material.problem_source, material.diagnosis, material.base,
              material.request});
  const auto needed = static_cast<int64_t>(material.stable.size() + fixed.size());
  const int64_t spare = bytes_of_tokens(options.tokens_max) - needed;
  Room room(spare);
  const bool graph_needed = material.problem_source.empty() && !material.graph.empty();
  std::string other = room.take(material.other) ? material.other : "";
  std::string graph = fitted_graph(material.graph, room);
  if (graph_needed && graph.empty() && !other.empty()) {  // rather no second parent
    room = Room(spare);
    other.clear();
    graph = fitted_graph(material.graph, room);
  }
  if (spare < 0 || (graph_needed && graph.empty())) {
    return Error{Errc::refused,
                 fmt::format("a prompt needs about {} tokens for the contract, the problem and the "
                             "kernel alone, and {} are allowed: allow more, or ask a model with a "
                             "longer context",
                             (needed + 3) / 4, options.tokens_max)};
  }
  const std::string history = fitted_history(material.attempts, room);
  const std::string profile = room.take(material.profile) ? material.profile : "";
  if (profile.empty() && !material.profile.empty()) room.close();
  const auto documents_max = static_cast<size_t>(bytes_of_tokens(options.documents_tokens_max));
  const std::string documents = fitted_documents(
      material.documents, std::min(documents_max, room.left() < 2 ? 0 : room.left() - 2),
      result.documents);
  result.message = joined({material.problem, material.problem_source, graph, history,
                           material.diagnosis, profile, documents, material.base, other,
                           material.request});
  result.has_other = !other.empty();
  return result;
}

}  // namespace ke::model
