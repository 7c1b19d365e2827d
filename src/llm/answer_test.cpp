// SPDX-License-Identifier: Apache-2.0
#include "llm/answer.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/json.hpp"

namespace ke::llm {
namespace {

using enum AnswerFault;

const std::string kKernel =
    "#include \"kernel.h\"\n"
    "constexpr int N = 4;\n"
    "int ke_launch(int n) {\n"
    "  int sum = 0;\n"
    "  for (int i = 0; i < N; ++i) sum += i;\n"
    "  return sum;\n"
    "}\n";

std::string fenced(const std::string& text, const std::string& info = "cpp") {
  return "```" + info + "\n" + text + "```\n";
}

AnswerContract editing() {
  AnswerContract contract;
  contract.base = kKernel;
  return contract;
}

Answer parsed(const std::string& text, const AnswerContract& contract = {},
              FinishReason finish = FinishReason::stop) {
  const AnswerResult result = parse_answer(text, finish, contract);
  EXPECT_TRUE(result) << (result ? "" : result.error().sentence) << "\n" << text;
  return result ? *result : Answer{};
}

AnswerProblem refused(const std::string& text, const AnswerContract& contract = {},
                      FinishReason finish = FinishReason::stop) {
  const AnswerResult result = parse_answer(text, finish, contract);
  EXPECT_FALSE(result) << text;
  return result ? AnswerProblem{} : result.error();
}

AnswerFault fault(const std::string& text, const AnswerContract& contract = {},
                  FinishReason finish = FinishReason::stop) {
  return refused(text, contract, finish).fault;
}

TEST(Answer, TakesAFencedBlockWithAndWithoutALanguage) {
  for (const std::string info : {"cpp", "", "c++ title=\"a\""}) {
    const Answer answer = parsed("**Wider loads.**\n\n" + fenced(kKernel, info) + "Done.\n");
    EXPECT_EQ(answer.source, kKernel);
    EXPECT_EQ(answer.form, AnswerForm::source);
    EXPECT_EQ(answer.note, "Wider loads.");
  }
  EXPECT_EQ(parsed("~~~~\n" + kKernel + "~~~~\n").source, kKernel);
}

TEST(Answer, TakesTheLastCompleteBlockThatHoldsTheEntry) {
  const std::string first = "int ke_launch() { return 1; }\n", second =
                                                                  "int ke_launch() { return 2; }\n";
  EXPECT_EQ(parsed(fenced(first) + "better:\n" + fenced(second) + "run it:\n" +
                   fenced("g++ kernel.cpp\n", "sh"))
                .source,
            second);
  EXPECT_EQ(parsed(fenced(first) + "```cpp\nint ke_launch() {", {}, FinishReason::length).source,
            first);
}

TEST(Answer, TakesABlockInsideAListAndLinesWithCarriageReturns) {
  EXPECT_EQ(parsed("1. So:\n   ```cpp\n   int ke_launch() {\n     return 0; }\n   ```\n").source,
            "int ke_launch() {\n  return 0; }\n");
  EXPECT_EQ(parsed("```cpp\r\nint ke_launch();\r\n```\r\n").source, "int ke_launch();\n");
}

TEST(Answer, AFenceOfFourMarksHoldsOneOfThree) {
  const std::string inner = "// ```\n// text\nint ke_launch();\n```\n";
  EXPECT_EQ(parsed("````cpp\n" + inner + "````\n").source, inner);
}

TEST(Answer, TakesAWholeFileWithoutAFence) {
  EXPECT_EQ(parsed(kKernel).source, kKernel);
  EXPECT_EQ(parsed("\n\n" + kKernel).source, "\n\n" + kKernel);
  EXPECT_EQ(fault("I would write ke_launch with wider loads."), nothing_usable);
}

TEST(Answer, AMissingLastFenceCountsOnlyWhenTheModelWasDone) {
  EXPECT_EQ(parsed("```cpp\n" + kKernel).source, kKernel);
  EXPECT_EQ(fault("```cpp\n" + kKernel, {}, FinishReason::length), cut_off);
  EXPECT_EQ(fault("```cpp\n" + kKernel, {}, FinishReason::stopped_by_us), cut_off);
}

TEST(Answer, AppliesSearchAndReplace) {
  const std::string edit =
      "<<<<<<< SEARCH\nconstexpr int N = 4;\n=======\nconstexpr int N = 8;\n>>>>>>> REPLACE\n";
  std::string expected = kKernel;
  expected.replace(expected.find("N = 4"), 5, "N = 8");
  for (const std::string& text : {edit, fenced(edit), "Make it 8:\n\n" + fenced(edit, "")}) {
    const Answer answer = parsed(text, editing());
    EXPECT_EQ(answer.source, expected);
    EXPECT_EQ(answer.form, AnswerForm::edits);
  }
  const std::string second =
      "<<<<<<< SEARCH\n  return sum;   \n=======\n  return sum + 1;\n>>>>>>> REPLACE\n";
  expected.replace(expected.find("return sum"), 10, "return sum + 1");
  EXPECT_EQ(parsed(fenced(edit) + "and\n" + fenced(second), editing()).source, expected);
}

TEST(Answer, DeletesLinesWhereReplaceIsEmpty) {
  const Answer answer = parsed(
      "<<<<<<< SEARCH\nconstexpr int N = 4;\n=======\n>>>>>>> REPLACE\n", editing());
  EXPECT_EQ(answer.source.find("constexpr"), std::string::npos);
}

TEST(Answer, RefusesEditsWithASentenceForTheNextPrompt) {
  const auto edit = [](const std::string& before, const std::string& after) {
    return "<<<<<<< SEARCH\n" + before + "=======\n" + after + ">>>>>>> REPLACE\n";
  };
  const AnswerProblem missing = refused(edit("constexpr int M = 4;\n", "x\n"), editing());
  EXPECT_EQ(missing.fault, not_found);
  EXPECT_EQ(missing.sentence,
            "The lines to be changed that begin with 'constexpr int M = 4;' are not in the "
            "kernel; copy them exactly as they stand there.");
  AnswerContract twice = editing();
  twice.base += "constexpr int N = 4;\n";
  EXPECT_EQ(fault(edit("constexpr int N = 4;\n", "x\n"), twice), ambiguous);
  EXPECT_EQ(fault(edit("constexpr int N = 4;\n", "constexpr int N = 4;\n"), editing()), unchanged);
  EXPECT_EQ(fault(fenced(kKernel), editing()), unchanged);
  EXPECT_EQ(fault(edit("", "x\n"), editing()), bad_edit);
  EXPECT_EQ(fault(edit("constexpr int N = 4;\n", "x\n")), no_base);
  EXPECT_EQ(fault(edit("int ke_launch(int n) {\n", "int launch(int n) {\n"), editing()),
            lacks_entry);
  EXPECT_EQ(fault("<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", editing()), bad_edit);
  EXPECT_EQ(fault("<<<<<<< SEARCH\nconstexpr int N = 4;\n=======\nx\n", editing()), bad_edit);
  EXPECT_EQ(fault(edit("constexpr int N = 4;\n", "x\n"), editing(), FinishReason::length),
            cut_off);
}

TEST(Answer, AppliesADiffWithWrongLineNumbers) {
  for (const std::string header : {"@@ -2,1 +2,1 @@", "@@ -700,90 +3,1 @@ int x", "@@ ... @@"}) {
    const std::string diff = "--- a/kernel.cpp\n+++ b/kernel.cpp\n" + header +
                             "\n-constexpr int N = 4;\n+constexpr int N = 16;\n int ke_launch(int "
                             "n) {\n";
    const std::string told = "So:\n" + diff + "\nThat is it.";
    for (const std::string& text : {diff, fenced(diff, "diff"), told}) {
      const Answer answer = parsed(text, editing());
      EXPECT_NE(answer.source.find("N = 16;\nint ke_launch"), std::string::npos) << text;
      EXPECT_EQ(answer.form, AnswerForm::diff);
    }
  }
}

TEST(Answer, ADiffIsExactOnItsContext) {
  const std::string diff =
      "@@ -2,2 +2,2 @@\n constexpr int M = 4;\n-int ke_launch(int n) {\n+int ke_launch(int m) {\n";
  EXPECT_EQ(fault(fenced(diff, "diff"), editing()), not_found);
}

TEST(Answer, EmptyLinesOfADiffAreContextOnlyInsideAHunk) {
  AnswerContract contract;
  contract.base = "int a;\n\nint ke_launch();\n\nint b;\n";
  const std::string diff =
      "@@ -1,3 +1,3 @@\n-int a;\n+int c;\n\n int ke_launch();\n\n\n@@ -5 +5 @@\n-int b;\n+int d;\n";
  EXPECT_EQ(parsed(fenced(diff, "diff"), contract).source,
            "int c;\n\nint ke_launch();\n\nint d;\n");
}

TEST(Answer, ADiffTakesThePlaceNearestToItsLine) {
  AnswerContract contract;
  contract.base = "int ke_launch() {\n  f();\n  g();\n  f();\n  g();\n  f();\n}\n";
  const auto at = [&](const std::string& line) {
    const std::string diff = "@@ -" + line + ",1 +1,1 @@\n-  f();\n+  h();\n";
    return parsed(fenced(diff, "diff"), contract).source;
  };
  EXPECT_EQ(at("4"), "int ke_launch() {\n  f();\n  g();\n  h();\n  g();\n  f();\n}\n");
  EXPECT_EQ(at("90"), "int ke_launch() {\n  f();\n  g();\n  f();\n  g();\n  h();\n}\n");
  EXPECT_EQ(fault(fenced("@@ @@\n-  f();\n+  h();\n", "diff"), contract), ambiguous);
}

TEST(Answer, ADiffCanMakeANewFile) {
  const std::string diff =
      "--- /dev/null\n+++ b/k.cpp\n@@ -0,0 +1,2 @@\n+#include <x>\n+int ke_launch();\n";
  EXPECT_EQ(parsed(fenced(diff, "diff")).source, "#include <x>\nint ke_launch();\n");
  EXPECT_EQ(fault(fenced("@@ -3,0 +4,1 @@\n+int x;\n", "diff"), editing()), bad_diff);
}

TEST(Answer, RefusesWhatOnlyLooksLikeADiff) {
  EXPECT_EQ(fault(fenced("@@ -1 +1 @@\nint ke_launch();\n", "diff"), editing()), bad_diff);
  EXPECT_EQ(fault(fenced("+int ke_launch();\n-x\n", "diff"), editing()), bad_diff);
}

TEST(Answer, TheLastKindOfAnswerDecides) {
  const std::string edit =
      "<<<<<<< SEARCH\nconstexpr int N = 4;\n=======\nconstexpr int N = 8;\n>>>>>>> REPLACE\n";
  EXPECT_EQ(parsed(fenced(edit) + fenced("int ke_launch();\n"), editing()).form,
            AnswerForm::source);
  EXPECT_EQ(parsed(fenced("int ke_launch();\n") + fenced(edit), editing()).form,
            AnswerForm::edits);
}

TEST(Answer, TakesAPlanWhereOneIsWelcome) {
  AnswerContract contract;
  contract.sources = false;
  contract.plans = true;
  EXPECT_EQ(parsed(fenced("{\"b\": 1,\n \"a\": [2]}\n", "json"), contract).plan,
            "{\"a\":[2],\"b\":1}");
  EXPECT_EQ(parsed("[{\"op\": \"fuse\"}]", contract).plan, "[{\"op\":\"fuse\"}]");
  EXPECT_EQ(refused(fenced("{\"a\": }\n", "json"), contract).sentence,
            "The plan is not valid JSON near byte 7; write one JSON value and nothing else in its "
            "block.");
  EXPECT_EQ(fault(fenced("{}\n", "json"), contract), bad_json);
  EXPECT_EQ(fault(fenced("12\n", "json"), contract), bad_json);
  EXPECT_EQ(fault(std::string(200'000, '['), contract), bad_json);
  EXPECT_EQ(fault(fenced(std::string(200'000, '[') + std::string(200'000, ']') + "\n"), contract),
            nothing_usable);
  EXPECT_EQ(fault(fenced("int ke_launch();\n"), contract), nothing_usable);
}

TEST(Answer, EveryRefusalIsTypedAndSaysWhatToDo) {
  struct Case {
    std::string text;
    AnswerFault fault;
    FinishReason finish = FinishReason::stop;
  };
  AnswerContract contract = editing();
  contract.source_bytes_max = 1000;
  const Case cases[] = {
      {"", empty},
      {" \n\t\n", empty, FinishReason::length},
      {"I cannot do that.", nothing_usable},
      {"Let me think about", cut_off, FinishReason::length},
      {fenced("int main() {}\n"), lacks_entry},
      {fenced(""), lacks_entry},
      {fenced("// ke_launch\n" + std::string(1000, 'x') + "\n"), too_large},
      {fenced(std::string("int ke_launch();\0\n", 18)), not_text},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text.substr(0, 60));
    const AnswerProblem problem = refused(c.text, contract, c.finish);
    EXPECT_EQ(problem.fault, c.fault) << enum_name(problem.fault);
    EXPECT_GT(problem.sentence.size(), 10U);
  }
}

TEST(Answer, CutsTheNoteBetweenCharacters) {
  std::string prose;
  for (int i = 0; i < 150; ++i) prose += "\xC3\xA9";
  EXPECT_EQ(parsed(prose + "x\n" + fenced(kKernel)).note, prose.substr(0, 200));
  EXPECT_EQ(parsed("a" + prose + "\n" + fenced(kKernel)).note, "a" + prose.substr(0, 198));
}

// --- Tools --------------------------------------------------------------------------------------

AnswerContract with_tools() {
  AnswerContract contract = editing();
  contract.tools = true;
  return contract;
}

std::string tool(const std::string& json) { return fenced(json + "\n", "tool"); }

const std::string kEdit =
    "<<<<<<< SEARCH\nconstexpr int N = 4;\n=======\nconstexpr int N = 8;\n>>>>>>> REPLACE\n";

TEST(AnswerTool, IsReadWithWhatItAsksFor) {
  struct Case {
    std::string json;
    Tool tool;
    std::string what;
    FindBy by = FindBy::text;
  };
  const Case cases[] = {
      {R"({"tool": "search", "query": "wide rows"})", Tool::search, "wide rows"},
      {R"({"tool": "find", "text": "_mm256"})", Tool::find, "_mm256"},
      {R"({"tool": "find", "regex": "a+b"})", Tool::find, "a+b", FindBy::regex},
      {R"({"tool": "find", "path": "guidance/"})", Tool::find, "guidance/", FindBy::path},
      {R"({"path": "guidance/x.md", "tool": "read"})", Tool::read, "guidance/x.md"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.json);
    const Answer answer = parsed("First I look.\n" + tool(c.json), with_tools());
    EXPECT_EQ(answer.form, AnswerForm::tool);
    EXPECT_EQ(answer.note, "First I look.");
    EXPECT_EQ(answer.source, "");
    ASSERT_TRUE(answer.tool);
    EXPECT_EQ(*answer.tool, (ToolCall{c.tool, c.by, c.what, {}}));
    EXPECT_EQ(*parse_tool_call(dump_json(encode(*answer.tool))), *answer.tool);
  }
}

TEST(AnswerTool, TakesTheKernelInAnyFormFromTheSameAnswer) {
  const std::string second = "int ke_launch() { return 2; }\n";
  const std::string compile = tool(R"({"tool": "compile"})");
  const std::string diff = "@@ -2 +2 @@\n-constexpr int N = 4;\n+constexpr int N = 8;\n";
  for (const std::string& text : {compile + fenced(second), fenced(second) + compile}) {
    const Answer answer = parsed(text, with_tools());
    EXPECT_EQ(answer.tool->tool, Tool::compile);
    EXPECT_EQ(answer.tool->source, second);
  }
  for (const std::string& text : {fenced(kEdit), fenced(diff, "diff")}) {
    const Answer answer = parsed(tool(R"({"tool": "profile"})") + text, with_tools());
    EXPECT_EQ(answer.form, AnswerForm::tool);
    EXPECT_NE(answer.tool->source.find("N = 8"), std::string::npos);
  }
  const Answer searched = parsed(tool(R"({"tool": "search", "query": "x"})") + fenced(second),
                                 with_tools());
  EXPECT_EQ(searched.tool->source, "") << "a kernel that the tool does not take is not read";
}

TEST(AnswerTool, IsNeverASourceNorPartOfOne) {
  const std::string call = tool(R"({"tool": "search", "query": "ke_launch <<<<<<< SEARCH @@"})");
  EXPECT_EQ(parsed(call + fenced(kKernel), with_tools()).form, AnswerForm::tool);
  EXPECT_EQ(parsed(fenced(kEdit) + call, with_tools()).form, AnswerForm::tool);
  // Where there are no tools it is a block like any other of another language.
  EXPECT_EQ(parsed(tool(R"({"tool": "compile"})") + fenced(kEdit), editing()).form,
            AnswerForm::edits);
}

TEST(AnswerTool, EveryRefusalIsTypedAndSaysWhatToDo) {
  struct Case {
    std::string text;
    AnswerFault fault;
    std::string word;
    FinishReason finish = FinishReason::stop;
  };
  const std::string search = tool(R"({"tool": "search", "query": "x"})");
  const Case cases[] = {
      {tool("{\"tool\": "), bad_tool, "JSON"},
      {tool("[]"), bad_tool, "not a JSON object"},
      {tool(std::string(3000, '[')), bad_tool, "JSON"},
      {tool(std::string(5000, ' ')), bad_tool, "5001 bytes"},
      {tool(R"({"query": "x"})"), bad_tool, "tool"},
      {tool(R"({"tool": 1})"), bad_tool, "wrong type"},
      {tool(R"({"tool": "run"})"), bad_tool, "compile, profile, search, find, read"},
      {tool(R"({"tool": "search"})"), bad_tool, "query"},
      {tool(R"({"tool": "search", "query": " "})"), bad_tool, "empty"},
      {tool(R"({"tool": "search", "query": "a\nb"})"), bad_tool, "line"},
      {tool(R"({"tool": "search", "query": "a\u0000b"})"), bad_tool, "line"},
      {tool("{\"tool\": \"search\", \"query\": \"" + std::string(600, 'x') + "\"}"), bad_tool,
       "500"},
      {tool(R"({"tool": "search", "query": "x", "limit": 9})"), bad_tool, "field"},
      {tool(R"({"tool": "find"})"), bad_tool, "one of"},
      {tool(R"({"tool": "find", "text": "a", "path": "b"})"), bad_tool, "one of"},
      {search + search, bad_tool, "2 tool blocks"},
      {"```tool\n{\"tool\": \"compile\"", cut_off, "tool block", FinishReason::length},
      {tool(R"({"tool": "compile"})"), nothing_usable, "needs a kernel"},
      {tool(R"({"tool": "compile"})") + fenced("int main() {}\n"), lacks_entry, "ke_launch"},
      {tool(R"({"tool": "profile"})") + fenced(kKernel), unchanged, "needs a kernel"},
      {tool(R"({"tool": "compile"})") + "```cpp\nint ke_launch() {", cut_off, "needs a kernel",
       FinishReason::length},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text.substr(0, 80));
    const AnswerProblem problem = refused(c.text, with_tools(), c.finish);
    EXPECT_EQ(problem.fault, c.fault) << enum_name(problem.fault);
    EXPECT_NE(problem.sentence.find(c.word), std::string::npos) << problem.sentence;
  }
}

TEST(AnswerStream, HandsOverNothingOnceAToolBlockHasBegun) {
  const std::string call = tool(R"({"tool": "compile"})"), source = "int ke_launch(int a);\n";
  for (const size_t step : {size_t{1}, size_t{1000}}) {
    AnswerStream stream(with_tools());
    const std::string text = "So:\n" + call + fenced(source) + "Then.\n";
    for (size_t i = 0; i < text.size(); i += step) {
      EXPECT_FALSE(stream.feed({std::string_view(text).substr(i, step)})) << i;
    }
    EXPECT_EQ(stream.finish(FinishReason::stop)->tool->source, source);
  }
  AnswerStream late(with_tools());
  EXPECT_FALSE(late.feed({fenced(source) + "```tool\n"})) << "in one delta";
  EXPECT_TRUE(late.feed({fenced(source), 1})) << "another attempt begins anew";
}

TEST(AnswerStream, HandsOverABlockWhenItsFenceCloses) {
  const std::string text = "First try.\n" + fenced(kKernel) + "Then more words.\n";
  const size_t closed = text.find("```\nThen") + 4;
  AnswerStream stream{AnswerContract{}};
  for (size_t i = 0; i < text.size(); ++i) {
    const auto answer = stream.feed({std::string_view(text).substr(i, 1)});
    EXPECT_EQ(answer.has_value(), i + 1 == closed) << i;
    EXPECT_EQ(answer ? answer->source : kKernel, kKernel);
    EXPECT_EQ(answer ? answer->note : "First try.", "First try.");
  }
  EXPECT_EQ(stream.finish(FinishReason::stop)->source, kKernel);
}

TEST(AnswerStream, TakesTheLastOfSeveralInOneDelta) {
  AnswerStream stream{AnswerContract{}};
  const std::string text = fenced("int ke_launch(int a);\n") + fenced("int ke_launch(int b);\n") +
                           fenced("int other();\n");
  EXPECT_EQ(stream.feed({text})->source, "int ke_launch(int b);\n");
}

TEST(AnswerStream, StartsAnewWithALaterAttempt) {
  AnswerStream stream{AnswerContract{}};
  EXPECT_FALSE(stream.feed({"```cpp\nint ke_launch(int broken", 0}));
  const auto answer = stream.feed({fenced("int ke_launch();\n"), 1});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->source, "int ke_launch();\n");
  EXPECT_EQ(stream.finish(FinishReason::stop)->source, "int ke_launch();\n");
}

TEST(AnswerStream, LeavesEditsToTheEnd) {
  AnswerStream stream(editing());
  const std::string edit =
      "<<<<<<< SEARCH\nconstexpr int N = 4;\n=======\nconstexpr int N = 8;\n>>>>>>> REPLACE\n";
  EXPECT_FALSE(stream.feed({fenced(edit)}));
  EXPECT_EQ(stream.finish(FinishReason::stop)->form, AnswerForm::edits);
}

}  // namespace
}  // namespace ke::llm
