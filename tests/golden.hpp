// SPDX-License-Identifier: Apache-2.0
//
// Expected text lies in tests/data/golden/ and rewrites itself: KE_UPDATE_GOLDEN=1 ctest, then read
// the diff.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace ke::testing_support {

inline testing::AssertionResult matches_golden(std::string_view text, std::string_view name) {
  const std::filesystem::path path =
      std::filesystem::path(KE_SOURCE_DIR) / "tests/data/golden" / name;
  if (std::getenv("KE_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return testing::AssertionSuccess();
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream expected;
  expected << file.rdbuf();
  if (file && expected.str() == text) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "differs from " << path << "; it is now:\n"
                                     << text << "(KE_UPDATE_GOLDEN=1 accepts this)";
}

}  // namespace ke::testing_support
