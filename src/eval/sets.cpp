// SPDX-License-Identifier: Apache-2.0
#include "eval/sets.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // Linux 5.1
#endif

namespace ke {
namespace {

// Memory that the rotation of timing sets may take beyond two sets, as a multiple of the last-level
// cache: more would cost time without making anything colder.
constexpr double kRotationOfCache = 2.25;

}  // namespace

int64_t truth_bytes(const Problem& problem) {
  int64_t bytes = 0;
  for (const TensorSpec& spec : problem.outputs) {
    bytes += spec.elements() * (ir::is_floating(spec.dtype) ? 8 : ir::bytes_of(spec.dtype));
    bytes += spec.elements();  // the mark of what is not graded
  }
  return bytes;
}

std::vector<runner::TensorFile> HeldSet::files() const {
  std::vector<runner::TensorFile> files;
  for (size_t i = 0; i < set.inputs.size(); ++i) {
    const TensorMemory& tensor = set.inputs[i];
    files.push_back({read_only[i].get(), tensor.offset, tensor.memory.size()});
  }
  return files;
}

Result<OutputMemory> OutputMemory::create(int64_t bytes, Rng& rng) {
  OutputMemory output;
  output.memory_ = TRY(os::SharedMemory::create(std::max<int64_t>(1, bytes)));
  // Nobody may add a seal that would stop our own writes.
  (void)fcntl(output.memory_.fd(), F_ADD_SEALS, F_SEAL_SEAL);
  output.bytes_ = bytes;
  output.offset_ = (output.memory_.size() - bytes) / 64 * 64;
  const int64_t end = output.offset_ + bytes;
  for (int64_t i = 0; i < output.memory_.size(); ++i) {
    if (i == output.offset_) i = end;
    if (i < output.memory_.size()) output.memory_.data()[i] = static_cast<std::byte>(rng.next());
  }
  output.expected_ = output.canaries();
  return output;
}

void OutputMemory::restore_canaries() {
  const size_t before = static_cast<size_t>(offset_);
  std::memcpy(memory_.data(), expected_.data(), before);
  std::memcpy(memory_.data() + offset_ + bytes_, expected_.data() + before,
              expected_.size() - before);
}

void OutputMemory::poison(std::byte value) {
  restore_canaries();
  std::memset(memory_.data() + offset_, static_cast<int>(value), static_cast<size_t>(bytes_));
}

std::vector<std::byte> OutputMemory::canaries() const {
  std::vector<std::byte> bytes(memory_.data(), memory_.data() + offset_);
  bytes.insert(bytes.end(), memory_.data() + offset_ + bytes_, memory_.data() + memory_.size());
  return bytes;
}

bool OutputMemory::canaries_intact() const { return canaries() == expected_; }

Result<OutputSet> make_outputs(const Problem& problem, Rng& rng) {
  OutputSet outputs;
  for (const TensorSpec& spec : problem.outputs) {
    outputs.push_back(TRY(OutputMemory::create(spec.bytes(), rng)));
  }
  return outputs;
}

std::vector<runner::TensorFile> files_of(const OutputSet& outputs) {
  std::vector<runner::TensorFile> files;
  for (const OutputMemory& output : outputs) files.push_back(output.file());
  return files;
}

// --- SetStore ----------------------------------------------------------------------------------

SetStore::SetStore(Oracle& oracle, const MachineProfile& machine, const Limits& limits,
                   uint64_t seed)
    : oracle_(oracle),
      machine_(machine),
      seeds_(Rng(seed).split("input sets")),
      bytes_(Rng(seed).split("canaries")) {
  const Problem& problem = oracle.problem();
  truth_bytes_ = std::max<int64_t>(1, truth_bytes(problem));
  resident_count_ = static_cast<int>(
      std::clamp<int64_t>(limits.truth_resident_bytes_max / truth_bytes_, 0, kCheckedSetCount));
  const double call_bytes =
      static_cast<double>(std::max<int64_t>(1, problem.input_bytes() + problem.output_bytes()));
  const double wanted = kRotationOfCache * static_cast<double>(machine.llc_bytes) / call_bytes;
  timing_count_ =
      std::clamp(static_cast<int>(wanted) + 1, 2, std::max<int>(2, limits.timing_sets_max));
  checked_.resize(kCheckedSetCount);
}

SetStore::~SetStore() { renew(); }

void SetStore::release(std::unique_ptr<HeldSet>& held) {
  if (held) oracle_.release(held->set.id);
  held.reset();
}

void SetStore::renew() {
  for (auto& held : checked_) release(held);
  for (auto& held : timing_) release(held);
  timing_.clear();
  release(visiting_);
}

bool SetStore::resident(int checked) const { return checked < resident_count_; }

bool SetStore::cold() const {
  const Problem& problem = oracle_.problem();
  const int64_t rotation = timing_count_ * (problem.input_bytes() + problem.output_bytes());
  return rotation > 2 * machine_.llc_bytes;
}

Result<std::unique_ptr<HeldSet>> SetStore::make(SetKind kind, bool with_truth) {
  const SetRequest request{kind, seeds_.next(), with_truth};
  auto held = std::make_unique<HeldSet>();
  held->set = TRY(oracle_.make_set(request).context(
      fmt::format("cannot make the input set '{}'", enum_name(kind))));
  if (held->set.inputs.size() != oracle_.problem().inputs.size()) {
    return Error{Errc::internal, "the oracle made a set with a wrong number of inputs"};
  }
  held->writable = true;
  for (TensorMemory& tensor : held->set.inputs) {
    const int seals = fcntl(tensor.memory.fd(), F_GET_SEALS);
    if (seals & (F_SEAL_FUTURE_WRITE | F_SEAL_WRITE)) {
      held->writable = false;
    } else {
      TRY(tensor.memory.seal_future_writes());
    }
    held->read_only.push_back(TRY(tensor.memory.reopen_read_only()));
  }
  return held;
}

Result<const HeldSet*> SetStore::checked(int index) {
  std::unique_ptr<HeldSet>& place = checked_[static_cast<size_t>(index)];
  if (!place && resident(index)) place = TRY(make(kCheckedSets[index], true));
  if (place) return const_cast<const HeldSet*>(place.get());
  release(visiting_);
  visiting_ = TRY(make(kCheckedSets[index], true));
  return const_cast<const HeldSet*>(visiting_.get());
}

Result<std::vector<HeldSet*>> SetStore::timing() {
  std::vector<HeldSet*> sets;
  for (int i = 0; i < 2 && resident(i); ++i) {
    TRY(checked(i));
    sets.push_back(checked_[static_cast<size_t>(i)].get());
  }
  const size_t further = static_cast<size_t>(timing_count_) - sets.size();
  while (timing_.size() < further) timing_.push_back(TRY(make(SetKind::nominal, false)));
  for (auto& held : timing_) sets.push_back(held.get());
  return sets;
}

Result<OutputSet*> SetStore::outputs(int index) {
  if (outputs_.size() <= static_cast<size_t>(index))
    outputs_.resize(static_cast<size_t>(index) + 1);
  std::unique_ptr<OutputSet>& place = outputs_[static_cast<size_t>(index)];
  if (!place) place = std::make_unique<OutputSet>(TRY(make_outputs(oracle_.problem(), bytes_)));
  return place.get();
}

}  // namespace ke
