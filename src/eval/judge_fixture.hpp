// SPDX-License-Identifier: Apache-2.0
//
// A judge with everything real but the oracle and the target, for the end-to-end test and the
// bench, on the problem of the judge's corpus (self_test.hpp).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "eval/self_test.hpp"
#include "os/file_system.hpp"

namespace ke::judge_test {

inline const std::filesystem::path kData = std::filesystem::path(KE_SOURCE_DIR) / "tests" / "data";

// Builds with g++ at a level that compiles fast.
class PlainTarget final : public Target {
 public:
  std::vector<ScheduleChoice> choices(const ir::Program&, const ir::FusedKernel&,
                                      const MachineProfile&) const override {
    return {};
  }
  double estimate_ns(const ir::Program&, const ir::FusedKernel&,
                     const MachineProfile&) const override {
    return 0;
  }
  Result<std::string> print_cases(std::span<const CaseKernels>,
                                  const MachineProfile&) const override {
    return Error{Errc::unavailable, "this target prints nothing"};
  }
  Result<BuildRecipe> recipe(std::string_view source) const override {
    if (source.find("ke:flags -fplugin") != std::string_view::npos) {
      return Error{Errc::refused, "the flag -fplugin is not allowed"};
    }
    BuildRecipe recipe{{"g++", "-std=c++20", "-O1", "-mavx2", "-shared", "-fPIC", "-fopenmp",
                        "{source}", "-o", "{output}"},
                       "kernel.cpp",
                       "kernel.so",
                       {}};
    if (source.find("ke:flags -lsqlite3") != std::string_view::npos) {
      recipe.libraries = {"sqlite3"};
      recipe.command.emplace_back("-lsqlite3");
    }
    return recipe;
  }
  Result<std::string> toolchain() const override { return std::string("g++ under test"); }
};

class JudgeBench {
 public:
  explicit JudgeBench(FakeOracleScript from = self_test_problem(), int32_t timing_sets_max = 6,
                      const MachineProfile& machine = {}, const LibraryPolicy& libraries = {},
                      Determinism determinism = Determinism::bitwise)
      : folder_(*os::TemporaryDirectory::create()), oracle_(make_fake_oracle(std::move(from))) {
    EvaluatorOptions options = self_test_options(folder_.path());
    options.oracle = oracle_.get();
    options.target = &target_;
    options.clock = &clock_;
    options.machine = machine;
    options.machine.threads = options.threads;
    options.runner_command = {os::own_executable()->string(), "__runner-host"};
    options.limits.timing_sets_max = timing_sets_max;
    options.libraries = libraries;
    options.determinism = determinism;
    evaluator_ = std::move(*make_evaluator(options));
  }

  Evaluation judge(const std::string& source, JudgeOptions options = {.effort = Effort::full}) {
    const Result<Artifact> artifact = evaluator_->build(source);
    if (!artifact) return broken(artifact.error());
    const Result<Evaluation> evaluation = evaluator_->judge(*artifact, options);
    return evaluation ? *evaluation : broken(evaluation.error());
  }
  Evaluator& evaluator() { return *evaluator_; }
  std::filesystem::path artifacts() const { return folder_.path() / "artifacts"; }

 private:
  static Evaluation broken(const Error& error) {
    ADD_FAILURE() << error.to_string();
    return {};
  }
  os::TemporaryDirectory folder_;
  os::SystemClock clock_;
  PlainTarget target_;
  std::unique_ptr<Oracle> oracle_;
  std::unique_ptr<Evaluator> evaluator_;
};

inline std::string source_of(const std::filesystem::path& path) {
  return *os::read_file(kData / "hostile" / "preamble.h", 1 << 20) + *os::read_file(path, 1 << 20);
}

}  // namespace ke::judge_test
