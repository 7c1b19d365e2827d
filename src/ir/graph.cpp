// SPDX-License-Identifier: Apache-2.0
//
// Reads the exported graph from JSON and prints it for people. The JSON is treated as hostile: ids
// are in range and defined before use, sizes multiply without overflow, nesting is bounded.
//
//   {"values": [{"name", "dtype", "shape", "strides", "constant": [number, …]?}, …],
//    "inputs": [{"value": id, "kind": "argument|parameter|buffer|random"}, …],
//    "nodes": [{"op": "aten.add.Tensor", "args": [arg, …], "kwargs": [["alpha", arg], …],
//               "results": [id, …], "flops": integer?}, …],
//    "outputs": [id, …]}
//
// An arg is null, a boolean, an integer, a number with a point, {"float": "inf"|"-inf"|"nan"},
// {"value": id}, {"str": text}, {"dtype": name} (read as a string) or a list of args.
#include "ir/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.hpp"

namespace ke::ir {
namespace {

// The texts of InputKind, in order.
constexpr std::string_view kInputKinds[] = {"argument", "parameter", "buffer", "random"};
constexpr size_t kRankMax = 32;
constexpr int kArgDepthMax = 8;
constexpr size_t kNameMax = 200;
constexpr int64_t kElementsMax = int64_t{1} << 48;

Result<double> special_float(const Json& text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return Error{Errc::invalid, "a float of the graph is none of inf, -inf, nan"};
}

Result<int64_t> read_integer(const Json& json, std::string_view what) {
  const bool too_large =
      json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (!json.is_number_integer() || too_large) {
    return Error{Errc::invalid, fmt::format("{} is not an integer", what)};
  }
  return json.get<int64_t>();
}

Result<std::vector<int64_t>> read_extents(const Json& json, std::string_view what) {
  if (!json.is_array() || json.size() > kRankMax) {
    return Error{Errc::invalid, fmt::format("{} is not a list of at most {}", what, kRankMax)};
  }
  std::vector<int64_t> extents;
  for (const Json& item : json) {
    const int64_t extent = TRY(read_integer(item, what));
    if (extent < 0) return Error{Errc::invalid, fmt::format("{} holds a negative number", what)};
    extents.push_back(extent);
  }
  return extents;
}

// The number of elements; fails when a tensor of this shape and these strides can't exist.
Result<int64_t> checked_elements(const Value& value) {
  int64_t elements = 1, span = 1;
  for (size_t d = 0; d < value.shape.size(); ++d) {
    int64_t reach = 0;
    const int64_t extent = std::max<int64_t>(value.shape[d], 1);
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > kElementsMax ||
        __builtin_mul_overflow(extent - 1, value.strides[d], &reach) ||
        __builtin_add_overflow(span, reach, &span) || span > kElementsMax) {
      return Error{Errc::invalid, fmt::format("value '{}' is too large", value.name)};
    }
  }
  for (const int64_t extent : value.shape) {
    if (extent == 0) return int64_t{0};
  }
  return elements;
}

Result<double> read_constant(const Json& json) {
  if (json.is_boolean()) return json.get<bool>() ? 1.0 : 0.0;
  if (json.is_number()) return json.get<double>();
  if (json.is_object() && json.size() == 1 && json.contains("float")) {
    return special_float(json["float"]);
  }
  return Error{Errc::invalid, "a constant of the graph is not a number"};
}

Result<Value> read_value(const Json& json) {
  Fields fields = TRY(Fields::of(json, "a value of the graph"));
  Value value;
  value.name = TRY(fields.get<std::string>("name"));
  if (value.name.empty() || value.name.size() > kNameMax) {
    return Error{Errc::invalid, "a value of the graph has no name or a very long one"};
  }
  const std::string dtype = TRY(fields.get<std::string>("dtype"));
  const std::optional<DType> parsed = parse_enum<DType>(dtype);
  if (!parsed) {
    return Error{Errc::unavailable, fmt::format("value '{}' has the dtype {}, which is not handled",
                                                value.name, dtype.substr(0, kNameMax))};
  }
  value.dtype = *parsed;
  value.shape = TRY(read_extents(TRY(fields.get<Json>("shape")), "a shape"));
  value.strides = TRY(read_extents(TRY(fields.get<Json>("strides")), "strides"));
  if (value.shape.size() != value.strides.size()) {
    return Error{Errc::invalid,
                 fmt::format("value '{}' has a stride too few or too many", value.name)};
  }
  const int64_t elements = TRY(checked_elements(value));
  if (const Json* constant = fields.find("constant"); constant && !constant->is_null()) {
    if (!constant->is_array() || static_cast<int64_t>(constant->size()) != elements) {
      return Error{Errc::invalid,
                   fmt::format("constant '{}' does not have {} elements", value.name, elements)};
    }
    value.is_constant = true;
    for (const Json& item : *constant) value.constant.push_back(TRY(read_constant(item)));
  }
  TRY(fields.finish());
  return value;
}

// Reads ids and keeps track of what is defined, so that the graph is SSA and topological.
class Definitions {
 public:
  explicit Definitions(const std::vector<Value>& values) : values_(values) {
    for (const Value& value : values) defined_.push_back(value.is_constant);
  }

