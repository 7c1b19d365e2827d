// SPDX-License-Identifier: Apache-2.0
//
// The protocol over a backend that has two tools: one says what it is given, one waits until the
// test lets it go on.
#include "mcp/server.hpp"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/rng.hpp"

namespace ke::mcp {
namespace {

class FakeBackend final : public Backend {
 public:
  std::string instructions() const override { return "Say something."; }
  const std::vector<Tool>& tools() const override { return tools_; }

  Result<Work> prepare(const std::string& tool, const Json& arguments) override {
    if (tool == "wait") {
      return Work([this](EventSink&) -> Result<ToolAnswer> {
        started.set_value();
        go_on.get_future().wait();
        return ToolAnswer{{"waited"}, Json::object()};
      });
    }
    Fields fields = TRY(Fields::of(arguments, "the argument"));
    auto text = TRY(fields.get<std::string>("text"));
    TRY(fields.finish());
    return Work([text](EventSink& events) -> Result<ToolAnswer> {
      events.emit("stage", {{"what", "thinking"}});
      if (text == "fail") return Error{Errc::unavailable, "there is no voice"};
      return ToolAnswer{{}, {{"said", text}}};
    });
  }

  Result<std::vector<Resource>> resources() override {
    return std::vector<Resource>{{"knowledge:///a.md", "a.md", "A"}};
  }
  Result<std::string> read_resource(const std::string& uri) override {
    if (uri == "knowledge:///a.md") return std::string("# A");
    return Error{Errc::not_found, "there is no such resource"};
  }

  std::promise<void> started, go_on;

 private:
  std::vector<Tool> tools_ = {{"say", "Say", "Says it.", {{"type", "object"}}},
                              {"wait", "Wait", "Waits.", {{"type", "object"}}, false}};
};

class McpServer : public ::testing::Test {
 protected:
  McpServer() : server_(backend_, events_, options()) {}

  ServerOptions options() {
    ServerOptions options;
    options.version = "1.2.3";
    options.limits.waiting_requests_max = 3;
    options.write = [this](const std::string& line) {
      written_.push_back(*parse_json(line));
      return listening_;
    };
    return options;
  }

  void initialize(const char* version = "2025-06-18") {
    receive("initialize", 0,
            {{"protocolVersion", version},
             {"capabilities", Json::object()},
             {"clientInfo", {{"name", "test"}, {"version", "1"}}}});
    server_.receive(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  }

  void receive(const char* method, const Json& id, Json params = Json::object()) {
    server_.receive(dump_json(
        {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}}));
  }
  void say(const Json& id, const std::string& text) {
    receive("tools/call", id, {{"name", "say"}, {"arguments", {{"text", text}}}});
  }
  void cancel(const Json& id) {
    server_.receive(dump_json({{"jsonrpc", "2.0"},
                               {"method", "notifications/cancelled"},
                               {"params", {{"requestId", id}}}}));
  }

  // Does what waits, and takes what was written since the last time.
  std::vector<Json> drain() {
    server_.finish();
    server_.work();
    return std::exchange(written_, {});
  }
  Json only() {
    std::vector<Json> lines = drain();
    EXPECT_EQ(lines.size(), 1u);
    return lines.empty() ? Json() : lines.front();
  }
  int code() { return only().at("error").at("code").get<int>(); }

