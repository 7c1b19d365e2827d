// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "propose/proposer.hpp"
#include "propose/testing.hpp"
#include "propose/tunables.hpp"

namespace ke {
namespace {

TEST(Tunables, AreADeclarationAndADefinitionOnTheNextLine) {
  const std::string source =
      "// ke:tune BLOCK in {32, 64, 128}\n"
      "constexpr int BLOCK = 64;  // rows\n"
      "// ke:tune UNROLL in { 1,2 }\n"
      "  #define UNROLL 2\n"
      "# ke:tune STAGES in {a+b, c}\n"
      "STAGES = a+b\n";
  const std::vector<Tunable> found = find_tunables(source);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "BLOCK");
  EXPECT_EQ(found[0].values, (std::vector<std::string>{"32", "64", "128"}));
  EXPECT_EQ(found[0].current, "64");
  EXPECT_EQ(found[1].current, "2");
  EXPECT_EQ(found[2].current, "a+b");
  const std::string changed = with_value(source, found[0], "128");
  EXPECT_NE(changed.find("constexpr int BLOCK = 128;  // rows\n"), std::string::npos) << changed;
  EXPECT_EQ(find_tunables(changed)[0].current, "128");
  EXPECT_EQ(find_tunables(changed)[1].current, "2");
}

TEST(Tunables, WhatDoesNotParseIsNone) {
  const char* sources[] = {
      "",
      "// ke:tune",
      "// ke:tune A in {1, 2}",                     // nothing follows
      "// ke:tune A in {1, 2}\n\nint A = 1;",       // not the next line
      "// ke:tune A in {1, 2}\nint AB = 1;",        // another name
      "// ke:tune A in {1, 2}\nif (A == 1) f(A);",  // not a definition…
      "// ke:tune A in {1}\nint A = 1;",            // no choice
      "// ke:tune A in {1, 1}\nint A = 1;",         // no choice either
      "// ke:tune A in {1,, 2}\nint A = 1;",
      "// ke:tune A in 1, 2\nint A = 1;",
      "// ke:tune A {1, 2}\nint A = 1;",
      "// ke:tune A in {1, 2\nint A = 1;",
      "// ke:tune A in {1, 2}\n#define A\n",
      "// ke:tune A in {1, 2}\n#define B A + 1\n",
      "// ke:tune A in {1, 2}\n#define A(x) 1\n",
  };
  for (const char* source : sources) {
    SCOPED_TRACE(source);
    EXPECT_TRUE(find_tunables(source).empty());
  }
}

class TuneTest : public testing::Test {
 protected:
  std::optional<Proposal> propose(uint64_t seed) {
    Rng rng(seed);
    return *find_proposer("tune")->make()->propose(fixture_.context(NodeKind::mutate, {source_}),
                                                   rng);
  }
  testing_support::ContextFixture fixture_;
  std::string source_ =
      "// ke:tune A in {1, 2, 3, 4}\nconstexpr int A = 2;\n"
      "// ke:tune B in {x, y}\n#define B x\n";
};

TEST_F(TuneTest, ReachesEveryValueThenHasNoIdea) {
  fixture_.know(source_);
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::optional<Proposal> proposal = propose(seed);
    if (!proposal) break;
    EXPECT_TRUE(seen.insert(proposal->source).second);
    EXPECT_EQ(proposal->parents.size(), 1u);
    EXPECT_NE(proposal->note.find(" -> "), std::string::npos);
    fixture_.know(proposal->source);
  }
  EXPECT_GE(seen.size(), 4u) << "three other A, one other B";
  EXPECT_LE(seen.size(), 7u) << "4 x 2 - 1";
  EXPECT_FALSE(propose(99).has_value());
}

TEST_F(TuneTest, SameSeedSameProposal) { EXPECT_EQ(propose(3)->source, propose(3)->source); }

TEST_F(TuneTest, HasNoIdeaWithoutTunablesOrParents) {
  Rng rng(1);
  const auto tune = find_proposer("tune")->make();
  EXPECT_FALSE((*tune->propose(fixture_.context(NodeKind::draft, {}), rng)).has_value());
  EXPECT_FALSE((*tune->propose(fixture_.context(NodeKind::mutate, {"int a;"}), rng)).has_value());
}

TEST(Proposers, AreListedByNameAndFound) {
  ASSERT_GE(all_proposers().size(), 2u);
  for (size_t i = 1; i < all_proposers().size(); ++i) {
    EXPECT_LT(all_proposers()[i - 1]->name, all_proposers()[i]->name);
  }
  EXPECT_NE(find_proposer("synth"), nullptr);
  EXPECT_EQ(find_proposer("nobody"), nullptr);
}

}  // namespace
}  // namespace ke
