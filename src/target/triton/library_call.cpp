// SPDX-License-Identifier: Apache-2.0
#include "target/triton/library_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "target/triton/python.hpp"

namespace ke::triton {
namespace {

using ir::Arg;
using ir::Node;
using ir::ValueId;

class Printer {
 public:
  Printer(const ir::Graph& graph, const Node& node, const CallContext& context)
      : graph_(graph), node_(node), context_(context) {}

  CallText print() const {
    const std::string_view op = ir::operation_of(node_);
    const bool first_alone =
        std::count(context_.used.begin(), context_.used.end(), true) == 1 && context_.used[0];
    if (op == "view" || op == "_unsafe_view") {
      // What the format of its operand was when exported, it need not be here.
      return {fmt::format("{}.reshape({})", argument(0), argument(1))};
    }
    if (op == "convolution" && context_.channels_last) return {convolution()};
    if (op.find("batch_norm") != op.npos && first_alone) {
      if (auto text = batch_norm(op)) return {*text, true};
    }
    if (op == "_scaled_dot_product_flash_attention_for_cpu" && first_alone) {
      return {attention(), true};
    }
    return {plain()};
  }

 private:
  std::string argument(size_t i) const {
    return i < node_.args.size() ? text_of(node_.args[i], "") : "None";
  }

  std::string keyword(std::string_view name, std::string_view otherwise) const {
    for (const ir::NamedArg& named : node_.kwargs) {
      if (named.name == name) return text_of(named.value, name);
    }
    return std::string(otherwise);
  }

  // The operator by its qualified name, as exported.
  std::string plain() const {
    std::vector<std::string> parts;
    for (const Arg& arg : node_.args) parts.push_back(text_of(arg, ""));
    for (const ir::NamedArg& named : node_.kwargs) {
      if (named.name == "pin_memory") continue;
      parts.push_back(fmt::format("{}={}", named.name, text_of(named.value, named.name)));
    }
    return fmt::format("torch.ops.{}({})", node_.op, joined(parts));
  }

  std::string in_channels_last(size_t i) const {
    const auto* id = i < node_.args.size() ? std::get_if<ValueId>(&node_.args[i].data) : nullptr;
    if (id == nullptr) return argument(i);
    const size_t rank = ir::value_of(graph_, *id).shape.size();
    if (rank != 4 && rank != 5) return argument(i);
    return fmt::format("{}.contiguous(memory_format=torch.channels_last{})", argument(i),
                       rank == 5 ? "_3d" : "");
  }

  std::string convolution() const {
    std::vector<std::string> parts = {in_channels_last(0), in_channels_last(1)};
    for (size_t i = 2; i < node_.args.size(); ++i) parts.push_back(argument(i));
    return fmt::format("torch.ops.{}({})", node_.op, joined(parts));
  }

  // By the function that chooses among the library's ways. Running statistics are not written: in
  // training they are results that nobody reads.
  std::optional<std::string> batch_norm(std::string_view op) const {
    const bool no_training = op == "_native_batch_norm_legit_no_training";
    const bool functional = op == "_native_batch_norm_legit_functional";
    const bool no_statistics = op == "_native_batch_norm_legit" && node_.op.ends_with(".no_stats");
    if (!no_training && !functional && !no_statistics) return std::nullopt;
    const size_t training = no_training ? 0 : no_statistics ? 3 : 5;
    const bool trains = no_training ? false : argument(training) == "True";
    const bool reads = !trains && !no_statistics;
    const size_t rest = no_training ? 5 : training + 1;
    return fmt::format("torch.nn.functional.batch_norm({}, {}, {}, {}, {}, {}, {}, {})",
                       argument(0), reads ? argument(3) : "None", reads ? argument(4) : "None",
                       argument(1), argument(2), bool_text(trains || no_statistics), argument(rest),
                       argument(rest + 1));
  }

  std::string attention() const {
    const std::string rate = node_.args.size() > 3 ? argument(3) : "0.0";
    const std::string causal = node_.args.size() > 4 ? argument(4) : "False";
    return fmt::format(
        "torch.nn.functional.scaled_dot_product_attention({}, {}, {}, attn_mask={}, "
        "dropout_p={}, is_causal={}, scale={})",
        argument(0), argument(1), argument(2), keyword("attn_mask", "None"), rate, causal,
        keyword("scale", "None"));
  }

  std::string string_text(const std::string& text, std::string_view name) const {
    if (name == "device") return context_.device;
    if (name == "layout" || name == "memory_format") return "torch." + text;
    if (const auto dtype = parse_enum<ir::DType>(text)) return dtype_text(*dtype);
    return python_string(text);
  }

  std::string text_of(const Arg& arg, std::string_view name) const {
    if (arg.is_none()) return "None";
    if (const auto* id = std::get_if<ValueId>(&arg.data)) return context_.name_of(*id);
    if (const auto* flag = std::get_if<bool>(&arg.data)) return bool_text(*flag);
    if (const auto* number = std::get_if<int64_t>(&arg.data)) return fmt::format("{}", *number);
    if (const auto* number = std::get_if<double>(&arg.data)) return float_text(*number);
    if (const auto* text = std::get_if<std::string>(&arg.data)) return string_text(*text, name);
    std::vector<std::string> parts;
    for (const Arg& item : std::get<std::vector<Arg>>(arg.data)) {
      parts.push_back(text_of(item, name));
    }
    return fmt::format("[{}]", joined(parts));
  }

  const ir::Graph& graph_;
  const Node& node_;
  const CallContext& context_;
};

}  // namespace

bool gives_list(const Node& node) {
  constexpr std::string_view kLists[] = {"split",      "split_with_sizes", "unbind",
                                         "chunk",      "unsafe_split",     "tensor_split",
                                         "meshgrid",   "split_copy",       "split_with_sizes_copy",
                                         "unbind_copy"};
  const std::string_view op = ir::operation_of(node);
  return std::find(std::begin(kLists), std::end(kLists), op) != std::end(kLists);
}

CallText library_call(const ir::Graph& graph, const Node& node, const CallContext& context) {
  return Printer(graph, node, context).print();
}

}  // namespace ke::triton
