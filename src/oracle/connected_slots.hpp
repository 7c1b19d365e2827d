// SPDX-License-Identifier: Apache-2.0
//
// DeviceSlots and DeviceBench over the connections of an oracle's process. The requests are
// described in py/kernelevolve/device_requests.py.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "oracle/connection.hpp"
#include "oracle/device_slots.hpp"

namespace ke::oracle {

class ConnectedSlots final : public DeviceSlots, public DeviceBench {
 public:
  // What the rest of the oracle does for it; all of it outlives this object.
  struct Parts {
    Connection* main = nullptr;
    Connection* compile = nullptr;
    const Problem* problem = nullptr;
    Nanoseconds set_max{0};
    std::function<void()> resume;           // the oracle must run to answer
    std::function<Result<void>()> await_compile;  // until it is built or has failed
    std::function<bool()> compile_ready;
    std::function<void()> compile_failed;
    std::function<Result<void>(bool)> hold_compile;
    std::function<void()> lose_float64;     // the truth is in the problem's own precision
  };
  explicit ConnectedSlots(Parts parts) : parts_(std::move(parts)) {}

  Result<DeviceSlot> make_slot() override;
  void drop_slot(int64_t slot) override;
  Result<std::vector<OutputTruth>> fill(int64_t slot, const SetRequest& request) override;
  Result<void> poison(int64_t slot, uint8_t value) override;
  Result<SlotComparison> compare(int64_t slot) override;
  Result<std::vector<bool>> same(int64_t a, int64_t b) override;
  Result<Rung> ring(BaselineKind kind, BaselineMode mode,
                    const std::vector<int64_t>& slots) override;
  Result<void> hold_background(bool held) override { return parts_.hold_compile(held); }
  Result<DeviceFacts> facts(bool measured) override;
  Result<std::vector<LibraryForm>> library_forms() override;

 private:
  Result<Json> ask(const Json& request);
  Result<Rung> ring_on(Connection& connection, BaselineMode mode,
                       const std::vector<int64_t>& slots);

  Parts parts_;
};

}  // namespace ke::oracle
