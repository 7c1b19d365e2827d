// SPDX-License-Identifier: Apache-2.0
#include "propose/model/text.hpp"

#include <gtest/gtest.h>

#include "llm/utf8.hpp"

namespace ke::model {
namespace {

TEST(PromptText, IsUtf8WithoutControlCharacters) {
  EXPECT_EQ(as_utf8("plain\n\ttext\r\n"), "plain\n\ttext\n");
  EXPECT_EQ(as_utf8("größe"), "größe");
  for (const std::string& text :
       {std::string("\xFF\xFE"), std::string("a\0b", 3), std::string("\xC3"),
        std::string("\x1B[0m")}) {
    const std::string clean = as_utf8(text);
    EXPECT_TRUE(llm::is_utf8(clean));
    EXPECT_NE(clean.find("\xEF\xBF\xBD"), std::string::npos) << clean;
    EXPECT_EQ(clean.find('\0'), std::string::npos);
  }
}

TEST(PromptText, NamesNoFolders) {
  const struct {
    const char* text;
    const char* expected;
  } cases[] = {
      {"/usr/include/c++/12/cmath:42: error", "cmath:42: error"},
      {"in file '/tmp/x-1/kernel.cpp', line 3", "in file 'kernel.cpp', line 3"},
      {"a / b / c", "a / b / c"},
      {"// ke:tune", "// ke:tune"},
      {"2/3/4", "2/3/4"},
      {"one /two", "one /two"},
      {"I/home/user/include", "I/home/user/include"},
      {"(/home/user/a.cpp)", "(a.cpp)"},
  };
  for (const auto& one : cases) EXPECT_EQ(without_paths(one.text), one.expected);
}

TEST(PromptText, LinesHaveNoEndsAndNoBackticks) {
  EXPECT_EQ(one_line("  a\n```b\n\n# c  ", 100), "a '''b # c");
  EXPECT_EQ(one_line("äöü", 3), "ä…");
  EXPECT_EQ(one_line("abc", 3), "abc");
}

TEST(PromptText, HeadsAreWholeLines) {
  EXPECT_EQ(head("a\nb\n", 4), "a\nb\n");
  EXPECT_EQ(head("a\nb\nc\n", 4), "a\nb\n[… 1 more lines are not shown …]\n");
  EXPECT_EQ(head("aaaa\nb", 3), "[… 2 more lines are not shown …]\n");
}

TEST(PromptText, FencesAreLongerThanWhatTheyHold) {
  EXPECT_EQ(fenced("a"), "```\na\n```\n");
  EXPECT_EQ(fenced("", "cpp"), "```cpp\n```\n");
  EXPECT_EQ(fenced("```\nx\n`````\n"), "``````\n```\nx\n`````\n``````\n");
}

TEST(PromptText, TemplatesAreFilledOnce) {
  EXPECT_EQ(fill("a {{x}} b {{y}}", {{"x", "{{y}}"}, {"y", "1"}}), "a {{y}} b 1");
  EXPECT_EQ(fill("a\n{{x}}\nb\n", {{"x", "1\n2\n\n"}}), "a\n1\n2\nb\n");
  EXPECT_DEATH(fill("{{x}}", {}), "");
  EXPECT_DEATH(fill("", {{"x", "1"}}), "");
}

}  // namespace
}  // namespace ke::model
