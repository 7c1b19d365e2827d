// SPDX-License-Identifier: Apache-2.0
#include "mcp/message.hpp"

#include <gtest/gtest.h>

namespace ke::mcp {
namespace {

TEST(Message, IsARequestWithAnId) {
  const Message message =
      read_message(R"({"jsonrpc":"2.0","id":"a1","method":"tools/call","params":{"name":"x"}})");
  const auto* request = std::get_if<Request>(&message);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->id, "a1");
  EXPECT_EQ(request->method, "tools/call");
  EXPECT_EQ(request->params.at("name"), "x");
}

TEST(Message, IsANotificationWithoutOne) {
  const Message message = read_message(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  const auto* notification = std::get_if<Notification>(&message);
  ASSERT_TRUE(notification);
  EXPECT_TRUE(notification->params.empty());
}

TEST(Message, IsAReplyWithAResultOrAnError) {
  for (const char* line : {R"({"jsonrpc":"2.0","id":1,"result":{}})",
                           R"({"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}})"}) {
    EXPECT_TRUE(std::holds_alternative<Reply>(read_message(line))) << line;
  }
}

TEST(Message, IsRefusedWithACodeAndASentence) {
  struct Case {
    const char* line;
    Code code;
    const char* id;
    const char* word;
  } cases[] = {
      {"{", Code::parse_error, "null", "JSON"},
      {"{\"a\":\"\xff\"}", Code::parse_error, "null", "JSON"},
      {"[]", Code::invalid_request, "null", "batches"},
      {R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])", Code::invalid_request, "null", "batches"},
      {"7", Code::invalid_request, "null", "object"},
      {"{}", Code::invalid_request, "null", "jsonrpc"},
      {R"({"id":3,"method":"ping"})", Code::invalid_request, "3", "jsonrpc"},
      {R"({"jsonrpc":"1.0","id":3,"method":"ping"})", Code::invalid_request, "3", "jsonrpc"},
      {R"({"jsonrpc":"2.0","id":3})", Code::invalid_request, "3", "method"},
      {R"({"jsonrpc":"2.0","id":3,"method":7})", Code::invalid_request, "3", "string"},
      {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", Code::invalid_request, "null", "id"},
      {R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})", Code::invalid_request, "null", "id"},
      {R"({"jsonrpc":"2.0","id":[1],"method":"ping"})", Code::invalid_request, "null", "id"},
      {R"({"jsonrpc":"2.0","id":4,"method":"ping","params":[1]})", Code::invalid_params, "4",
       "params"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.line);
    const Message message = read_message(one.line);
    const auto* malformed = std::get_if<Malformed>(&message);
    ASSERT_TRUE(malformed);
    EXPECT_EQ(malformed->code, one.code);
    EXPECT_EQ(dump_json(malformed->id), one.id);
    EXPECT_NE(malformed->sentence.find(one.word), std::string::npos) << malformed->sentence;
  }
}

TEST(Message, MayBeAsDeepAsALineIsLong) {
  const size_t depth = 1'000'000;
  const std::string deep = std::string(depth, '[') + std::string(depth, ']');
  EXPECT_TRUE(std::holds_alternative<Malformed>(read_message(deep)));
  const Message request = read_message(
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":)" + deep + "}}");
  EXPECT_TRUE(std::holds_alternative<Request>(request));
  EXPECT_TRUE(std::holds_alternative<Malformed>(
      read_message(R"({"jsonrpc":"2.0","method":"ping","id":)" + deep + "}")));
}

TEST(Message, IsWrittenOnOneLine) {
  const std::string line = answer_line("x", {{"text", "two\nlines, \xff"}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(parse_json(line)->at("result").at("text"), "two\nlines, \xef\xbf\xbd");
}

}  // namespace
}  // namespace ke::mcp