  Result<ValueId> define(const Json& json) {
    const ValueId id = TRY(in_range(json));
    if (defined_[static_cast<size_t>(id.index)]) {
      return Error{Errc::invalid, fmt::format("value '{}' is defined twice", name(id))};
    }
    defined_[static_cast<size_t>(id.index)] = true;
    return id;
  }

  Result<ValueId> use(const Json& json) const {
    const ValueId id = TRY(in_range(json));
    if (!defined_[static_cast<size_t>(id.index)]) {
      return Error{Errc::invalid, fmt::format("value '{}' is used before it is defined", name(id))};
    }
    return id;
  }

 private:
  const std::string& name(ValueId id) const { return values_[static_cast<size_t>(id.index)].name; }

  Result<ValueId> in_range(const Json& json) const {
    const int64_t index = TRY(read_integer(json, "a value id"));
    if (index < 0 || index >= static_cast<int64_t>(values_.size())) {
      return Error{Errc::invalid, fmt::format("value id {} is out of range", index)};
    }
    return ValueId{static_cast<int>(index)};
  }

  const std::vector<Value>& values_;
  std::vector<bool> defined_;
};

Result<Arg> read_arg(const Json& json, const Definitions& definitions, int depth) {
  if (depth > kArgDepthMax) return Error{Errc::invalid, "an argument is nested too deeply"};
  if (json.is_null()) return Arg{};
  if (json.is_boolean()) return Arg{json.get<bool>()};
  if (json.is_number_integer()) return Arg{TRY(read_integer(json, "an argument"))};
  if (json.is_number_float()) return Arg{json.get<double>()};
  if (json.is_array()) {
    std::vector<Arg> items;
    for (const Json& item : json) items.push_back(TRY(read_arg(item, definitions, depth + 1)));
    return Arg{std::move(items)};
  }
  if (json.is_object() && json.size() == 1) {
    const auto member = json.begin();
    const std::string& key = member.key();
    const Json& held = member.value();
    if (key == "value") return Arg{TRY(definitions.use(held))};
    if (key == "float") return Arg{TRY(special_float(held))};
    if ((key == "str" || key == "dtype") && held.is_string()) return Arg{held.get<std::string>()};
  }
  return Error{Errc::invalid, "an argument of the graph is malformed"};
}

Result<Node> read_node(const Json& json, Definitions& definitions) {
  Fields fields = TRY(Fields::of(json, "a node of the graph"));
  Node node;
  node.op = TRY(fields.get<std::string>("op"));
  const Json args = TRY(fields.get_or<Json>("args", Json::array()));
  const Json kwargs = TRY(fields.get_or<Json>("kwargs", Json::array()));
  const Json results = TRY(fields.get<Json>("results"));
  node.flops = TRY(fields.get_or<int64_t>("flops", 0));
  TRY(fields.finish());
  if (node.flops < 0) return Error{Errc::invalid, "a node of the graph has negative work"};
  if (!args.is_array() || !kwargs.is_array() || !results.is_array()) {
    return Error{Errc::invalid, "args, kwargs and results of a node must be lists"};
  }
  for (const Json& arg : args) node.args.push_back(TRY(read_arg(arg, definitions, 0)));
  for (const Json& pair : kwargs) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string()) {
      return Error{Errc::invalid, "a keyword argument is not a [name, argument] pair"};
    }
    node.kwargs.push_back({pair[0].get<std::string>(), TRY(read_arg(pair[1], definitions, 0))});
  }
  for (const Json& id : results) node.results.push_back(TRY(definitions.define(id)));
  return node;
}

