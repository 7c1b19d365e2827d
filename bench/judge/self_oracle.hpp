// SPDX-License-Identifier: Apache-2.0
//
// An oracle whose baseline is a kernel: the judge then times a kernel against itself, and every
// speed-up other than 1 is its own error.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "eval/runner/client.hpp"
#include "eval/sets.hpp"
#include "oracle/fake_oracle.hpp"

namespace ke::bench {

class SelfOracle final : public Oracle {
 public:
  // `kernel`: path of a built kernel that answers the script's problem.
  SelfOracle(FakeOracleScript script, runner::HostOptions options, std::string kernel);

  const Problem& problem() const override { return inner_->problem(); }
  Result<InputSet> make_set(const SetRequest& request) override;
  void release(int64_t set_id) override;
  Result<BaselineState> baseline(BaselineKind kind) override;
  Result<Nanoseconds> ring(BaselineKind kind, const std::vector<int64_t>& set_ids) override;
  void set_running(bool running) override;

 private:
  struct Bound {
    std::vector<os::FileDescriptor> inputs;
    std::vector<int64_t> offsets, bytes;
    OutputSet outputs;
    int slot = -1;
  };
  Result<void> start();
  Result<void> bind(Bound& bound);

  std::unique_ptr<Oracle> inner_;
  runner::HostOptions options_;
  std::string kernel_;
  Rng rng_{1};
  std::map<int64_t, Bound> sets_;
  std::vector<int> free_slots_;
  int next_slot_ = 0;
  std::unique_ptr<runner::Host> host_;
  std::unique_ptr<runner::Runner> runner_;
};

}  // namespace ke::bench
