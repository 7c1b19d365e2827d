// SPDX-License-Identifier: Apache-2.0
#include "llm/answer_json.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "base/enum_names.hpp"
#include "base/json.hpp"
#include "base/rng.hpp"

namespace ke::llm {
namespace {

JsonResult read_whole(std::string_view text, FinishReason finish = FinishReason::stop) {
  return parse_json_answer(text, finish, "the choice");
}

std::string fault_in(std::string_view text, FinishReason finish = FinishReason::stop) {
  const JsonResult result = read_whole(text, finish);
  return result ? "none" : std::string(enum_name(result.error().fault));
}

TEST(AnswerJson, ReadsTheLastBlockOrABareObject) {
  EXPECT_EQ(read_whole("Words.\n```json\n{\"a\": 1}\n```\nMore.\n")->value("a", 0), 1);
  EXPECT_EQ(read_whole("```\n{\"a\": 1}\n```\n```json\n{\"a\": 2}\n```\n")->value("a", 0), 2);
  EXPECT_EQ(read_whole("  {\"a\": 3}\n")->value("a", 0), 3);
  EXPECT_EQ(read_whole("```json\n{\"a\": 4}\n")->value("a", 0), 4) << "a fence forgotten";
}

TEST(AnswerJson, EveryFaultHasItsName) {
  EXPECT_EQ(fault_in(" \n"), "empty");
  EXPECT_EQ(fault_in("I would rather talk."), "nothing_usable");
  EXPECT_EQ(fault_in("```cpp\nint x;\n```\n"), "nothing_usable");
  EXPECT_EQ(fault_in("```json\n{\"a\": 1}\n", FinishReason::length), "cut_off");
  EXPECT_EQ(fault_in("{\"a\": 1", FinishReason::length), "cut_off");
  EXPECT_EQ(fault_in("```json\n{\"a\": \n```\n"), "bad_json");
  EXPECT_EQ(fault_in("```json\n[1]\n```\n"), "bad_json");
  EXPECT_EQ(fault_in("```json\n" + std::string(100, '[') + "\n```\n"), "bad_json");
  const std::string long_text(kAnswerJsonBytesMax, 'x');
  EXPECT_EQ(fault_in("```json\n{\"a\": \"" + long_text + "\"}\n```\n"), "too_large");
}

TEST(AnswerJson, TheSentenceSaysWhatToWrite) {
  EXPECT_EQ(read_whole("no").error().sentence,
            "The answer holds no JSON; write the choice as one JSON object in a fenced block, and "
            "nothing else.");
}

TEST(AnswerJson, WhateverComesIsAnObjectOrAFault) {
  const std::vector<std::string> pieces{"```", "json", "\n", "{", "}", "[", "]", "\"", ":", ",",
                                        "1", "\\", "\xFF", std::string(1, '\0'), "~~~", " ",
                                        "```json\n{\"a\": [1, \"b\"]}\n```\n", "null", "1e999"};
  const char* chosen = std::getenv("KE_FUZZ_SEED");
  const uint64_t first = chosen == nullptr ? 1 : std::strtoull(chosen, nullptr, 10);
  const uint64_t count = chosen == nullptr ? 3000 : 1;
  int64_t objects = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("KE_FUZZ_SEED=" + std::to_string(seed));
    Rng rng(seed);
    std::string text;
    for (int64_t i = rng.below(12); i >= 0; --i) text += rng.pick(pieces);
    const JsonResult result = read_whole(text, static_cast<FinishReason>(rng.below(4)));
    if (result) {
      EXPECT_TRUE(result->is_object());
      ++objects;
    } else {
      EXPECT_NE(result.error().sentence, "");
    }
  }
  if (chosen == nullptr) {
    EXPECT_GE(objects, 10) << "the fuzz reaches answers that can be used";
  }
}

}  // namespace
}  // namespace ke::llm
