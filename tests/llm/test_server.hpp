// SPDX-License-Identifier: Apache-2.0
//
// Starts server.py for a test and reads what it was asked.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "os/file_system.hpp"
#include "os/http.hpp"
#include "os/process.hpp"

namespace ke::test {

// An authority of our own, and certificates by it: for 127.0.0.1 and localhost, one that has
// expired, one for another name. Each key lies beside its certificate, with the ending .key.
struct Certificates {
  std::filesystem::path authority, other_authority, good, expired, foreign;
};
Certificates make_certificates(const std::filesystem::path& folder);

class TestServer {
 public:
  enum class Kind { plain, tls, proxy };

  TestServer(Kind kind, const std::filesystem::path& log,
             const std::filesystem::path& certificate = {});

  int port() const { return port_; }
  std::string url(const std::string& host = "127.0.0.1") const;
  std::vector<Json> asked() const;  // every request, in order
  void kill() { child_.kill(); }

 private:
  Kind kind_;
  std::filesystem::path log_;
  os::Child child_;
  int port_ = 0;
};

}  // namespace ke::test