Result<Json> read_list(Fields& fields, const char* key) {
  Json list = TRY(fields.get<Json>(key));
  if (!list.is_array()) return Error{Errc::invalid, fmt::format("'{}' is not a list", key)};
  return list;
}

// --- Printing -----------------------------------------------------------------------------------

struct ArgPrinter {
  const Graph& graph;

  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(ValueId id) const {
    return "%" + graph.values[static_cast<size_t>(id.index)].name;
  }
  std::string operator()(bool flag) const { return flag ? "True" : "False"; }
  std::string operator()(int64_t number) const { return fmt::format("{}", number); }
  std::string operator()(double number) const {
    const std::string text = fmt::format("{}", number);
    return std::isfinite(number) && text.find_first_of(".e") == std::string::npos ? text + ".0"
                                                                                  : text;
  }
  std::string operator()(const std::string& text) const { return fmt::format("'{}'", text); }
  std::string operator()(const std::vector<Arg>& items) const {
    std::string text = "[";
    for (const Arg& item : items) {
      if (text.size() > 1) text += ", ";
      text += std::visit(*this, item.data);
    }
    return text + "]";
  }
};

std::string declaration(const Value& value) {
  return fmt::format("%{}: {}[{}]", value.name, enum_name(value.dtype),
                     fmt::join(value.shape, ", "));
}

void gather_operands(const Arg& arg, std::vector<ValueId>& found) {
  if (const auto* value = std::get_if<ValueId>(&arg.data)) {
    found.push_back(*value);
  } else if (const auto* items = std::get_if<std::vector<Arg>>(&arg.data)) {
    for (const Arg& item : *items) gather_operands(item, found);
  }
}

}  // namespace

Result<Graph> graph_from_json(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the graph"));
  const Json values = TRY(read_list(fields, "values"));
  const Json inputs = TRY(read_list(fields, "inputs"));
  const Json nodes = TRY(read_list(fields, "nodes"));
  const Json outputs = TRY(read_list(fields, "outputs"));
  TRY(fields.finish());

  Graph graph;
  for (const Json& value : values) graph.values.push_back(TRY(read_value(value)));
  Definitions definitions(graph.values);
  for (const Json& input : inputs) {
    Fields entry = TRY(Fields::of(input, "an input of the graph"));
    const ValueId id = TRY(definitions.define(TRY(entry.get<Json>("value"))));
    const std::string kind = TRY(entry.get<std::string>("kind"));
    TRY(entry.finish());
    const auto* found = std::find(std::begin(kInputKinds), std::end(kInputKinds), kind);
    if (found == std::end(kInputKinds)) {
      return Error{Errc::invalid, "an input of the graph has an unknown kind"};
    }
    graph.inputs.push_back({id, static_cast<InputKind>(found - std::begin(kInputKinds))});
  }
  for (const Json& node : nodes) graph.nodes.push_back(TRY(read_node(node, definitions)));
  for (const Json& id : outputs) graph.outputs.push_back(TRY(definitions.use(id)));
  return graph;
}

const Value& value_of(const Graph& graph, ValueId id) {
  return graph.values[static_cast<size_t>(id.index)];
}

int64_t element_count(const Value& value) {
  int64_t count = 1;
  for (const int64_t extent : value.shape) count *= extent;
  return count;
}

std::vector<ValueId> operands_of(const Node& node) {
  std::vector<ValueId> found;
  for (const Arg& arg : node.args) gather_operands(arg, found);
  for (const NamedArg& arg : node.kwargs) gather_operands(arg.value, found);
  return found;
}

