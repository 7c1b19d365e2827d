// SPDX-License-Identifier: Apache-2.0
#include "llm/environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <type_traits>

#include "base/json.hpp"
#include "os/file_system.hpp"

namespace ke::llm {
namespace {

template <class T>
concept Prints = requires(std::ostream& out, const T& value) { out << value; };
static_assert(Prints<std::string>);
static_assert(!Prints<Secret>, "a key must have no way to be printed");
static_assert(!fmt::is_formattable<Secret>::value);
static_assert(!std::is_convertible_v<Secret, std::string>);
static_assert(!std::is_convertible_v<Secret, std::string_view>);
static_assert(!std::is_constructible_v<Json, Secret>);

const std::string kKey = "sk-test-0123456789";

TEST(Environment, ReadsADotenvFileBelowTheRealOne) {
  const auto folder = os::TemporaryDirectory::create().value();
  const auto file = folder.path() / ".env";
  ASSERT_TRUE(os::write_file_atomically(
      file,
      "# keys\n\nexport KE_TEST_API_KEY=\"sk-test-0123456789\"  # mine\r\nKE_TEST_URL = "
      "http://x/#a # local\nKE_TEST_QUOTED='a # b'\nKE_TEST_EMPTY=\nKE_TEST_BOTH=file\n"));
  ASSERT_EQ(setenv("KE_TEST_BOTH", "process", 1), 0);
  const Environment environment = Environment::load(file).value();
  EXPECT_EQ(environment.secret("KE_TEST_API_KEY")->reveal(), kKey);
  EXPECT_EQ(environment.text("KE_TEST_URL"), "http://x/#a");
  EXPECT_EQ(environment.text("KE_TEST_QUOTED"), "a # b");
  EXPECT_FALSE(environment.text("KE_TEST_EMPTY"));
  EXPECT_EQ(environment.text("KE_TEST_BOTH"), "process");
  EXPECT_FALSE(environment.text("KE_TEST_API_KEY"));  // only as a Secret
  EXPECT_TRUE(Environment::load(folder.path() / "absent"));
}

TEST(Environment, NamesABrokenLineWithoutQuotingIt) {
  const auto folder = os::TemporaryDirectory::create().value();
  const auto file = folder.path() / ".env";
  ASSERT_TRUE(os::write_file_atomically(file, "A=1\n" + kKey + "\n"));
  const Error error = Environment::load(file).error();
  EXPECT_EQ(error.message,
            file.string() + " is not NAME=value in line 2; correct or remove that line");
}

TEST(Environment, RedactsEverySecretButNoPlaceholder) {
  const Environment environment({{"A_API_KEY", kKey}, {"B_TOKEN", "EMPTY"}, {"C", "visible"}});
  EXPECT_EQ(environment.redact("wrong key " + kKey + "!" + kKey), "wrong key [key]![key]");
  EXPECT_EQ(environment.redact("EMPTY visible"), "EMPTY visible");
}

TEST(Environment, PassesNoKeyToAChild) {
  const Environment environment({{"PATH", "/bin"},
                                 {"HOME", "/home/x"},
                                 {"LC_ALL", "C"},
                                 {"LC_KEY", kKey},
                                 {"OPENAI_API_KEY", kKey},
                                 {"SOMETHING", "else"}});
  std::vector<std::string> child = environment.for_child();
  std::ranges::sort(child);
  EXPECT_EQ(child, (std::vector<std::string>{"HOME=/home/x", "LC_ALL=C", "PATH=/bin"}));
}

}  // namespace
}  // namespace ke::llm
