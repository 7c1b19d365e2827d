// SPDX-License-Identifier: Apache-2.0
#include "os/http_url.hpp"

#include <gtest/gtest.h>

namespace ke::os {
namespace {

TEST(HttpUrl, ReadsItsParts) {
  HttpUrl url = parse_url("https://api.example.com/v1/chat?x=1#part").value();
  EXPECT_TRUE(url.tls);
  EXPECT_EQ(url.host, "api.example.com");
  EXPECT_EQ(url.port, 443);
  EXPECT_EQ(url.target, "/v1/chat?x=1");
  EXPECT_EQ(url.authority(), "api.example.com");
  url = parse_url("HTTP://user:p%40ss@[::1]:8080").value();
  EXPECT_FALSE(url.tls);
  EXPECT_EQ(url.user, "user:p@ss");
  EXPECT_EQ(url.target, "/");
  EXPECT_EQ(url.origin(), "http://[::1]:8080");
  EXPECT_TRUE(url.loopback());
  EXPECT_EQ(parse_url("http://u:100%25@h").value().user, "u:100%");
}

TEST(HttpUrl, RefusesWhatIsNoneWithoutQuotingIt) {
  for (const char* text : {"", "example.com", "ftp://secret@x", "http://", "http://secret:p@",
                           "http://h:0", "http://h:99999", "http://h:secret", "http://[::1",
                           "http://h/a secret", "http://h/\r\nsecret: 1"}) {
    const Result<HttpUrl> url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, Errc::invalid);
    EXPECT_EQ(url.error().message.find("secret"), std::string::npos);
  }
}

std::string proxy_of(const std::string& url, const HttpSettings& settings) {
  const auto proxy = proxy_for(parse_url(url).value(), settings);
  return !proxy ? "error" : *proxy ? (*proxy)->origin() : "direct";
}

TEST(HttpProxy, IsChosenBySchemeAndLeftOutWhereSaid) {
  HttpSettings settings;
  EXPECT_EQ(proxy_of("https://a.example.com", settings), "direct");
  settings.https_proxy = "http://one:3128";
  settings.http_proxy = "two:8080";
  settings.no_proxy = "internal, .example.com,other.org:8443";
  EXPECT_EQ(proxy_of("https://x.org", settings), "http://one:3128");
  EXPECT_EQ(proxy_of("http://x.org", settings), "http://two:8080");
  EXPECT_EQ(proxy_of("https://internal", settings), "direct");
  EXPECT_EQ(proxy_of("https://a.EXAMPLE.com", settings), "direct");
  EXPECT_EQ(proxy_of("https://example.com", settings), "direct");
  EXPECT_EQ(proxy_of("https://notexample.com", settings), "http://one:3128");
  EXPECT_EQ(proxy_of("https://other.org:8443", settings), "direct");
  EXPECT_EQ(proxy_of("https://other.org", settings), "http://one:3128");
  EXPECT_EQ(proxy_of("https://localhost:99", settings), "direct");
  EXPECT_EQ(proxy_of("https://127.0.0.1", settings), "direct");
  settings.no_proxy = "*";
  EXPECT_EQ(proxy_of("https://x.org", settings), "direct");
  settings = {};
  settings.https_proxy = "https://one:3128";
  EXPECT_EQ(proxy_of("https://x.org", settings), "error");
}

TEST(HttpClient, SaysAtTheStartWhatItsSettingsLack) {
  HttpSettings settings;
  settings.cert_file = "/no/such/file.pem";
  EXPECT_EQ(make_http_client(settings).error().message,
            "SSL_CERT_FILE is /no/such/file.pem, which holds no certificates; correct or unset it");
  settings = {};
  settings.https_proxy = "http://host:port";
  EXPECT_EQ(make_http_client(settings).error().to_string(),
            "the proxy: the port in the address is not a number to 65535");
}

TEST(HttpClient, RefusesAHeaderOfTwoLinesWithoutQuotingIt) {
  const auto client = make_http_client({}).value();
  HttpRequest request;
  request.url = "http://127.0.0.1:9/";
  request.headers = {{"Authorization", "Bearer secret\r\nX: y"}};
  const auto result = client->post(request, {}, {});
  EXPECT_EQ(result.error().code, Errc::invalid);
  EXPECT_EQ(result.error().message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace ke::os