std::string_view operation_of(const Node& node) {
  std::string_view name = node.op;
  if (const size_t space = name.find('.'); space != name.npos) name.remove_prefix(space + 1);
  return name.substr(0, name.find('.'));
}

namespace {

Json write_number(double value) {
  if (std::isnan(value)) return {{"float", "nan"}};
  if (std::isinf(value)) return {{"float", value > 0 ? "inf" : "-inf"}};
  return value;
}

Json write_arg(const Arg& arg);

struct ArgWriter {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(ValueId id) const { return {{"value", id.index}}; }
  Json operator()(bool value) const { return value; }
  Json operator()(int64_t value) const { return value; }
  Json operator()(double value) const { return write_number(value); }
  Json operator()(const std::string& text) const { return {{"str", text}}; }
  Json operator()(const std::vector<Arg>& items) const {
    Json list = Json::array();
    for (const Arg& item : items) list.push_back(write_arg(item));
    return list;
  }
};

Json write_arg(const Arg& arg) { return std::visit(ArgWriter{}, arg.data); }

Json write_value(const Value& value) {
  Json json{{"name", value.name},
            {"dtype", enum_name(value.dtype)},
            {"shape", value.shape},
            {"strides", value.strides}};
  if (!value.is_constant) return json;
  json["constant"] = Json::array();
  for (const double number : value.constant) json["constant"].push_back(write_number(number));
  return json;
}

Json write_node(const Node& node) {
  Json json{{"op", node.op},
            {"args", Json::array()},
            {"kwargs", Json::array()},
            {"results", Json::array()}};
  for (const Arg& arg : node.args) json["args"].push_back(write_arg(arg));
  for (const NamedArg& kwarg : node.kwargs) {
    json["kwargs"].push_back(Json::array({kwarg.name, write_arg(kwarg.value)}));
  }
  for (const ValueId id : node.results) json["results"].push_back(id.index);
  return json;
}

}  // namespace

Json encode(const Graph& graph) {
  Json json{{"values", Json::array()},
            {"inputs", Json::array()},
            {"nodes", Json::array()},
            {"outputs", Json::array()}};
  for (const Value& value : graph.values) json["values"].push_back(write_value(value));
  for (const GraphInput& input : graph.inputs) {
    const std::string_view kind = kInputKinds[static_cast<size_t>(input.kind)];
    json["inputs"].push_back({{"value", input.value.index}, {"kind", kind}});
  }
  for (const Node& node : graph.nodes) json["nodes"].push_back(write_node(node));
  for (const ValueId id : graph.outputs) json["outputs"].push_back(id.index);
  return json;
}

std::string print(const Graph& graph) {
  const ArgPrinter printer{graph};
  std::string text;
  for (const GraphInput& input : graph.inputs) {
    text +=
        fmt::format("{} = {}\n", declaration(graph.values[static_cast<size_t>(input.value.index)]),
                    kInputKinds[static_cast<size_t>(input.kind)]);
  }
  for (const Value& value : graph.values) {
    if (value.is_constant) {
      text +=
          fmt::format("{} = constant [{}]\n", declaration(value), fmt::join(value.constant, ", "));
    }
  }
  for (const Node& node : graph.nodes) {
    std::vector<std::string> results, args;
    for (const ValueId id : node.results) {
      results.push_back(declaration(graph.values[static_cast<size_t>(id.index)]));
    }
    for (const Arg& arg : node.args) args.push_back(std::visit(printer, arg.data));
    for (const NamedArg& kwarg : node.kwargs) {
      args.push_back(kwarg.name + "=" + std::visit(printer, kwarg.value.data));
    }
    text += fmt::format("{} = {}({})\n", fmt::join(results, ", "), node.op, fmt::join(args, ", "));
  }
  std::vector<std::string> outputs;
  for (const ValueId id : graph.outputs) outputs.push_back(printer(id));
  return text + fmt::format("return {}\n", fmt::join(outputs, ", "));
}

}  // namespace ke::ir
