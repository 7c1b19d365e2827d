// SPDX-License-Identifier: Apache-2.0
#include "knowledge/skill.hpp"

#include <gtest/gtest.h>

namespace ke::knowledge {
namespace {

Skill example() {
  return {.target = "x86",
          .skeleton = "contract",
          .operations = {"mm", "relu"},
          .changes = {{"tile_n", 16, 32}},
          .evidence = {{"level1/1 odd, [name]", "0a1b2c", 3, 5, 9, 1.25, 1.125, 1.5, true}}};
}

Document parsed(const Skill& skill) {
  auto document = parse_document(skill_path(skill_id(skill)), render(skill), "/w");
  EXPECT_TRUE(document) << document.error().message;
  return std::move(*document);
}

TEST(SkillTest, RendersADocumentThatReadsBack) {
  const Skill skill = example();
  const Document document = parsed(skill);
  EXPECT_EQ(document.title, "Lesson on x86, contract (mm, relu), tile_n 16 to 32 is faster");
  EXPECT_EQ(document.targets, std::vector<std::string>{"x86"});
  EXPECT_EQ(document.skill->status, SkillStatus::proposed);
  EXPECT_FALSE(document.searchable());
  const auto evidence = evidence_of(document);
  ASSERT_TRUE(evidence) << evidence.error().message;
  ASSERT_EQ(evidence->size(), 1u);
  SkillEvidence expected = skill.evidence[0];
  expected.problem = "level1/1_odd___name_";
  EXPECT_EQ(evidence->front(), expected);
}

TEST(SkillTest, IsNamedByItsLessonAlone) {
  Skill same = example();
  same.evidence[0].run = 4;
  same.status = SkillStatus::accepted;
  EXPECT_EQ(skill_id(same), skill_id(example()));
  Skill other = example();
  other.changes[0].to = 64;
  EXPECT_NE(skill_id(other), skill_id(example()));
}

TEST(SkillTest, MergesEvidenceOnce) {
  std::vector<SkillEvidence> evidence = example().evidence;
  EXPECT_FALSE(merge_evidence(evidence, example().evidence));
  auto more = example().evidence;
  more[0].run = 7;
  EXPECT_TRUE(merge_evidence(evidence, more));
  EXPECT_EQ(evidence.size(), 2u);
}

TEST(SkillTest, ChangesTheStatusAndNothingElse) {
  const Document document = parsed(example());
  const std::string accepted = with_status(document, SkillStatus::accepted);
  Skill expected = example();
  expected.status = SkillStatus::accepted;
  EXPECT_EQ(accepted, render(expected));
  const auto bare = parse_document("skills/a.md",
                                   "---\ntitle: A\ntargets: [any]\ntopics: [a]\n---\n\nstatus: x\n",
                                   "");
  ASSERT_TRUE(bare);
  EXPECT_EQ(with_status(*bare, SkillStatus::rejected),
            "---\nstatus: rejected\ntitle: A\ntargets: [any]\ntopics: [a]\n---\n\nstatus: x\n");
}

TEST(SkillTest, NamesBrokenEvidence) {
  auto document = parsed(example());
  document.skill->evidence = {"problem=p run=many"};
  const auto evidence = evidence_of(document);
  ASSERT_FALSE(evidence);
  EXPECT_NE(evidence.error().message.find("skills/"), std::string::npos);
}

}  // namespace
}  // namespace ke::knowledge
