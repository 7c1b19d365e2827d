// SPDX-License-Identifier: Apache-2.0
#include "mcp/tools.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "app/knowledge.hpp"
#include "base/json.hpp"
#include "domain/kernel_profile.hpp"
#include "knowledge/library.hpp"

namespace ke::mcp {
namespace {

using app::Judged;
using app::SubmissionDesk;
using app::Workbench;

constexpr const char* kInstructions =
    "KernelEvolve judges kernels that replace a PyTorch operator: proved right against the problem "
    "in float64, measured against eager PyTorch and torch.compile. Begin with load_problem; its "
    "contract says how a source is written. verify says whether a source is right, submit screens "
    "and records it (name the node it was made from as parent), bench confirms its time, best "
    "shows the fastest so far. search_knowledge finds how kernels are made fast and right. "
    "Only right kernels count, and only confirmed times.";

constexpr const char* kResourcePrefix = "knowledge:///";
constexpr int64_t kFoundMax = 50;

// --- Arguments ----------------------------------------------------------------------------------

Json text_argument(const char* description) {
  return {{"type", "string"}, {"description", description}};
}

Json schema(Json properties, std::vector<std::string> required) {
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

Json problem_argument() {
  return text_argument("path of the PyTorch file (KernelBench's format: Model, get_inputs, "
                       "get_init_inputs)");
}

Json source_argument() {
  return text_argument("the whole source: one file that defines ke_launch as the contract says");
}

// An integer from 1 up to `most`; absent: `fallback`.
Result<int64_t> number(Fields& fields, const char* key, int64_t most, int64_t fallback) {
  const Json* found = fields.find(key);
  if (!found || found->is_null()) return fallback;
  const bool whole = found->is_number_integer();
  const int64_t value = whole ? found->get<int64_t>() : 0;
  if (value >= 1 && value <= most) return value;
  return Error{Errc::invalid, fmt::format("'{}' is an integer from 1 to {}", key, most)};
}

Result<NodeId> node_argument(Fields& fields, const char* key) {
  return NodeId{TRY(number(fields, key, INT64_MAX, 0))};
}

// --- Answers ------------------------------------------------------------------------------------

ToolAnswer answer_of(const Judged& judged) { return {{}, app::encode(judged)}; }

Result<Json> encode(const GraphReader& graph, const NodeRow& node) {
  Json parents = Json::array();
  for (const NodeId parent : node.parents) parents.push_back(parent.value);
  Json json{{"node", node.id.value},
            {"run", node.run.value},
            {"step", node.step},
            {"kind", enum_name(node.kind)},
            {"proposer", node.proposer},
            {"parents", std::move(parents)},
            {"change", node.note}};
  const auto verdict = TRY(graph.verdict_of(node.id));
  json["verdict"] = verdict ? Json(enum_name(verdict->evaluation.verdict)) : Json();
  json["confirmed"] = verdict && verdict->evaluation.confirmed;
  const auto figure = verdict ? fitness(verdict->evaluation) : std::nullopt;
  json["speedup"] = figure ? Json(*figure) : Json();
  return json;
}

// --- The tools ----------------------------------------------------------------------------------

class Toolbox final : public Backend {
 public:
  Toolbox(Workbench& workbench, std::unique_ptr<knowledge::Vectorizer> vectorizer)
      : workbench_(workbench), vectorizer_(std::move(vectorizer)) {
    add_judging();
    add_looking();
  }

  std::string instructions() const override { return kInstructions; }
  const std::vector<Tool>& tools() const override { return tools_; }
  Result<Work> prepare(const std::string& tool, const Json& arguments) override {
    Fields fields = TRY(Fields::of(arguments, "the argument"));
    Work work = TRY((this->*methods_.at(tool))(fields));
    TRY(fields.finish());
    return work;
  }
  Result<std::vector<Resource>> resources() override;
  Result<std::string> read_resource(const std::string& uri) override;

 private:
  using Method = Result<Work> (Toolbox::*)(Fields&);
  using Judging = Result<Judged> (SubmissionDesk::*)(const std::string&);

  void add(Tool tool, Method method) {
    methods_.emplace(tool.name, method);
    tools_.push_back(std::move(tool));
  }
  void add_judging();
  void add_looking();

  Result<Work> load_problem(Fields& fields);
  Result<Work> verify(Fields& fields) { return judging(fields, &SubmissionDesk::verify); }
  Result<Work> bench(Fields& fields) { return judging(fields, &SubmissionDesk::bench); }
  Result<Work> judging(Fields& fields, Judging method);
  Result<Work> profile(Fields& fields);
  Result<Work> submit(Fields& fields);
  Result<Work> best(Fields& fields);
  Result<Work> lineage(Fields& fields);
  Result<Work> search_knowledge(Fields& fields);
  Result<Work> read_knowledge(Fields& fields);

  // Made when it is first needed; documents that are added later are not seen.
  knowledge::Library& library() {
    if (!library_) {
      library_.emplace(app::load_knowledge(workbench_.folder()), std::move(vectorizer_));
    }
    return *library_;
  }

  Workbench& workbench_;
  std::vector<Tool> tools_;
  std::map<std::string, Method> methods_;
  std::unique_ptr<knowledge::Vectorizer> vectorizer_;  // until the library has it
  std::optional<knowledge::Library> library_;
};

void Toolbox::add_judging() {
  add({"load_problem", "Load a problem",
       "Opens a problem and says what a kernel for it must do: shapes and types, the graph of "
       "operations, the kernel contract, what the judge demands, the physical floor, the baselines "
       "when they were timed already. Starts PyTorch, which takes seconds.",
       schema({{"problem", problem_argument()}}, {"problem"})},
      &Toolbox::load_problem);
  add({"verify", "Verify a kernel",
       "Says whether a source builds and is right, on all input sets. Times nothing and records "
       "nothing.",
       schema({{"problem", problem_argument()}, {"source", source_argument()}},
              {"problem", "source"})},
      &Toolbox::verify);
  add({"bench", "Confirm a kernel's time",
       "Judges a source with fresh seeds, processes and samples against eager PyTorch and "
       "torch.compile. The figures count; a node with the same kernel is confirmed by them. May "
       "take a minute.",
       schema({{"problem", problem_argument()}, {"source", source_argument()}},
              {"problem", "source"}),
       false},
      &Toolbox::bench);
  add({"profile", "Profile a kernel",
       "What the target's tools say about a source without running it: vector instructions, spills "
       "and cycles of the hot loop, the compiler's remarks.",
       schema({{"problem", problem_argument()}, {"source", source_argument()}},
              {"problem", "source"})},
      &Toolbox::profile);
  Json parent{{"type", "integer"},
              {"minimum", 1},
              {"description", "number of the node that this kernel was made from"}};
  add({"submit", "Submit a kernel",
       "Judges a source and records it as a node with its parent. Its times are one unconfirmed "
       "screen. A kernel that is known already, but for comments and layout, is answered from the "
       "graph.",
       schema({{"problem", problem_argument()},
               {"source", source_argument()},
               {"parent", std::move(parent)},
               {"note", text_argument("one line: what was changed and why")}},
              {"problem", "source"}),
       false},
      &Toolbox::submit);
}

void Toolbox::add_looking() {
  add({"best", "The best kernel so far",
       "The fastest right kernel of a problem in this workspace, whoever made it: node, verdict, "
       "times, whether they are confirmed, and the source.",
       schema({{"problem", problem_argument()}}, {"problem"})},
      &Toolbox::best);
  add({"lineage", "Where a kernel comes from", "A node and its ancestors, newest first.",
       schema({{"node", {{"type", "integer"}, {"minimum", 1}, {"description", "its number"}}}},
              {"node"})},
      &Toolbox::lineage);
  Json limit{{"type", "integer"}, {"minimum", 1}, {"maximum", kFoundMax}, {"default", 8}};
  add({"search_knowledge", "Search the knowledge base",
       "Documents on how kernels are made fast and right, best first, for a question, a symptom or "
       "what a profiler said.",
       schema({{"query", text_argument("in plain words")},
               {"target", text_argument("only what holds for it; default: this server's target")},
               {"limit", std::move(limit)}},
              {"query"})},
      &Toolbox::search_knowledge);
  add({"read_knowledge", "Read a document", "One document of the knowledge base, as Markdown.",
       schema({{"path", text_argument("as search_knowledge says it; index.md lists all")}},
              {"path"})},
      &Toolbox::read_knowledge);
}

Result<Work> Toolbox::load_problem(Fields& fields) {
  auto problem = TRY(fields.get<std::string>("problem"));
  return Work([this, problem = std::move(problem)](EventSink& events) -> Result<ToolAnswer> {
    app::ProblemSheet sheet = TRY(workbench_.sheet(problem, events));
    Json data = TRY(parse_json(sheet.json));
    data["contract"] = sheet.contract;
    return ToolAnswer{{std::move(sheet.problem), std::move(sheet.contract), std::move(sheet.json)},
                      std::move(data)};
  });
}

Result<Work> Toolbox::judging(Fields& fields, Judging method) {
  auto problem = TRY(fields.get<std::string>("problem"));
  auto source = TRY(fields.get<std::string>("source"));
  return Work([this, method, problem = std::move(problem), source = std::move(source)](
                  EventSink& events) -> Result<ToolAnswer> {
    SubmissionDesk* desk = TRY(workbench_.desk(problem, events));
    return answer_of(TRY((desk->*method)(source)));
  });
}

Result<Work> Toolbox::profile(Fields& fields) {
  auto problem = TRY(fields.get<std::string>("problem"));
  auto source = TRY(fields.get<std::string>("source"));
  return Work([this, problem = std::move(problem), source = std::move(source)](
                  EventSink& events) -> Result<ToolAnswer> {
    SubmissionDesk* desk = TRY(workbench_.desk(problem, events));
    return ToolAnswer{{}, ke::encode(TRY(desk->profile(source)))};
  });
}

Result<Work> Toolbox::submit(Fields& fields) {
  auto problem = TRY(fields.get<std::string>("problem"));
  app::Submission submission{.source = TRY(fields.get<std::string>("source")),
                             .parent = TRY(node_argument(fields, "parent")),
                             .note = TRY(fields.get_or<std::string>("note", ""))};
  return Work([this, problem = std::move(problem), submission = std::move(submission)](
                  EventSink& events) -> Result<ToolAnswer> {
    SubmissionDesk* desk = TRY(workbench_.desk(problem, events));
    return answer_of(TRY(desk->submit(submission)));
  });
}

Result<Work> Toolbox::best(Fields& fields) {
  auto problem = TRY(fields.get<std::string>("problem"));
  return Work([this, problem = std::move(problem)](EventSink& events) -> Result<ToolAnswer> {
    SubmissionDesk* desk = TRY(workbench_.desk(problem, events));
    const std::optional<Judged> found = TRY(desk->best());
    if (!found) return ToolAnswer{{"No kernel is accepted yet."}, {{"found", false}}};
    const GraphReader graph = TRY(workbench_.graph());
    const NodeRow node = TRY(graph.node(found->node));
    Json data = app::encode(*found);
    data["found"] = true;
    data["run"] = node.run.value;
    data["proposer"] = node.proposer;
    data["change"] = node.note;
    ToolAnswer answer{{dump_json(data), node.source}, std::move(data)};
    answer.data["source"] = node.source;
    return answer;
  });
}

Result<Work> Toolbox::lineage(Fields& fields) {
  const NodeId node = TRY(node_argument(fields, "node"));
  if (!node) return Error{Errc::invalid, "lineage needs node, the number of one"};
  return Work([this, node](EventSink&) -> Result<ToolAnswer> {
    const GraphReader graph = TRY(workbench_.graph());
    Json nodes = Json::array();
    for (const NodeRow& row : TRY(graph.lineage(node))) nodes.push_back(TRY(encode(graph, row)));
    return ToolAnswer{{TRY(lineage_text(graph, node))}, {{"nodes", std::move(nodes)}}};
  });
}

Result<Work> Toolbox::search_knowledge(Fields& fields) {
  knowledge::Query query;
  query.text = TRY(fields.get<std::string>("query"));
  query.targets = {TRY(fields.get_or<std::string>("target", workbench_.target()))};
  query.limit = TRY(number(fields, "limit", kFoundMax, query.limit));
  return Work([this, query = std::move(query)](EventSink&) -> Result<ToolAnswer> {
    const std::vector<knowledge::Hit> hits = TRY(library().find(query));
    Json found = Json::array();
    for (const knowledge::Hit& hit : hits) found.push_back(app::encode(hit));
    return ToolAnswer{{app::hits_text(hits)}, {{"results", std::move(found)}}};
  });
}

Result<Work> Toolbox::read_knowledge(Fields& fields) {
  auto path = TRY(fields.get<std::string>("path"));
  return Work([this, path = std::move(path)](EventSink&) -> Result<ToolAnswer> {
    const knowledge::Document* document = TRY(app::show_document(library(), path));
    Json data = app::describe(*document);
    data["text"] = document->text;
    return ToolAnswer{{document->text}, std::move(data)};
  });
}

// --- Resources ----------------------------------------------------------------------------------

Result<std::vector<Resource>> Toolbox::resources() {
  std::vector<Resource> found;
  for (const knowledge::Document& document : library().catalogue().documents()) {
    if (!document.searchable()) continue;
    found.push_back({kResourcePrefix + document.path, document.path, document.title});
  }
  return found;
}

Result<std::string> Toolbox::read_resource(const std::string& uri) {
  if (!uri.starts_with(kResourcePrefix)) {
    return Error{Errc::not_found, "there is no such resource; resources/list names them"};
  }
  const std::string path = uri.substr(std::string_view(kResourcePrefix).size());
  return TRY(app::show_document(library(), path))->text;
}

}  // namespace

std::unique_ptr<Backend> make_toolbox(Workbench& workbench,
                                      std::unique_ptr<knowledge::Vectorizer> vectorizer) {
  return std::make_unique<Toolbox>(workbench, std::move(vectorizer));
}

}  // namespace ke::mcp
