// SPDX-License-Identifier: Apache-2.0
//
// Decoders for the schema that py/kernelevolve/description.py and oracle.py write.
#include "oracle/protocol.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "ir/foldable.hpp"

namespace ke::oracle {

namespace {

Result<std::vector<TensorSpec>> decode_specs(const Json& json) {
  std::vector<TensorSpec> specs;
  for (const Json& spec : json) specs.push_back(TRY(decode_tensor_spec(spec)));
  return specs;
}

// Algebra alone makes such a problem twice as fast: its speed-ups say little about kernels. What
// spares less (a statistic nobody reads, one product of many) lowers the floor without a flag.
constexpr double kFoldableShare = 0.5;

void note_spared_work(Problem& problem) {
  problem.spared_flops = std::clamp<int64_t>(ir::spared_flops(*problem.graph), 0,
                                             std::max<int64_t>(problem.flops, 0));
  const double least = kFoldableShare * static_cast<double>(problem.flops);
  if (problem.flops > 0 && static_cast<double>(problem.minimal_flops()) <= least) {
    problem.flags.push_back("foldable");
  }
}

// How each input of the kind `random` is drawn.
Result<std::vector<Draw>> decode_draws(const Json& json, const std::vector<TensorSpec>& inputs) {
  std::vector<Draw> draws;
  for (const Json& draw : json) draws.push_back(TRY(decode_draw(draw)));
  const auto is_drawn = [](const TensorSpec& s) { return s.kind == ir::InputKind::random; };
  const auto drawn = std::count_if(inputs.begin(), inputs.end(), is_drawn);
  if (drawn != std::ssize(draws)) {
    return Error{Errc::internal, "the oracle's draws do not fit the problem's inputs"};
  }
  return draws;
}

// Hands out received descriptors in order.
class Supply {
 public:
  explicit Supply(Descriptors descriptors) : descriptors_(std::move(descriptors)) {}

  Result<os::SharedMemory> memory(int64_t bytes) {
    if (used_ == descriptors_.size()) {
      return Error{Errc::internal, "the oracle sent too few memory files"};
    }
    return os::SharedMemory::adopt(std::move(descriptors_[used_++]), bytes);
  }
  bool exhausted() const { return used_ == descriptors_.size(); }

