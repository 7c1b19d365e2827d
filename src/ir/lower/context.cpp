// SPDX-License-Identifier: Apache-2.0
//
// The program under construction: names, places of values, stages, and the final clean-up.
#include "ir/lower/context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/assert.hpp"

namespace ke::ir {
namespace {

// A name as Program wants it: [a-z][a-z0-9_]*.
std::string identifier(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool allowed = std::isalnum(static_cast<unsigned char>(c)) != 0;
    name += allowed ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '_';
  }
  const size_t start = name.find_first_not_of('_');
  name = start == std::string::npos ? "" : name.substr(start);
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "t" + name;
  return name;
}

// Keeps the stages that the outputs need, and the tensors that those and the inputs name.
class DeadCode {
 public:
  explicit DeadCode(Program& program) : program_(program), needed_(program.tensors.size()) {}

  void remove() {
    for (const TensorId id : program_.inputs) need(id);
    for (const TensorId id : program_.outputs) need(id);
    std::vector<Stage> kept;
    for (auto stage = program_.stages.rbegin(); stage != program_.stages.rend(); ++stage) {
      if (!needed_[static_cast<size_t>(stage->output.index)]) continue;
      walk(stage->body, [this](const Expr& e) {
        if (e.kind == Expr::Kind::load) need(e.tensor);
      });
      kept.push_back(std::move(*stage));
    }
    std::reverse(kept.begin(), kept.end());
    program_.stages = std::move(kept);
    renumber();
  }

 private:
  void need(TensorId id) { needed_[static_cast<size_t>(id.index)] = true; }

  void renumber() {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      new_ids_.push_back(TensorId{static_cast<int>(tensors.size())});
      if (needed_[i]) tensors.push_back(std::move(program_.tensors[i]));
    }
    program_.tensors = std::move(tensors);
    for (TensorId& id : program_.inputs) id = renumbered(id);
    for (TensorId& id : program_.outputs) id = renumbered(id);
    for (Stage& stage : program_.stages) {
      stage.output = renumbered(stage.output);
      stage.body = renumbered(stage.body);
    }
  }

  TensorId renumbered(TensorId id) const { return new_ids_[static_cast<size_t>(id.index)]; }

  ExprPtr renumbered(const ExprPtr& e) const {
    if (e->operands.empty() && e->kind != Expr::Kind::load) return e;
    std::vector<ExprPtr> operands;
    for (const ExprPtr& operand : e->operands) operands.push_back(renumbered(operand));
    if (e->kind == Expr::Kind::load) return load(renumbered(e->tensor), e->dtype, operands);
    return with_operands(*e, std::move(operands));
  }

  Program& program_;
  std::vector<bool> needed_;
  std::vector<TensorId> new_ids_;
};

}  // namespace

LoweringContext::LoweringContext(const Graph& graph) : graph_(graph), places_(graph.values.size()) {
  for (const GraphInput& input : graph.inputs) {
    const Value& declared = value(input.value);
    const TensorId id = declare(unique_name(declared.name), declared.dtype, declared.shape,
                                declared.strides, Role::input);
    program_.inputs.push_back(id);
    place(input.value, {load_at(id, axes(declared.shape.size())), id});
  }
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& declared = graph.values[i];
    if (!declared.is_constant) continue;
    const ValueId result{static_cast<int>(i)};
    if (declared.constant.size() == 1) {
      place(result, {number(declared.dtype, declared.constant[0]), {}});
      continue;
    }
    const TensorId id = declare(unique_name(declared.name), declared.dtype, declared.shape,
                                contiguous_strides(declared.shape), Role::constant);
    program_.tensors.back().values = declared.constant;
    place(result, {load_at(id, axes(declared.shape.size())), id});
  }
}

ExprPtr LoweringContext::read(ValueId id, const Indices& indices) const {
  const std::optional<Place>& home = places_[static_cast<size_t>(id.index)];
  KE_ASSERT(home && indices.size() == value(id).shape.size());
  return substitute_axes(home->element, indices);
}

Result<ExprPtr> LoweringContext::read_broadcast(ValueId id, const Shape& shape) const {
  return read_broadcast(id, shape, axes(shape.size()));
}

