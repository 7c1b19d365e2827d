// SPDX-License-Identifier: Apache-2.0
//
// The judge's memory: input sets with their truths, further sets to rotate through while timing,
// and output files between canaries. Made once an evaluator and reused; a truth that does not fit
// the resident limit is made again for each evaluation, one at a time, from its seed.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/rng.hpp"
#include "domain/limits.hpp"
#include "domain/machine.hpp"
#include "eval/runner/client.hpp"
#include "oracle/oracle.hpp"

namespace ke {

// An input set that the judge holds, sealed, with read-only descriptors for runners.
struct HeldSet {
  InputSet set;
  std::vector<os::FileDescriptor> read_only;  // one an input
  bool writable = false;                      // the judge's own mapping may change its contents

  std::vector<runner::TensorFile> files() const;
};

// One output's memory file: random canary bytes, the data (ending less than 64 bytes before the end
// of the file), canary bytes.
class OutputMemory {
 public:
  static Result<OutputMemory> create(int64_t bytes, Rng& rng);

  std::span<std::byte> data() { return memory_.span(offset_, bytes_); }
  std::span<const std::byte> data() const { return memory_.span(offset_, bytes_); }
  void poison(std::byte value);  // and new-made canaries: an earlier candidate may have hurt them
  void restore_canaries();
  bool canaries_intact() const;
  runner::TensorFile file() const { return {memory_.fd(), offset_, memory_.size()}; }

 private:
  std::vector<std::byte> canaries() const;
  os::SharedMemory memory_;
  int64_t offset_ = 0, bytes_ = 0;
  std::vector<std::byte> expected_;
};

using OutputSet = std::vector<OutputMemory>;  // one an output
Result<OutputSet> make_outputs(const Problem& problem, Rng& rng);
std::vector<runner::TensorFile> files_of(const OutputSet& outputs);

// Of the truth of one set: float64 for floating outputs, and the marks of what is not graded.
int64_t truth_bytes(const Problem& problem);

// What the correctness sets are, in the order in which they are checked.
inline constexpr SetKind kCheckedSets[] = {SetKind::nominal,       SetKind::nominal,
                                           SetKind::mantissa_tail, SetKind::scaled,
                                           SetKind::planted,       SetKind::tied,
                                           SetKind::special};
inline constexpr int kCheckedSetCount = 7;

// Not thread-safe. References stay valid until renew().
class SetStore {
 public:
  SetStore(Oracle& oracle, const MachineProfile& machine, const Limits& limits, uint64_t seed);
  ~SetStore();

  // Drops everything and draws new seeds.
  void renew();

  // Whether the truth of a checked set stays in memory.
  bool resident(int checked) const;
  // A checked set with its truth; made again each time unless resident. Valid until the next call.
  Result<const HeldSet*> checked(int index);
  // The sets to rotate through while timing: at least two, the first two are the nominal checked
  // ones when those are resident.
  Result<std::vector<HeldSet*>> timing();
  // The outputs number `index` of timing_count(), kept for ever. Checking uses the first two.
  Result<OutputSet*> outputs(int index);

  // Whether the rotation goes through more than twice the last-level cache.
  bool cold() const;
  int timing_count() const { return timing_count_; }

 private:
  Result<std::unique_ptr<HeldSet>> make(SetKind kind, bool with_truth);
  void release(std::unique_ptr<HeldSet>& held);

  Oracle& oracle_;
  MachineProfile machine_;
  int64_t truth_bytes_ = 0;  // of one set
  int resident_count_ = 0;
  int timing_count_ = 2;
  Rng seeds_;
  Rng bytes_;
  std::vector<std::unique_ptr<HeldSet>> checked_;  // kCheckedSetCount, null until made
  std::unique_ptr<HeldSet> visiting_;              // the one that is not resident
  std::vector<std::unique_ptr<HeldSet>> timing_;   // beyond the nominal checked ones
  std::vector<std::unique_ptr<OutputSet>> outputs_;
};

}  // namespace ke
