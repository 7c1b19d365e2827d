// SPDX-License-Identifier: Apache-2.0
#include "oracle/connected_slots.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/json.hpp"
#include "os/clock.hpp"

namespace ke::oracle {
namespace {

Error nonsense(std::string_view what) {
  return {Errc::internal, fmt::format("the oracle's {} does not fit the problem", what)};
}

// JSON has no infinities.
Result<double> number_of(Fields& fields, const char* key) {
  const Json* found = fields.find(key);
  if (found && found->is_string() && *found == "inf") {
    return std::numeric_limits<double>::infinity();
  }
  return fields.get<double>(key);
}

Result<std::vector<DeviceTensor>> decode_tensors(const Json& json,
                                                 const std::vector<TensorSpec>& specs,
                                                 Descriptors& descriptors, size_t& used) {
  if (!json.is_array() || json.size() != specs.size()) return nonsense("slot");
  std::vector<DeviceTensor> tensors;
  for (size_t i = 0; i < specs.size(); ++i) {
    Fields fields = TRY(Fields::of(json[i], "a tensor of the oracle's slot"));
    DeviceTensor tensor;
    tensor.offset = TRY(fields.get<int64_t>("offset"));
    tensor.bytes = TRY(fields.get<int64_t>("bytes"));
    tensor.memory_bytes = TRY(fields.get<int64_t>("memory_bytes"));
    TRY(fields.finish());
    if (used == descriptors.size() || tensor.bytes != specs[i].bytes() || tensor.offset < 0 ||
        tensor.memory_bytes - tensor.bytes < tensor.offset) {
      return nonsense("slot");
    }
    tensor.memory = std::move(descriptors[used++]);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<OutputTruth> decode_scale(const Json& json) {
  Fields fields = TRY(Fields::of(json, "a truth of the oracle"));
  OutputTruth truth;
  truth.rms_truth = TRY(fields.get<double>("rms_truth"));
  truth.pytorch_rms = TRY(fields.get<double>("pytorch_rms"));
  truth.pytorch_max = TRY(fields.get<double>("pytorch_max"));
  truth.atol = TRY(fields.get<double>("atol"));
  truth.rtol = TRY(fields.get<double>("rtol"));
  truth.any_non_finite_kind = TRY(fields.get<bool>("any_non_finite_kind"));
  TRY(fields.finish());
  return truth;
}

Result<Comparison> decode_comparison(const Json& json, const TensorSpec& spec) {
  Fields fields = TRY(Fields::of(json, "a comparison of the oracle"));
  Comparison found;
  found.elements = TRY(fields.get<int64_t>("elements"));
  found.graded = TRY(fields.get<int64_t>("graded"));
  found.ungraded = TRY(fields.get<int64_t>("ungraded"));
  found.sum_squares = TRY(number_of(fields, "sum_squares"));
  found.max_abs = TRY(number_of(fields, "max_abs"));
  found.max_index = TRY(fields.get<int64_t>("max_index"));
  found.outside = TRY(fields.get<int64_t>("outside"));
  found.worst_units = TRY(number_of(fields, "worst_units"));
  found.worst_index = TRY(fields.get<int64_t>("worst_index"));
  TRY(fields.finish());
  if (found.elements != spec.elements()) return nonsense("comparison");
  return found;
}

Result<std::vector<LibraryForm>> decode_library_forms(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the oracle's library forms"));
  std::vector<LibraryForm> forms;
  for (const Json& one : TRY(fields.get<Json>("forms"))) {
    Fields inner = TRY(Fields::of(one, "a library form"));
    forms.push_back(
        {TRY(inner.get<std::string>("name")), TRY(inner.get<std::string>("source"))});
    TRY(inner.finish());
  }
  TRY(fields.finish());
  return forms;
}

}  // namespace

Result<Json> ConnectedSlots::ask(const Json& request) {
  parts_.resume();
  return parts_.main->ask(request, parts_.set_max);
}

Result<DeviceSlot> ConnectedSlots::make_slot() {
  parts_.resume();
  TRY(parts_.main->send(Json{{"do", "make_slot"}}));
  Descriptors descriptors;
  const Json answer = TRY(parts_.main->receive(descriptors, parts_.set_max));
  Fields fields = TRY(Fields::of(answer, "the oracle's slot"));
  DeviceSlot slot;
  slot.id = TRY(fields.get<int64_t>("slot"));
  const Json inputs = TRY(fields.get<Json>("inputs"));
  const Json outputs = TRY(fields.get<Json>("outputs"));
  TRY(fields.finish());
  size_t used = 0;
  slot.inputs = TRY(decode_tensors(inputs, parts_.problem->inputs, descriptors, used));
  slot.outputs = TRY(decode_tensors(outputs, parts_.problem->outputs, descriptors, used));
  if (used != descriptors.size()) return nonsense("slot");
  return slot;
}

void ConnectedSlots::drop_slot(int64_t slot) {
  // A failure means that the oracle has gone, and the slot with it.
  (void)ask(Json{{"do", "drop_slot"}, {"slot", slot}});
}

Result<std::vector<OutputTruth>> ConnectedSlots::fill(int64_t slot, const SetRequest& request) {
  const Json answer = TRY(ask(Json{{"do", "fill"},
                                   {"slot", slot},
                                   {"kind", enum_name(request.kind)},
                                   {"seed", request.seed},
                                   {"with_truth", request.with_truth}}));
  Fields fields = TRY(Fields::of(answer, "the oracle's content"));
  const Json truths = TRY(fields.get<Json>("truths"));
  const bool float64 = TRY(fields.get<bool>("float64"));
  TRY(fields.finish());
  std::vector<OutputTruth> found;
  for (const Json& truth : truths) found.push_back(TRY(decode_scale(truth)));
  if (found.size() != (request.with_truth ? parts_.problem->outputs.size() : 0)) {
    return nonsense("content");
  }
  if (!float64) parts_.lose_float64();
  return found;
}

Result<void> ConnectedSlots::poison(int64_t slot, uint8_t value) {
  TRY(ask(Json{{"do", "poison"}, {"slot", slot}, {"value", value}}));
  return {};
}

Result<SlotComparison> ConnectedSlots::compare(int64_t slot) {
  const Json answer = TRY(ask(Json{{"do", "compare"}, {"slot", slot}}));
  Fields fields = TRY(Fields::of(answer, "the oracle's comparison"));
  SlotComparison compared;
  compared.canaries_intact = TRY(fields.get<std::vector<bool>>("canaries"));
  compared.poisoned = TRY(fields.get<std::vector<int64_t>>("poisoned"));
  const Json outputs = TRY(fields.get<Json>("outputs"));
  TRY(fields.finish());
  const std::vector<TensorSpec>& specs = parts_.problem->outputs;
  if (outputs.size() != specs.size() || compared.canaries_intact.size() != specs.size() ||
      compared.poisoned.size() != specs.size()) {
    return nonsense("comparison");
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    compared.outputs.push_back(TRY(decode_comparison(outputs[i], specs[i])));
  }
  return compared;
}

Result<std::vector<bool>> ConnectedSlots::same(int64_t a, int64_t b) {
  const Json answer = TRY(ask(Json{{"do", "same"}, {"a", a}, {"b", b}}));
  Fields fields = TRY(Fields::of(answer, "the oracle's comparison of two slots"));
  auto same = TRY(fields.get<std::vector<bool>>("same"));
  TRY(fields.finish());
  if (same.size() != parts_.problem->outputs.size()) return nonsense("comparison of two slots");
  return same;
}

Result<Rung> ConnectedSlots::ring_on(Connection& connection, BaselineMode mode,
                                     const std::vector<int64_t>& slots) {
  TRY(connection.ask(Json{{"do", "ring"}, {"slots", slots}, {"mode", enum_name(mode)}},
                     parts_.set_max));
  os::SystemClock clock;
  const Nanoseconds start = clock.now();
  TRY(connection.ring(parts_.set_max));
  Rung rung{.wall = clock.now() - start};
  const Json answer = TRY(connection.receive(parts_.set_max));
  Fields fields = TRY(Fields::of(answer, "the oracle's times"));
  rung.device_ns = TRY(fields.get<int64_t>("device_ns"));
  TRY(fields.finish());
  return rung;
}

Result<Rung> ConnectedSlots::ring(BaselineKind kind, BaselineMode mode,
                                  const std::vector<int64_t>& slots) {
  parts_.resume();
  if (kind == BaselineKind::eager) return ring_on(*parts_.main, mode, slots);
  if (!parts_.compile_ready()) {
    return Error{Errc::unavailable, "the torch.compile baseline is not ready"};
  }
  TRY(parts_.main->ask(Json{{"do", "share"}, {"slots", slots}}, parts_.set_max));
  TRY(parts_.hold_compile(false));
  Result<Rung> rung = ring_on(*parts_.compile, mode, slots);
  if (!rung && mode == BaselineMode::plain) parts_.compile_failed();
  return rung;
}

Result<DeviceFacts> ConnectedSlots::facts(bool measured) {
  const Json answer = TRY(ask(Json{{"do", "device"}, {"measured", measured}}));
  Fields fields = TRY(Fields::of(answer, "the oracle's device"));
  DeviceFacts facts;
  facts.name = TRY(fields.get<std::string>("name"));
  facts.driver = TRY(fields.get<std::string>("driver"));
  facts.torch = TRY(fields.get<std::string>("torch"));
  facts.multiprocessors = TRY(fields.get<int32_t>("multiprocessors"));
  facts.memory_bytes = TRY(fields.get<int64_t>("memory_bytes"));
  facts.free_bytes = TRY(fields.get<int64_t>("free_bytes"));
  facts.l2_bytes = TRY(fields.get<int64_t>("l2_bytes"));
  facts.bandwidth = TRY(fields.get<double>("bandwidth"));
  facts.flops_f32 = TRY(fields.get<double>("flops_f32"));
  for (const char* further : {"capability", "clock_khz"}) (void)fields.find(further);
  TRY(fields.finish());
  return facts;
}

Result<std::vector<LibraryForm>> ConnectedSlots::library_forms() {
  parts_.resume();
  TRY(parts_.await_compile());
  return decode_library_forms(TRY(parts_.compile->ask(Json{{"do", "forms"}}, parts_.set_max)));
}

}  // namespace ke::oracle