Result<ExprPtr> LoweringContext::read_broadcast(ValueId id, const Shape& shape,
                                                const Indices& indices) const {
  const Shape& own = value(id).shape;
  Indices mine;
  for (size_t d = 0; d < own.size(); ++d) {
    const size_t missing = shape.size() - own.size();
    const bool fits = own.size() <= shape.size() && (own[d] == 1 || own[d] == shape[d + missing]);
    if (!fits) {
      return Error{Errc::invalid, fmt::format("{}: '{}' does not broadcast to [{}]", origin_,
                                              value(id).name, fmt::join(shape, ", "))};
    }
    mine.push_back(own[d] == 1 ? index_constant(0) : indices[d + missing]);
  }
  return read(id, mine);
}

std::optional<TensorId> LoweringContext::whole(ValueId id) const {
  return places_[static_cast<size_t>(id.index)]->whole;
}

void LoweringContext::place(ValueId result, Place place) {
  KE_ASSERT(place.element->dtype == value(result).dtype);
  places_[static_cast<size_t>(result.index)] = std::move(place);
}

void LoweringContext::map(ValueId result, ExprPtr body) {
  const Value& declared = value(result);
  const TensorId id = add_stage({.name = declared.name,
                                 .dtype = declared.dtype,
                                 .parallel = parallel_axes(declared.shape),
                                 .body = std::move(body)});
  place(result, {load_at(id, axes(declared.shape.size())), id});
}

TensorId LoweringContext::add_stage(NewStage added) {
  Shape shape, extents;
  for (const Axis& axis : added.parallel) shape.push_back(axis.extent);
  extents = shape;
  for (const Axis& axis : added.reduction) extents.push_back(axis.extent);
  Stage stage;
  stage.output = declare(unique_name(added.name), added.dtype, shape, contiguous_strides(shape),
                         Role::intermediate);
  stage.parallel = std::move(added.parallel);
  stage.reduction = std::move(added.reduction);
  stage.reduce = added.reduce;
  stage.scan = added.scan;
  const bool is_map = added.reduce == ReduceOp::none;
  ExprPtr body = is_map ? cast(added.dtype, std::move(added.body)) : std::move(added.body);
  stage.accumulator = is_map ? added.dtype : added.accumulator;
  stage.body = simplify_index(body, extents);
  stage.origin = origin_;
  program_.stages.push_back(std::move(stage));
  return program_.stages.back().output;
}

ExprPtr LoweringContext::load_at(TensorId tensor, Indices indices) const {
  return load(tensor, program_.tensor(tensor).dtype, std::move(indices));
}

Result<void> LoweringContext::require_placed(const Arg& arg) const {
  if (const auto* items = std::get_if<std::vector<Arg>>(&arg.data)) {
    for (const Arg& item : *items) TRY(require_placed(item));
  }
  const auto* id = std::get_if<ValueId>(&arg.data);
  if (!id || places_[static_cast<size_t>(id->index)]) return {};
  return Error{Errc::unavailable, fmt::format("no lowering for '{}', a secondary result of its "
                                              "operation",
                                              value(*id).name)};
}

Result<void> LoweringContext::require_arguments(const Node& node) const {
  for (const Arg& arg : node.args) TRY(require_placed(arg));
  for (const NamedArg& kwarg : node.kwargs) TRY(require_placed(kwarg.value));
  return {};
}

Result<void> LoweringContext::require_outputs() const {
  for (const ValueId id : graph_.outputs) TRY(require_placed(Arg{id}));
  return {};
}

Program LoweringContext::finish() {
  origin_ = "output";
  for (const ValueId id : graph_.outputs) {
    std::optional<TensorId> tensor = whole(id);
    if (!tensor || program_.tensor(*tensor).role != Role::intermediate) {
      const Value& declared = value(id);
      tensor = add_stage({.name = declared.name + "_out",
                          .dtype = declared.dtype,
                          .parallel = parallel_axes(declared.shape),
                          .body = read(id, axes(declared.shape.size()))});
    }
    program_.tensors[static_cast<size_t>(tensor->index)].role = Role::output;
    program_.outputs.push_back(*tensor);
  }
  DeadCode(program_).remove();
  return std::move(program_);
}

std::string LoweringContext::unique_name(std::string_view wanted) {
  const std::string base = identifier(wanted);
  std::string name = base;
  for (int suffix = 2; !names_.insert(name).second; ++suffix) {
    name = fmt::format("{}_v{}", base, suffix);
  }
  return name;
}

TensorId LoweringContext::declare(std::string name, DType dtype, Shape shape, Shape strides,
                                  Role role) {
  program_.tensors.push_back({.name = std::move(name),
                              .dtype = dtype,
                              .shape = std::move(shape),
                              .strides = std::move(strides),
                              .role = role});
  return TensorId{static_cast<int>(program_.tensors.size()) - 1};
}

}  // namespace ke::ir