  FakeBackend backend_;
  NullEvents events_;
  std::vector<Json> written_;
  bool listening_ = true;
  Server server_;
};

TEST_F(McpServer, AnswersTheVersionItIsAskedForOrTheNewestItKnows) {
  for (const auto& [asked, answered] :
       std::map<std::string, std::string>{{"2024-11-05", "2024-11-05"},
                                          {"2025-03-26", "2025-03-26"},
                                          {"2025-06-18", "2025-06-18"},
                                          {"1999-01-01", "2025-06-18"},
                                          {"2999-01-01", "2025-06-18"}}) {
    Server server(backend_, events_, options());
    server.receive(dump_json({{"jsonrpc", "2.0"},
                              {"id", 1},
                              {"method", "initialize"},
                              {"params", {{"protocolVersion", asked}}}}));
    const Json result = only().at("result");
    EXPECT_EQ(result.at("protocolVersion"), answered);
    EXPECT_EQ(result.at("serverInfo").at("name"), "kernelevolve");
    EXPECT_EQ(result.at("serverInfo").at("version"), "1.2.3");
    EXPECT_EQ(result.at("instructions"), "Say something.");
    EXPECT_TRUE(result.at("capabilities").contains("tools"));
  }
}

TEST_F(McpServer, WantsToBeInitializedOnceAndFirst) {
  receive("tools/list", 1);
  EXPECT_EQ(code(), -32600);
  receive("initialize", 2);
  EXPECT_EQ(code(), -32602);
  initialize();
  EXPECT_TRUE(only().contains("result"));
  receive("initialize", 3, {{"protocolVersion", "2025-06-18"}});
  EXPECT_EQ(code(), -32600);
}

TEST_F(McpServer, AnswersPingAtAnyTime) {
  receive("ping", "p");
  const Json line = only();
  EXPECT_EQ(line.at("id"), "p");
  EXPECT_EQ(line.at("result"), Json::object());
}

TEST_F(McpServer, ListsToolsWithTheirSchemas) {
  initialize();
  drain();
  receive("tools/list", 1);
  const Json tools = only().at("result").at("tools");
  ASSERT_EQ(tools.size(), 2u);
  EXPECT_EQ(tools[0].at("name"), "say");
  EXPECT_EQ(tools[0].at("inputSchema").at("type"), "object");
  EXPECT_EQ(tools[0].at("annotations").at("readOnlyHint"), true);
  EXPECT_EQ(tools[1].at("annotations").at("readOnlyHint"), false);
}

TEST_F(McpServer, CallsAToolAndAnswersTextAndData) {
  initialize();
  drain();
  say(7, "hello");
  const Json line = only();
  EXPECT_EQ(line.at("id"), 7);
  const Json& result = line.at("result");
  EXPECT_EQ(result.at("isError"), false);
  EXPECT_EQ(result.at("structuredContent"), (Json{{"said", "hello"}}));
  EXPECT_EQ(result.at("content").at(0).at("type"), "text");
  EXPECT_EQ(result.at("content").at(0).at("text"), R"({"said":"hello"})");
}

TEST_F(McpServer, ToolsThatFailAreAnswersNotErrors) {
  initialize();
  drain();
  say(7, "fail");
  const Json result = only().at("result");
  EXPECT_EQ(result.at("isError"), true);
  EXPECT_EQ(result.at("content").at(0).at("text"), "there is no voice");
  EXPECT_FALSE(result.contains("structuredContent"));
}

TEST_F(McpServer, RefusesWhatDoesNotFit) {
  initialize();
  drain();
  struct Case {
    const char* method;
    Json params;
    int code;
  } cases[] = {
      {"tools/delete", Json::object(), -32601},
      {"prompts/list", Json::object(), -32601},
      {"tools/call", Json::object(), -32602},
      {"tools/call", {{"name", 7}}, -32602},
      {"tools/call", {{"name", "shout"}}, -32602},
      {"tools/call", {{"name", "say"}}, -32602},
      {"tools/call", {{"name", "say"}, {"arguments", "hello"}}, -32602},
      {"tools/call", {{"name", "say"}, {"arguments", {{"text", 7}}}}, -32602},
      {"tools/call", {{"name", "say"}, {"arguments", {{"text", "a"}, {"loud", true}}}}, -32602},
      {"resources/read", Json::object(), -32602},
      {"resources/read", {{"uri", "file:///etc/passwd"}}, -32002},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(dump_json(one.params));
    receive(one.method, 1, one.params);
    EXPECT_EQ(code(), one.code);
  }
}

TEST_F(McpServer, TellsProgressToWhoeverAskedForIt) {
  initialize();
  drain();
  receive("tools/call", 1,
          {{"name", "say"}, {"arguments", {{"text", "a"}}}, {"_meta", {{"progressToken", "t"}}}});
  const std::vector<Json> lines = drain();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].at("method"), "notifications/progress");
  EXPECT_EQ(lines[0].at("params"),
            (Json{{"progressToken", "t"}, {"progress", 1}, {"message", "thinking"}}));
  EXPECT_EQ(lines[1].at("id"), 1);
}

TEST_F(McpServer, ListsAndReadsResources) {
  initialize();
  drain();
  receive("resources/list", 1);
  EXPECT_EQ(only().at("result").at("resources").at(0).at("uri"), "knowledge:///a.md");
  receive("resources/read", 2, {{"uri", "knowledge:///a.md"}});
  EXPECT_EQ(only().at("result").at("contents").at(0).at("text"), "# A");
  receive("resources/templates/list", 3);
  EXPECT_EQ(only().at("result").at("resourceTemplates"), Json::array());
}

TEST_F(McpServer, DoesWhatIsAskedInItsOrder) {
  initialize();
  drain();
  for (const int id : {3, 1, 2}) say(id, "x");
  std::vector<int> ids;
  for (const Json& line : drain()) ids.push_back(line.at("id").get<int>());
  EXPECT_EQ(ids, (std::vector<int>{3, 1, 2}));
}

TEST_F(McpServer, RefusesMoreThanMayWait) {
  initialize();
  drain();
  for (int id = 1; id <= 4; ++id) say(id, "x");
  const std::vector<Json> lines = drain();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].at("id"), 4);
  EXPECT_EQ(lines[0].at("error").at("code"), -32000);
}

TEST_F(McpServer, ForgetsWhatIsCancelledWhileItWaits) {
  initialize();
  drain();
  say(1, "x");
  say("1", "y");
  cancel(1);
  EXPECT_EQ(only().at("id"), "1");
}

