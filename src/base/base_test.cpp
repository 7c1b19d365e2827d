// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "base/digest.hpp"
#include "base/events.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/rng.hpp"

namespace ke {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error{Errc::invalid, "odd"};
  return n / 2;
}

Result<int> quarter(int n) { return half(TRY(half(n).context("first half"))); }

TEST(Result, TryReturnsTheErrorWithItsContext) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(7).error().to_string(), "first half: odd");
  EXPECT_EQ(quarter(6).error().to_string(), "odd");
}

TEST(Digest, MatchesThePublishedVector) {  // FIPS 180-4, "abc"
  EXPECT_EQ(digest_of("abc").hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Rng, StreamsDependOnSeedAndNameOnly) {
  Rng a(7);
  const Rng b(7);
  a.next();
  EXPECT_EQ(a.split("tune").next(), b.split("tune").next());
  EXPECT_NE(b.split("tune").next(), b.split("mutate").next());
}

TEST(Rng, BelowCoversItsRangeAndNothingElse) {
  Rng rng(1);
  std::vector<int> seen(5);
  for (int i = 0; i < 1000; ++i) ++seen[static_cast<size_t>(rng.below(5))];
  for (const int count : seen) EXPECT_GT(count, 120);
}

TEST(Json, FieldsRefuseUnknownMissingAndWronglyTyped) {
  const Json value = *parse_json(R"({"a": 1, "b": "x"})");
  Fields fields = *Fields::of(value, "the message");
  EXPECT_EQ(*fields.get<int>("a"), 1);
  EXPECT_EQ(fields.finish().error().message, "the message has an unknown field 'b'");
  EXPECT_EQ(fields.get<int>("b").error().message,
            "the message has a wrong type in the field 'b'");
  EXPECT_EQ(fields.get<int>("c").error().message, "the message lacks the field 'c'");
}

TEST(Json, BadTextIsAnErrorWithItsPlace) {
  EXPECT_EQ(parse_json("{\"a\": }").error().message, "not valid JSON near byte 7");
}

TEST(EventQueue, HandsOverEachEventOnceInOrder) {
  struct Seen final : EventSink {
    void emit(std::string_view name, const Json& fields) override {
      text += std::string(name) + dump_json(fields) + ";";
    }
    std::string text;
  } seen;
  EventQueue queue;
  std::thread other([&] { queue.emit("a", {{"n", 1}}); });
  other.join();
  queue.emit("b", Json::object());
  queue.drain(seen);
  queue.drain(seen);
  EXPECT_EQ(seen.text, "a{\"n\":1};b{};");
}

}  // namespace
}  // namespace ke
