// SPDX-License-Identifier: Apache-2.0
#include "test_server.hpp"

#include <unistd.h>

#include <cstdlib>

#include "base/assert.hpp"
#include "os/socket.hpp"

namespace ke::test {

using namespace std::chrono_literals;

namespace {

void run_openssl(const std::filesystem::path& folder, std::vector<std::string> arguments) {
  os::RunOptions options;
  options.process.argv = std::move(arguments);
  options.process.argv.insert(options.process.argv.begin(), "openssl");
  options.process.environment = os::minimal_environment();
  options.process.working_directory = folder.string();
  const os::RunResult result = os::run(options).value();
  if (!result.status.success()) std::fputs(result.error.c_str(), stderr);
  KE_ASSERT(result.status.success());
}

void make_authority(const std::filesystem::path& folder, const std::string& name) {
  run_openssl(folder, {"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                       "-nodes", "-days", "2", "-subj", "/CN=Test authority " + name, "-keyout",
                       name + ".key", "-out", name + ".pem"});
}

// Days below zero end before they begin: expired.
void make_leaf(const std::filesystem::path& folder, const std::string& authority,
               const std::string& name, const std::string& names, int days) {
  run_openssl(folder, {"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                       "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".csr"});
  KE_ASSERT(os::write_file_atomically(folder / (name + ".ext"), "subjectAltName=" + names + "\n"));
  run_openssl(folder, {"x509", "-req", "-in", name + ".csr", "-CA", authority + ".pem", "-CAkey",
                       authority + ".key", "-CAcreateserial", "-days", std::to_string(days),
                       "-extfile", name + ".ext", "-out", name + ".pem"});
}

std::string read_line(int fd) {
  std::string line;
  char c = 0;
  while (os::wait_readable(fd, 20s).value() && ::read(fd, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

}  // namespace

Certificates make_certificates(const std::filesystem::path& folder) {
  make_authority(folder, "own");
  make_authority(folder, "other");
  make_leaf(folder, "own", "good", "IP:127.0.0.1,DNS:localhost", 2);
  make_leaf(folder, "own", "foreign", "DNS:elsewhere.example", 2);
  make_leaf(folder, "own", "expired", "IP:127.0.0.1,DNS:localhost", -1);
  return {folder / "own.pem", folder / "other.pem", folder / "good.pem", folder / "expired.pem",
          folder / "foreign.pem"};
}

TestServer::TestServer(Kind kind, const std::filesystem::path& log,
                       const std::filesystem::path& certificate)
    : kind_(kind), log_(log) {
  os::ProcessOptions options;
  options.argv = {"python3", KE_SOURCE_DIR "/tests/llm/server.py", "--log", log.string()};
  if (kind == Kind::tls) {
    std::filesystem::path key = certificate;
    key.replace_extension(".key");
    options.argv.insert(options.argv.end(), {"--tls", certificate.string(), key.string()});
  }
  if (kind == Kind::proxy) options.argv.emplace_back("--proxy");
  options.environment = os::minimal_environment();
  options.output = os::Stream::pipe;
  options.error = os::Stream::inherit;
  child_ = os::spawn(options).value();
  port_ = std::atoi(read_line(child_.output()).c_str());
  KE_ASSERT(port_ > 0);
}

std::string TestServer::url(const std::string& host) const {
  return (kind_ == Kind::tls ? "https://" : "http://") + host + ":" + std::to_string(port_);
}

std::vector<Json> TestServer::asked() const {
  std::vector<Json> requests;
  const Result<std::string> text = os::read_file(log_, 64_MiB);
  std::string_view rest = text ? std::string_view(*text) : "";
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;  // is being written
    requests.push_back(parse_json(rest.substr(0, end)).value());
    rest.remove_prefix(end + 1);
  }
  return requests;
}

}  // namespace ke::test