TEST_F(McpServer, AnswersPingWhileAToolRunsAndNothingForOneThatIsCancelled) {
  initialize();
  drain();
  receive("tools/call", 1, {{"name", "wait"}});
  say(2, "after");
  server_.finish();
  std::thread working([this] { server_.work(); });
  backend_.started.get_future().wait();
  receive("ping", 3);
  EXPECT_EQ(written_.size(), 1u);
  cancel(1);
  backend_.go_on.set_value();
  working.join();
  ASSERT_EQ(written_.size(), 2u);
  EXPECT_EQ(written_[0].at("id"), 3);
  EXPECT_EQ(written_[1].at("id"), 2);
}

TEST_F(McpServer, AStopFinishesWhatRunsAndForgetsTheRest) {
  initialize();
  drain();
  receive("tools/call", 1, {{"name", "wait"}});
  say(2, "after");
  std::thread working([this] { server_.work(); });
  backend_.started.get_future().wait();
  server_.stop();
  backend_.go_on.set_value();
  working.join();
  ASSERT_EQ(written_.size(), 1u);
  EXPECT_EQ(written_[0].at("id"), 1);
}

TEST_F(McpServer, EndsWhenNobodyReads) {
  initialize();
  drain();
  say(1, "x");
  say(2, "y");
  listening_ = false;
  EXPECT_EQ(drain().size(), 1u);
}

TEST_F(McpServer, SaysThatALineIsTooLong) {
  server_.receive_too_long();
  EXPECT_EQ(code(), -32600);
}

TEST_F(McpServer, IgnoresBlankLinesRepliesAndUnknownNotifications) {
  for (const char* line : {"", "  \r", R"({"jsonrpc":"2.0","id":1,"result":{}})",
                           R"({"jsonrpc":"2.0","method":"notifications/roots/list_changed"})",
                           R"({"jsonrpc":"2.0","method":"notifications/cancelled"})"}) {
    server_.receive(line);
  }
  EXPECT_TRUE(drain().empty());
}

// --- Hostile lines ------------------------------------------------------------------------------

std::string mutated(std::string line, Rng& rng) {
  const int64_t edits = 1 + rng.below(4);
  for (int64_t i = 0; i < edits && !line.empty(); ++i) {
    const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(line.size())));
    const auto length = static_cast<size_t>(rng.below(12));
    switch (rng.below(4)) {
      case 0:
        line[at] = static_cast<char>(rng.below(256));
        break;
      case 1:
        line.erase(at, length);
        break;
      case 2:
        line.insert(at, line.substr(at, length));
        break;
      default:
        line.insert(at, std::array{"[", "{", "\"", "null", "1e999", "-1", ",", "\\u0000"}
                            [static_cast<size_t>(rng.below(8))]);
        break;
    }
  }
  return line;
}

// Whatever comes in: what goes out are answers with an id, errors and progress, one a line, and a
// good request is still answered.
TEST_F(McpServer, SurvivesMalformedLines) {
  const std::string seeds[] = {
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}})",
      R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"say","arguments":)"
      R"({"text":"a"},"_meta":{"progressToken":5}}})",
      R"({"jsonrpc":"2.0","id":"x","method":"tools/list"})",
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}})",
      R"({"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"knowledge:///a.md"}})",
  };
  const uint64_t seed = 20;
  Rng rng(seed);
  initialize();
  drain();
  int answered = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::string line = mutated(seeds[static_cast<size_t>(rng.below(5))], rng);
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round << ": " << line);
    server_.receive(line);
    for (const Json& out : drain()) {
      ASSERT_EQ(out.at("jsonrpc"), "2.0");
      if (out.contains("method")) continue;
      ASSERT_TRUE(out.at("id").is_null() || out.at("id").is_string() ||
                  out.at("id").is_number_integer());
      ASSERT_NE(out.contains("result"), out.contains("error"));
      ++(out.contains("result") ? answered : refused);
    }
  }
  EXPECT_GT(answered, 100);
  EXPECT_GT(refused, 5'000);
  receive("ping", "end");
  EXPECT_EQ(only().at("id"), "end");
}

TEST_F(McpServer, TakesArgumentsAsDeepAsALineIsLong) {
  initialize();
  drain();
  const size_t depth = 1'000'000;
  const std::string deep = std::string(depth, '[') + std::string(depth, ']');
  for (const std::string& params :
       {R"({"name":"say","arguments":{"text":)" + deep + "}}",
        R"({"name":"say","arguments":)" + deep + "}",
        R"({"name":"say","arguments":{"text":"a"},"_meta":)" + deep + "}",
        R"({"name":)" + deep + "}"}) {
    server_.receive(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":)" + params + "}");
    EXPECT_EQ(only().at("id"), 1);
  }
}

}  // namespace
}  // namespace ke::mcp
