// SPDX-License-Identifier: Apache-2.0
//
// The real HTTP client against a real server on this machine.
#include <gtest/gtest.h>

#include <thread>

#include "os/http.hpp"
#include "test_server.hpp"

namespace ke::test {
namespace {

using namespace std::chrono_literals;
using Kind = TestServer::Kind;

struct HttpClientTest : ::testing::Test {
  os::TemporaryDirectory folder = os::TemporaryDirectory::create().value();
  std::filesystem::path log = folder.path() / "asked.jsonl";
  std::string body;
  os::HttpRequest request;

  Result<os::HttpResponse> post(const std::string& url, const std::string& model,
                                const os::HttpSettings& settings = {}, std::stop_token stop = {}) {
    request.url = url + "/v1/chat/completions";
    request.headers = {{"Authorization", "Bearer key-of-the-test"}};
    request.body = R"({"model":")" + model + "\"}";
    body.clear();
    return os::make_http_client(settings).value()->post(
        request,
        [&](const os::HttpResponse&, std::string_view bytes) {
          body += bytes;
          return body.size() < 1'000'000;
        },
        stop);
  }
};

TEST_F(HttpClientTest, PostsAndStreams) {
  const TestServer server(Kind::plain, log);
  for (const char* model : {"ok", "drip"}) {
    const auto response = post(server.url(), model);
    ASSERT_TRUE(response) << response.error().to_string();
    EXPECT_EQ(response->status, 200);
    EXPECT_FALSE(response->stopped);
    EXPECT_NE(body.find("data: [DONE]\n\n"), std::string::npos);
  }
  const Json asked = server.asked().front();
  EXPECT_EQ(asked["path"], "/v1/chat/completions");
  EXPECT_EQ(asked["headers"]["Authorization"], "Bearer key-of-the-test");
  EXPECT_EQ(asked["body"]["model"], "ok");
  EXPECT_TRUE(post(server.url("localhost"), "ok"));
}

TEST_F(HttpClientTest, SendsALargeBody) {
  const TestServer server(Kind::plain, log);
  ASSERT_TRUE(post(server.url(), "ok\", \"text\": \"" + std::string(3'000'000, 'x')));
  EXPECT_EQ(server.asked().front()["body"]["text"].get<std::string>().size(), 3'000'000U);
}

TEST_F(HttpClientTest, AnyStatusIsASuccessAndRedirectsAreNotFollowed) {
  const TestServer server(Kind::plain, log);
  EXPECT_EQ(post(server.url(), "500")->status, 500);
  const auto moved = post(server.url(), "redirect");
  EXPECT_EQ(moved->status, 307);
  EXPECT_EQ(*moved->header("location"), "http://127.0.0.1:1/elsewhere");
  EXPECT_EQ(*post(server.url(), "429")->header("retry-after"), "2");
}

TEST_F(HttpClientTest, FailuresSayWhatHappened) {
  const TestServer server(Kind::plain, log);
  const std::string head = "cannot complete the request to " + server.url() + ": ";
  EXPECT_EQ(post(server.url(), "cut").error().to_string(),
            head + "the server closed the connection in the middle of its answer");
  EXPECT_EQ(post(server.url(), "hang-up").error().to_string(),
            head + "the server closed the connection without an answer");
  EXPECT_EQ(post(server.url(), "not-http").error().code, Errc::unavailable);
  EXPECT_EQ(post("http://no-such-host.invalid", "ok").error().code, Errc::unavailable);
  EXPECT_EQ(post("http://127.0.0.1:1", "ok").error().to_string(),
            "cannot complete the request to http://127.0.0.1:1: connecting: Connection refused");
  EXPECT_EQ(post("https://127.0.0.1:" + std::to_string(server.port()), "ok").error().code,
            Errc::unavailable);  // no TLS there
  EXPECT_EQ(post("http://user:secret@127.0.0.1", "ok").error().code, Errc::invalid);
}

TEST_F(HttpClientTest, HoldsItsLimits) {
  const TestServer server(Kind::plain, log);
  request.idle_max = 200ms;
  for (const char* model : {"silent", "stall"}) {
    const auto idle = post(server.url(), model);
    EXPECT_EQ(idle.error().code, Errc::timed_out);
    EXPECT_NE(idle.error().message.find("silent for too long"), std::string::npos);
  }
  request.total_max = 300ms;
  const auto total = post(server.url(), "endless");
  EXPECT_EQ(total.error().code, Errc::timed_out);
  EXPECT_NE(total.error().message.find("the whole exchange took too long"), std::string::npos);
  request = {};
  request.response_bytes_max = 100'000;
  const auto huge = post(server.url(), "huge");
  EXPECT_EQ(huge.error().code, Errc::unavailable);
  EXPECT_LE(body.size(), 100'000U);
}

TEST_F(HttpClientTest, StopsForTheReceiverAndForTheToken) {
  const TestServer server(Kind::plain, log);
  const auto response = post(server.url(), "huge");
  EXPECT_TRUE(response->stopped);
  EXPECT_EQ(response->status, 200);
  std::stop_source source;
  const std::jthread stopper([&] {
    while (server.asked().size() < 2) std::this_thread::yield();
    source.request_stop();
  });
  const auto stopped = post(server.url(), "silent", {}, source.get_token());
  ASSERT_TRUE(stopped);
  EXPECT_TRUE(stopped->stopped);
  EXPECT_EQ(stopped->status, 0);
}

struct TlsTest : HttpClientTest {
  Certificates certificates = make_certificates(folder.path());
  os::HttpSettings trusting{.cert_file = certificates.authority.string()};

  std::string refusal(const std::filesystem::path& certificate, const os::HttpSettings& settings) {
    const TestServer server(Kind::tls, log, certificate);
    const auto response = post(server.url(), "ok", settings);
    EXPECT_TRUE(server.asked().empty());  // the request, with its key, was not sent
    return response ? "trusted" : response.error().message;
  }
};

TEST_F(TlsTest, TrustsAnOwnAuthorityByFileAndByFolder) {
  const TestServer server(Kind::tls, log, certificates.good);
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const auto response = post(server.url(host), "ok", trusting);
    ASSERT_TRUE(response) << response.error().to_string();
    EXPECT_NE(body.find("[DONE]"), std::string::npos);
  }
  os::RunOptions rehash;
  rehash.process.argv = {"openssl", "rehash", folder.path().string()};
  rehash.process.environment = os::minimal_environment();
  ASSERT_TRUE(os::run(rehash)->status.success());
  EXPECT_TRUE(post(server.url(), "drip", {.cert_dir = folder.path().string()}));
}

TEST_F(TlsTest, RefusesWhatItCannotTrust) {
  const std::string head = "its certificate is not trusted: ";
  const std::string tail = "; SSL_CERT_FILE may name an authority of your own";
  EXPECT_EQ(refusal(certificates.good, {}),
            head + "unable to get local issuer certificate" + tail);
  EXPECT_EQ(refusal(certificates.expired, trusting), head + "certificate has expired" + tail);
  EXPECT_EQ(refusal(certificates.foreign, trusting), head + "IP address mismatch" + tail);
  const os::HttpSettings other{.cert_file = certificates.other_authority.string()};
  EXPECT_NE(refusal(certificates.good, other), "trusted");
}

TEST_F(TlsTest, ACutAndASilenceAreSeenThroughTls) {
  const TestServer server(Kind::tls, log, certificates.good);
  EXPECT_EQ(post(server.url(), "cut", trusting).error().code, Errc::unavailable);
  request.idle_max = 200ms;
  EXPECT_EQ(post(server.url(), "stall", trusting).error().code, Errc::timed_out);
}

// Addresses of this machine are never reached through a proxy, so the tests ask for a name that the
// proxy of the tests takes for this machine.
TEST_F(HttpClientTest, GoesThroughAProxy) {
  const TestServer server(Kind::plain, log);
  const TestServer proxy(Kind::proxy, folder.path() / "proxy.jsonl");
  const std::string address = "http://user:pass@127.0.0.1:" + std::to_string(proxy.port());
  const std::string host = "model.example:" + std::to_string(server.port());
  const auto plain = post("http://" + host, "ok", {.http_proxy = address});
  ASSERT_TRUE(plain) << plain.error().to_string();
  EXPECT_EQ(plain->status, 200);
  EXPECT_EQ(proxy.asked().back()["post"], "http://" + host + "/v1/chat/completions");
  EXPECT_EQ(server.asked().back()["headers"]["Host"], host);
  EXPECT_FALSE(server.asked().back()["headers"].contains("Proxy-Authorization"));
}

TEST_F(TlsTest, TunnelsTlsThroughAProxyAndChecksTheFarName) {
  const TestServer proxy(Kind::proxy, folder.path() / "proxy.jsonl");
  const std::string address = "http://user:pass@127.0.0.1:" + std::to_string(proxy.port());
  trusting.https_proxy = address;
  const TestServer server(Kind::tls, log, certificates.foreign);
  const std::string port = ":" + std::to_string(server.port());
  const auto tunnelled = post("https://elsewhere.example" + port, "ok", trusting);
  ASSERT_TRUE(tunnelled) << tunnelled.error().to_string();
  EXPECT_EQ(proxy.asked().back()["connect"], "elsewhere.example" + port);
  EXPECT_EQ(proxy.asked().back()["headers"].dump().find("key-of-the-test"), std::string::npos);
  EXPECT_NE(post("https://nowhere.example" + port, "ok", trusting).error().message.find("mismatch"),
            std::string::npos);
  trusting.https_proxy = "http://127.0.0.1:" + std::to_string(proxy.port());
  EXPECT_EQ(post("https://elsewhere.example" + port, "ok", trusting).error().message,
            "the proxy refuses the connection with status 407");
  trusting.no_proxy = ".example";
  EXPECT_EQ(post("https://elsewhere.example" + port, "ok", trusting).error().code,
            Errc::unavailable);  // asked directly, there is no such name
}

}  // namespace
}  // namespace ke::test
