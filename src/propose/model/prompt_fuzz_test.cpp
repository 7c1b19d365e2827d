// SPDX-License-Identifier: Apache-2.0
//
// Hostile sources, documents, notes and compiler output: the prompt keeps its headings, in order,
// and nothing of theirs stands outside a fence as one.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/rng.hpp"
#include "llm/answer_blocks.hpp"
#include "llm/utf8.hpp"
#include "propose/model/task.hpp"
#include "propose/model/testing.hpp"

namespace ke::model {
namespace {

const std::vector<std::string>& pieces() {
  static const std::vector<std::string> all{
      "```",  "\n```\n", "````",   "\n``````````\n", "~~~\n",   "\n# Request\n", "\n# Evil\n",
      "{{",   "}}",      "{{source}}", "\n\n",       "\r",      "\r\n# Evil\r\n", "\n    ```\n",
      "<<<<<<< SEARCH\n", "# ", "\n",  "\xFF",       "\xE2\x80\xA8# Evil", "ke_launch", "x",
      std::string(1, '\0'), "\x1B[2J", "/usr/lib/x", "`", "\n- ", "---\n", "\n===\n"};
  return all;
}

std::string hostile(Rng& rng) {
  std::string text;
  for (int64_t i = rng.below(30); i >= 0; --i) text += rng.pick(pieces());
  return text;
}

class Library final : public GroundSource {
 public:
  std::vector<PromptDocument> all;
  Result<std::optional<KernelProfile>> profile(const NodeRow&) override {
    return std::optional<KernelProfile>();
  }
  Result<std::vector<PromptDocument>> documents(const ProposalContext&, const Diagnosis&,
                                           int64_t) override {
    return all;
  }
  Result<std::string> use(const llm::ToolCall&) override { return std::string(); }
};

// Headings of the prompt's own level, outside of fences.
std::vector<std::string> headings(std::string_view text) {
  llm::SegmentScanner scanner;
  while (!text.empty()) scanner.take(llm::next_line(text));
  scanner.finish();
  std::vector<std::string> found;
  for (const llm::Segment& segment : scanner.segments()) {
    EXPECT_TRUE(segment.complete) << "every fence is closed";
    if (segment.fenced) continue;
    std::string_view rest = segment.text;
    while (!rest.empty()) {
      const std::string_view line = llm::next_line(rest);
      if (line.starts_with("# ")) found.emplace_back(line.substr(2, line.find(':') - 2));
    }
  }
  return found;
}

class PromptFuzz : public testing_support::History {};

TEST_F(PromptFuzz, HostileTextCannotBreakTheStructure) {
  const char* wanted = std::getenv("KE_FUZZ_SEED");
  const uint64_t first = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 1;
  const uint64_t last = wanted != nullptr ? first : 150;
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(testing::Message() << "KE_FUZZ_SEED=" << seed);
    Rng rng(seed);
    problem_.name = hostile(rng);
    problem_.inputs[0].name = hostile(rng);
    machine_.cpu = hostile(rng);
    const NodeId parent =
        add({.source = hostile(rng) + "\nint ke_launch();\n",
             .note = hostile(rng),
             .evaluation = rejected(Verdict::compile_error, hostile(rng),
                                    hostile(rng) + "\nerror: " + hostile(rng) + "\n")});
    const NodeId other =
        add({.source = hostile(rng) + ".", .note = hostile(rng), .evaluation = accepted(1.1)});
    profile_ = KernelProfile{.bottleneck = hostile(rng),
                             .function = hostile(rng),
                             .hot_loop = {hostile(rng), hostile(rng)},
                             .compiler_remarks = {hostile(rng)},
                             .missing = {{hostile(rng), hostile(rng)}}};
    Library library;
    library.all = {{hostile(rng), hostile(rng), hostile(rng), hostile(rng)},
                         {hostile(rng), hostile(rng), hostile(rng), hostile(rng)}};
    const auto made = make_task(context(NodeKind::cross, {parent, other}), ModelStyle::source,
                                {.ground = &library});
    ASSERT_TRUE(made) << made.error().to_string();
    const llm::CompletionRequest& request = (*made)->request;
    EXPECT_TRUE(llm::is_utf8(llm::plain_text(request)));
    EXPECT_EQ(headings(request.stable),
              (std::vector<std::string>{"Role", "Kernel contract", "What the judge demands",
                                        "Hardware", "How to answer", "Tools"}));
    EXPECT_EQ(headings(request.messages[0].text),
              (std::vector<std::string>{"Problem", "What was tried", "Diagnosis", "Profile",
                                        "Documents", "Kernel to start from", "Second kernel",
                                        "Request"}));
    const llm::CompletionRequest next = follow_up(**made, hostile(rng), hostile(rng));
    EXPECT_TRUE(llm::is_utf8(llm::plain_text(next)));
    ToolUse use;
    use.call.what = hostile(rng);
    use.result = tool_text(hostile(rng));
    const llm::CompletionRequest tool = go_on(**made, hostile(rng), use, 1);
    EXPECT_TRUE(llm::is_utf8(llm::plain_text(tool)));
    EXPECT_EQ(headings(tool.messages[2].text), std::vector<std::string>());
  }
}

}  // namespace
}  // namespace ke::model
