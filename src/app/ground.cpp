// SPDX-License-Identifier: Apache-2.0
#include "app/ground.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "app/knowledge.hpp"
#include "app/tools.hpp"
#include "knowledge/deep_search.hpp"
#include "propose/model/task.hpp"

namespace ke::app {
namespace {

constexpr int64_t kIndexEntries = 16;

// Operations that say what a kernel computes; the rest only moves or shapes.
std::vector<std::string> operations_of(const Problem& problem) {
  std::vector<std::string> operations;
  if (!problem.graph) return operations;
  for (const ir::Node& node : problem.graph->nodes) {
    if (std::ranges::find(operations, node.op) == operations.end()) operations.push_back(node.op);
  }
  return operations;
}

class WorkspaceGround final : public GroundSource {
 public:
  WorkspaceGround(const std::filesystem::path& workspace, std::string target, Evaluator* evaluator,
                  std::unique_ptr<knowledge::Vectorizer> vectorizer)
      : library_(load_knowledge(workspace), std::move(vectorizer)),
        target_(std::move(target)),
        evaluator_(evaluator) {}

  Result<std::optional<KernelProfile>> profile(const NodeRow& node) override {
    if (evaluator_ == nullptr) return std::optional<KernelProfile>();
    const auto known = profiles_.find(node.id);
    if (known != profiles_.end()) return known->second;
    Result<KernelProfile> taken = profile_accepted(*evaluator_, node.source);
    std::optional<KernelProfile> profile;
    if (taken) {
      profile = std::move(*taken);
    } else if (taken.error().code != Errc::unavailable && taken.error().code != Errc::refused) {
      return taken.error();
    }
    return profiles_.emplace(node.id, std::move(profile)).first->second;
  }

  Result<std::vector<PromptDocument>> documents(const ProposalContext& context,
                                                const Diagnosis& diagnosis,
                                                int64_t tokens_max) override {
    std::vector<PromptDocument> documents;
    const knowledge::DeepSearchLimits limits{.tokens_max = tokens_max};
    for (const knowledge::Chosen& one :
         TRY(knowledge::deep_search(library_, question_of(context, diagnosis), limits))) {
      documents.push_back(
          {one.document->path, one.document->title, one.document->body, one.reason});
    }
    return documents;
  }

  Result<std::vector<IndexEntry>> index(const ProposalContext& context,
                                        const Diagnosis& diagnosis) override {
    std::vector<IndexEntry> entries;
    const knowledge::DeepSearchLimits limits{.documents_max = kIndexEntries,
                                             .tokens_max = std::numeric_limits<int64_t>::max()};
    for (const knowledge::Chosen& one :
         TRY(knowledge::deep_search(library_, question_of(context, diagnosis), limits))) {
      entries.push_back(entry_of(*one.document, one.document->lead()));
    }
    return entries;
  }

  Result<Found> look_up(const llm::ToolCall& search) override {
    return found_by(library_, target_, search);
  }

  Result<std::optional<PromptDocument>> read(const std::string& path) override {
    const knowledge::Document* document = library_.catalogue().find(path);
    if (document == nullptr || !document->searchable()) return std::optional<PromptDocument>();
    return std::optional<PromptDocument>({document->path, document->title, document->body, {}});
  }

  Result<std::string> use(const llm::ToolCall& call) override {
    if (!llm::takes_source(call.tool)) return knowledge_text(library_, target_, call);
    if (evaluator_ == nullptr) return std::string("There is no compiler here.\n");
    return call.tool == llm::Tool::compile ? compile_text(*evaluator_, call.source)
                                           : profile_text(*evaluator_, call.source);
  }

 private:
  knowledge::Diagnosis question_of(const ProposalContext& context,
                                   const Diagnosis& diagnosis) const {
    knowledge::Diagnosis question{.target = target_,
                                  .bound = parse_enum<knowledge::Bound>(diagnosis.bound),
                                  .evidence = diagnosis.evidence,
                                  .operations = operations_of(context.problem),
                                  .skeletons = {},
                                  .tried = diagnosis.tried};
    question.evidence.insert(question.evidence.end(), diagnosis.directives.begin(),
                             diagnosis.directives.end());
    return question;
  }

  knowledge::Library library_;
  std::string target_;
  Evaluator* evaluator_;
  std::map<NodeId, std::optional<KernelProfile>> profiles_;
};

}  // namespace

std::unique_ptr<GroundSource> workspace_ground(const std::filesystem::path& workspace,
                                               std::string target, Evaluator* evaluator,
                                               std::unique_ptr<knowledge::Vectorizer> vectorizer) {
  return std::make_unique<WorkspaceGround>(workspace, std::move(target), evaluator,
                                           std::move(vectorizer));
}

}  // namespace ke::app
