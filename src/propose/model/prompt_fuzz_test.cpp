// SPDX-License-Identifier: Apache-2.0
//
// Hostile sources, documents, notes and compiler output: the prompt keeps its headings, in order,
// and nothing of theirs stands outside a fence as one.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/rng.hpp"
#include "llm/answer_blocks.hpp"
#include "llm/utf8.hpp"
#include "base/json.hpp"
#include "propose/model/context_memory.hpp"
#include "propose/model/deep_reader.hpp"
#include "propose/model/fake_ground.hpp"
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

class PromptFuzz : public testing_support::History {
 protected:
  // A diagnosis whose entries are hostile but of the sizes that are allowed.
  static Diagnosis hostile_diagnosis(Rng& rng) {
    const auto line = [&] { return Json(hostile(rng).substr(0, 400)); };
    const Json json{{"bound", "memory"},
                    {"evidence", {line(), line()}},
                    {"tried", {line()}},
                    {"directives", {line(), "x"}}};
    const auto read = read_diagnosis("```json\n" + dump_json(json) + "\n```\n",
                                     llm::FinishReason::stop);
    return read ? *read : Diagnosis{.bound = "memory", .directives = {"x"}};
  }

  void expect_advice_keeps_its_structure(ProposalContext asked, GroundSource& library, Rng& rng) {
    const auto memory = make_memory_task(asked, ModelStyle::source, {.ground = &library});
    ASSERT_TRUE(memory) << memory.error().to_string();
    EXPECT_EQ(headings((*memory)->request.stable),
              (std::vector<std::string>{"Role", "How to answer"}));
    EXPECT_EQ(headings((*memory)->request.messages[0].text),
              (std::vector<std::string>{"Problem", "Hardware", "What was tried",
                                        "Diagnosis by rules", "Profile", "Kernel to start from",
                                        "Second kernel", "Request"}));
    const Advice advice{.diagnosis = hostile_diagnosis(rng), .documents = {}, .shown = {}};
    asked.advice = &advice;
    const auto reader = make_reader_task(asked, ModelStyle::source, {.ground = &library});
    ASSERT_TRUE(reader) << reader.error().to_string();
    EXPECT_EQ(headings((*reader)->request.messages[0].text),
              (std::vector<std::string>{"Problem", "Diagnosis", "Documents at hand", "Request"}));
    const llm::CompletionRequest wrong = follow_up(**reader, hostile(rng), hostile(rng));
    EXPECT_TRUE(llm::is_utf8(llm::plain_text(wrong)));
    llm::ToolCall search;
    search.what = hostile(rng);
    const IndexEntry entry{hostile(rng), hostile(rng), hostile(rng), hostile(rng)};
    const Found found{search, {entry}, hostile(rng)};
    const llm::CompletionRequest next = go_on_reading(**reader, hostile(rng), {found}, 1);
    EXPECT_TRUE(llm::is_utf8(llm::plain_text(next)));
    EXPECT_EQ(headings(next.messages[2].text), std::vector<std::string>());
    const auto proposal = make_task(asked, ModelStyle::source, {.ground = &library});
    ASSERT_TRUE(proposal) << proposal.error().to_string();
    EXPECT_EQ(headings((*proposal)->request.messages[0].text),
              (std::vector<std::string>{"Problem", "What was tried", "Diagnosis", "Profile",
                                        "Documents", "Kernel to start from", "Second kernel",
                                        "Request"}));
  }
};

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
    testing_support::FakeGround library({{hostile(rng), hostile(rng), hostile(rng), {}},
                                         {hostile(rng), hostile(rng), hostile(rng), {}}});
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
    expect_advice_keeps_its_structure(context(NodeKind::cross, {parent, other}), library, rng);
  }
}

}  // namespace
}  // namespace ke::model
