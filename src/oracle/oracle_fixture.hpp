// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the real oracle share: starting it on a file of tests/data/problems, and
// reading what it made.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "base/units.hpp"
#include "oracle/oracle.hpp"
#include "oracle/zygote.hpp"
#include "os/file_system.hpp"

namespace ke {

inline std::string python_with_torch() {
  const char* given = std::getenv("KE_PYTHON");
  return given != nullptr ? given : KE_SOURCE_DIR "/.venv/bin/python";
}

class OracleTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Result<os::TemporaryDirectory> made = os::TemporaryDirectory::create("ke-oracle");
    ASSERT_TRUE(made) << made.error().to_string();
    cache_ = new os::TemporaryDirectory(std::move(*made));
    zygote_ = new oracle::Zygote();
  }
  static void TearDownTestSuite() {
    delete zygote_;
    delete cache_;
  }

  static OracleOptions options_for(const std::string& problem) {
    OracleOptions options;
    options.python = python_with_torch();
    options.problem_path = KE_SOURCE_DIR "/tests/data/problems/" + problem;
    options.problem_name = problem;
    options.seed = 0x9e3779b97f4a7c15;
    options.cache_dir = cache_->path();
    options.zygote = zygote_;
    return options;
  }
  static std::unique_ptr<Oracle> start(const std::string& problem) {
    Result<std::unique_ptr<Oracle>> oracle = start_oracle(options_for(problem));
    if (!oracle) {
      ADD_FAILURE() << problem << ": " << oracle.error().to_string();
      return nullptr;
    }
    return std::move(*oracle);
  }
  static InputSet made(Oracle& oracle, const SetRequest& request) {
    Result<InputSet> set = oracle.make_set(request);
    if (!set) {
      ADD_FAILURE() << set.error().to_string();
      return {};
    }
    return std::move(*set);
  }

  static inline os::TemporaryDirectory* cache_ = nullptr;
  static inline oracle::Zygote* zygote_ = nullptr;
};

// To torch.compile's process, which otherwise shares it with requests that follow each other.
inline void leave_the_processor() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

template <class T>
T element(const TensorMemory& tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.memory.data() + tensor.offset + index * int64_t{sizeof(T)}, sizeof(T));
  return value;
}

inline double expected(const OutputTruth& truth, int64_t index) {
  double value = 0;
  std::memcpy(&value, truth.values.data() + index * 8, 8);
  return value;
}

inline bool same_bytes(const TensorMemory& a, const TensorMemory& b) {
  return a.bytes == b.bytes && std::memcmp(a.memory.data() + a.offset, b.memory.data() + b.offset,
                                           static_cast<size_t>(a.bytes)) == 0;
}

}  // namespace ke