 private:
  Descriptors descriptors_;
  size_t used_ = 0;
};

Result<TensorMemory> decode_input(const Json& json, const TensorSpec& spec, Supply& supply) {
  constexpr int64_t kAlignment = 64;
  Fields fields = TRY(Fields::of(json, "an input of the oracle"));
  TensorMemory tensor;
  tensor.offset = TRY(fields.get<int64_t>("offset"));
  tensor.bytes = TRY(fields.get<int64_t>("bytes"));
  TRY(fields.finish());
  if (tensor.bytes != spec.bytes() || tensor.offset < 0 || tensor.offset % kAlignment != 0) {
    return Error{Errc::internal, fmt::format("the oracle misplaced the input '{}'", spec.name)};
  }
  tensor.memory = TRY(supply.memory(tensor.offset + tensor.bytes));
  if (tensor.memory.size() - tensor.offset - tensor.bytes >= kAlignment && tensor.bytes > 0) {
    return Error{Errc::internal, fmt::format("the oracle misplaced the input '{}'", spec.name)};
  }
  return tensor;
}

Result<OutputTruth> decode_truth(const Json& json, const TensorSpec& spec, Supply& supply) {
  Fields fields = TRY(Fields::of(json, "a truth of the oracle"));
  const int64_t bytes = TRY(fields.get<int64_t>("bytes"));
  const int64_t ignore_bytes = TRY(fields.get<int64_t>("ignore_bytes"));
  OutputTruth truth;
  truth.rms_truth = TRY(fields.get<double>("rms_truth"));
  truth.pytorch_rms = TRY(fields.get<double>("pytorch_rms"));
  truth.pytorch_max = TRY(fields.get<double>("pytorch_max"));
  truth.atol = TRY(fields.get<double>("atol"));
  truth.rtol = TRY(fields.get<double>("rtol"));
  truth.any_non_finite_kind = TRY(fields.get<bool>("any_non_finite_kind"));
  TRY(fields.finish());
  const ir::DType stored = ir::is_floating(spec.dtype) ? ir::DType::float64 : spec.dtype;
  if (bytes != spec.elements() * ir::bytes_of(stored) ||
      (ignore_bytes != 0 && ignore_bytes != spec.elements())) {
    return Error{Errc::internal,
                 fmt::format("the oracle's truth of '{}' has a wrong size", spec.name)};
  }
  truth.values = TRY(supply.memory(bytes));
  if (ignore_bytes > 0) truth.ignore = TRY(supply.memory(ignore_bytes));
  return truth;
}

}  // namespace

Result<Description> decode_description(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the oracle's description"));
  Description description;
  Problem& problem = description.problem;
  problem.inputs = TRY(decode_specs(TRY(fields.get<Json>("inputs"))));
  problem.outputs = TRY(decode_specs(TRY(fields.get<Json>("outputs"))));
  problem.graph_error = TRY(fields.get<std::string>("graph_error"));
  problem.float64_truth = TRY(fields.get<bool>("float64_truth"));
  problem.libraries = TRY(fields.get<std::string>("libraries"));
  const std::string determinism = TRY(fields.get<std::string>("determinism"));
  problem.determinism = parse_enum<Determinism>(determinism);
  if (!determinism.empty() && !problem.determinism) {
    return Error{Errc::internal, fmt::format("there is no determinism '{}'", determinism)};
  }
  problem.longest_reduction = TRY(fields.get<int64_t>("longest_reduction"));
  problem.flops = TRY(fields.get<int64_t>("flops"));
  problem.unit_roundoff = TRY(fields.get<double>("unit_roundoff"));
  problem.flags = TRY(fields.get<std::vector<std::string>>("flags"));
  problem.draws = TRY(decode_draws(TRY(fields.get<Json>("draws")), problem.inputs));
  problem.case_count = TRY(fields.get<int32_t>("cases"));
  description.mutated = TRY(fields.get<std::vector<std::string>>("mutated"));
  description.reassigned = TRY(fields.get<std::vector<std::string>>("reassigned"));
  const Json* graph = fields.find("graph");
  TRY(fields.finish());
  if (graph != nullptr && !graph->is_null()) {
    // A graph that we cannot read costs the synthesizer, not the problem.
    Result<ir::Graph> read = ir::graph_from_json(*graph);
    if (read) {
      problem.graph = std::move(*read);
      note_spared_work(problem);
    } else {
      problem.graph_error = read.error().to_string();
    }
  }
  return description;
}

Result<MadeSet> decode_set(const Json& json, const Problem& problem, Descriptors descriptors) {
  Fields fields = TRY(Fields::of(json, "the oracle's input set"));
  MadeSet made;
  made.set.id = TRY(fields.get<int64_t>("set"));
  const Json inputs = TRY(fields.get<Json>("inputs"));
  const Json truths = TRY(fields.get<Json>("truths"));
  made.float64_truth = TRY(fields.get<bool>("float64"));
  TRY(fields.finish());
  if (inputs.size() != problem.inputs.size() ||
      (!truths.empty() && truths.size() != problem.outputs.size())) {
    return Error{Errc::internal, "the oracle's input set does not fit the problem"};
  }
  Supply supply(std::move(descriptors));
  for (size_t i = 0; i < inputs.size(); ++i) {
    made.set.inputs.push_back(TRY(decode_input(inputs[i], problem.inputs[i], supply)));
  }
  for (size_t i = 0; i < truths.size(); ++i) {
    made.set.truths.push_back(TRY(decode_truth(truths[i], problem.outputs[i], supply)));
  }
  if (!supply.exhausted()) return Error{Errc::internal, "the oracle sent too many memory files"};
  return made;
}

}  // namespace ke::oracle
