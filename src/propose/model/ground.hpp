// SPDX-License-Identifier: Apache-2.0
//
// What a prompt draws on besides the graph: the profile of its base by tools, and documents by
// retrieval; and, as the conversation goes on, what the tools gave that the model asked for. A run
// keeps with every prompt what it got (PromptRow::ground), so that a replay makes the same prompt
// without the tools and whatever the documents say by then.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "domain/experience.hpp"
#include "domain/kernel_profile.hpp"
#include "llm/tool_call.hpp"
#include "propose/model/advice.hpp"

namespace ke {

struct ProposalContext;

// A document of the knowledge base that goes into a prompt.
struct PromptDocument {
  std::string path;    // "guidance/row-reductions.md"
  std::string title;
  std::string text;    // without front matter; may be cut
  std::string reason;  // why it was chosen
  bool operator==(const PromptDocument&) const = default;
};

// A line of the index: what can be known of a document without reading it.
struct IndexEntry {
  std::string path;
  std::string title;
  std::string topics;  // "softmax, rows"; may be empty
  std::string text;    // its first paragraph, or what a search found in it
  bool operator==(const IndexEntry&) const = default;
};

struct PromptGround {
  std::optional<KernelProfile> profile;  // of the first parent
  std::vector<PromptDocument> documents;
  std::optional<Diagnosis> diagnosis;  // by a model
  std::vector<IndexEntry> shown;       // to deep search
};

Json encode(const PromptGround& ground);
Result<PromptGround> decode_prompt_ground(const Json& json);

// A tool that an answer asked for, and the text it gave: the ground of the prompt that follows.
struct ToolUse {
  llm::ToolCall call;  // a decoded one is without its source, which the answer holds
  std::string result;
};

Json encode(const ToolUse& use);
Result<ToolUse> decode_tool_use(const Json& json);

// A search that deep search asked for, and what it found: a part of the ground of the prompt that
// follows.
struct Found {
  llm::ToolCall search;  // search or find
  std::vector<IndexEntry> entries;
  std::string note;  // what is wrong with the search; may be empty
  bool operator==(const Found&) const = default;
};

Json encode(const std::vector<Found>& found);
Result<std::vector<Found>> decode_found(const Json& json);

// Where it comes from. Called on the engine's thread; an Error only when the system failed.
class GroundSource {
 public:
  virtual ~GroundSource() = default;
  // Of an accepted node. Nothing when this target's kernels cannot be profiled.
  virtual Result<std::optional<KernelProfile>> profile(const NodeRow& node) = 0;
  // Best first, at most so many tokens in all.
  virtual Result<std::vector<PromptDocument>> documents(const ProposalContext& context,
                                                        const Diagnosis& diagnosis,
                                                        int64_t tokens_max) = 0;
  // The beginning of the index as ranked for the diagnosis, best first: what a model chooses from.
  virtual Result<std::vector<IndexEntry>> index(const ProposalContext& context,
                                                const Diagnosis& diagnosis) = 0;
  virtual Result<Found> look_up(const llm::ToolCall& search) = 0;
  // Nothing when there is no such document. Its reason is left empty.
  virtual Result<std::optional<PromptDocument>> read(const std::string& path) = 0;
  // What the tool says. Whatever is wrong with the call (no such document, a kernel that does not
  // compile) is text for the model too. Nothing of the call's source is executed.
  virtual Result<std::string> use(const llm::ToolCall& call) = 0;
};

}  // namespace ke
