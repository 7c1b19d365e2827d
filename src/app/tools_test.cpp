// SPDX-License-Identifier: Apache-2.0
#include "app/tools.hpp"

#include <gtest/gtest.h>

namespace ke::app {
namespace {

using llm::FindBy;
using llm::Tool;

// Builds and sees what it is told to.
class ToldEvaluator final : public Evaluator {
 public:
  Result<Artifact> build(const std::string&) override {
    if (broken) return *broken;
    return Artifact{.built_path = "k.so", .failure = failure};
  }
  Result<Evaluation> judge(const Artifact&, const JudgeOptions&) override {
    ADD_FAILURE() << "a tool has something judged";
    return Evaluation{};
  }
  Result<KernelProfile> profile(const std::string&) override { return seen; }
  Result<EventCounts> count_events(const std::string&) override { return counts; }
  Result<std::vector<std::string>> admission_flags() override { return std::vector<std::string>(); }
  int64_t floor_ns() const override { return 0; }

  std::optional<Error> broken;
  std::optional<Evaluation> failure;
  Result<KernelProfile> seen = KernelProfile{};
  Result<EventCounts> counts = EventCounts{.per_call = {{"cycles", 12345.0}}, .missing = {}};
};

TEST(Tools, CompilingSaysTheVerdictAndWhatTheCompilerSaid) {
  ToldEvaluator evaluator;
  EXPECT_EQ(*compile_text(evaluator, "x"), "It compiles, and links nothing that it may not.\n");
  evaluator.failure = Evaluation{.verdict = Verdict::compile_error,
                                 .detail = "it does not compile",
                                 .diagnostics = "/some/where/kernel.cpp:3:1: error: no such name"};
  for (const auto tool : {compile_text, profile_text}) {
    EXPECT_EQ(*tool(evaluator, "x"),
              "compile_error: it does not compile\nkernel.cpp:3:1: error: no such name");
  }
  evaluator.broken = Error{Errc::unavailable, "the compiler is gone"};
  EXPECT_FALSE(compile_text(evaluator, "x"));
}

TEST(Tools, AProfileIsLinesAndSaysWhatIsUnknownAndWhy) {
  ToldEvaluator evaluator;
  evaluator.seen = KernelProfile{.vector_instructions = 12,
                                 .function = "ke_launch",
                                 .hot_loop = {"vaddps %ymm0, %ymm1, %ymm0"},
                                 .compiler_remarks = {"kernel.cpp:9: loop vectorized"},
                                 .missing = {{"spills", "no stack"}}};
  const std::string text = *profile_text(evaluator, "x");
  const char* lines[] = {"It compiles.\n",         "vector_instructions: 12\n",
                         "spills: unknown, no stack\n", "bottleneck: unknown\n",
                         "It is in ke_launch:\nvaddps", "vectorized\n"};
  for (const char* line : lines) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "in\n" << text;
  }
  evaluator.seen = Error{Errc::unavailable, "there are no tools"};
  EXPECT_EQ(*profile_text(evaluator, "x"),
            "It compiles, but it cannot be looked into: there are no tools.\n");
  evaluator.seen = Error{Errc::internal, "a pipe broke"};
  EXPECT_FALSE(profile_text(evaluator, "x"));
}

// A model asks about sources that nobody has judged; only accepted ones are run to be counted.
TEST(Tools, AreCountedWhenAcceptedAlone) {
  ToldEvaluator evaluator;
  EXPECT_EQ(profile_text(evaluator, "x")->find("Counted"), std::string::npos);
  evaluator.counts->missing = {{"hardware_counters", "a virtual machine"}};
  const std::string text = text_of(*profile_accepted(evaluator, "x"));
  EXPECT_NE(text.find("Counted while it ran, for one call:\ncycles: 12345\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("hardware_counters: unknown, a virtual machine\n"), std::string::npos);
  evaluator.counts = Error{Errc::unavailable, "this judge counts no events"};
  EXPECT_TRUE(profile_accepted(evaluator, "x")->counters.empty());
  evaluator.counts = Error{Errc::internal, "a pipe broke"};
  EXPECT_FALSE(profile_accepted(evaluator, "x"));
}

class KnowledgeTools : public testing::Test {
 protected:
  static std::string page(const std::string& title, const std::string& rest,
                          const std::string& body) {
    return "---\ntitle: " + title + "\n" + rest + "\n---\n" + body + "\n";
  }
  std::string ask(Tool tool, const std::string& what, FindBy by = FindBy::text) {
    return *knowledge_text(library_, "x86", {tool, by, what, {}});
  }

  const std::vector<knowledge::SourceFile> files_ = {
      {"guidance/rows.md",
       page("Row reductions", "targets: [any]\ntopics: [rows]", "Keep partial sums in registers."),
       "bundled"},
      {"gpu/banks.md",
       page("Banks of registers", "targets: [cuda]\ntopics: [banks]", "Sums in shared memory."),
       "bundled"},
      {"skills/new.md",
       page("Sums learnt", "targets: [any]\ntopics: [sums]\nstatus: proposed", "Sums, sums."),
       "/some/folder"}};
  knowledge::Library library_{knowledge::Catalogue::of(files_)};
};

TEST_F(KnowledgeTools, SearchIsForTheTarget) {
  const std::string text = ask(Tool::search, "partial sums of rows");
  EXPECT_EQ(text.find("guidance/rows.md: Row reductions\n"), 0u) << text;
  EXPECT_EQ(text.find("gpu/banks.md"), std::string::npos) << text;
  EXPECT_NE(ask(Tool::search, "zebra").find("Nothing was found"), std::string::npos);
}

TEST_F(KnowledgeTools, FindGivesLinesOrPaths) {
  const std::string line = "guidance/rows.md:6: Keep partial sums in registers.\n";
  EXPECT_EQ(ask(Tool::find, "PARTIAL sums"), line);
  EXPECT_EQ(ask(Tool::find, "partial +sums", FindBy::regex), line);
  EXPECT_EQ(ask(Tool::find, "guid", FindBy::path), "guidance/rows.md: Row reductions\n");
  EXPECT_NE(ask(Tool::find, "(", FindBy::regex).find("regular expression"), std::string::npos);
}

TEST_F(KnowledgeTools, DeepSearchGetsADocumentALineWithWhatWasFoundInIt) {
  const auto find = [&](Tool tool, const std::string& what, FindBy by = FindBy::text) {
    return *found_by(library_, "x86", {tool, by, what, {}});
  };
  const IndexEntry rows{"guidance/rows.md", "Row reductions", "rows",
                        "Keep partial sums in registers."};
  const Found lines = find(Tool::find, "partial +sums", FindBy::regex);
  EXPECT_EQ(lines.entries, std::vector<IndexEntry>{rows});
  EXPECT_EQ(lines.search.what, "partial +sums");
  EXPECT_EQ(find(Tool::find, "guid", FindBy::path).entries, std::vector<IndexEntry>{rows});
  EXPECT_EQ(find(Tool::find, "s").entries.size(), 2u) << "one line a document, no proposed skill";
  const Found searched = find(Tool::search, "partial sums of rows");
  ASSERT_EQ(searched.entries.size(), 1u) << "for the target";
  EXPECT_EQ(searched.entries[0].path, rows.path);
  const Found broken = find(Tool::find, "(", FindBy::regex);
  EXPECT_TRUE(broken.entries.empty());
  EXPECT_NE(broken.note.find("regular expression"), std::string::npos);
}

TEST_F(KnowledgeTools, ReadGivesADocumentWithoutItsFrontMatter) {
  EXPECT_EQ(ask(Tool::read, "guidance/rows.md"), "Keep partial sums in registers.\n");
  for (const char* path : {"../secret", "/etc/passwd", "guidance"}) {
    EXPECT_NE(ask(Tool::read, path).find("There is no document"), std::string::npos);
  }
}

TEST_F(KnowledgeTools, LessonsThatNobodyAcceptedAreNotShown) {
  EXPECT_NE(ask(Tool::read, "skills/new.md").find("There is no document"), std::string::npos);
  EXPECT_EQ(ask(Tool::find, "Sums, sums").find("skills/"), std::string::npos);
  EXPECT_EQ(ask(Tool::find, "skills", FindBy::path).find("new.md:"), std::string::npos);
  EXPECT_EQ(ask(Tool::search, "sums").find("skills/"), std::string::npos);
}

}  // namespace
}  // namespace ke::app
