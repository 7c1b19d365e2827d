// SPDX-License-Identifier: Apache-2.0
//
// realize(): checks that a plan makes sense as a whole, builds its kernels, names them and works
// out what each reads, writes and keeps in registers.
#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "ir/kernel_builder.hpp"

namespace ke::ir {
namespace {

Error refuse(std::string message) { return {Errc::invalid, std::move(message)}; }

const std::string& name_of(const Program& program, StageId id) {
  return program.tensor(program.stage(id).output).name;
}

// The kernel of each stage, -1 when it is inlined.
Result<std::vector<int>> assign_kernels(const Program& program, const Plan& plan) {
  std::vector<int> kernel_of(program.stages.size(), -1);
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const std::vector<StageId>& stages = plan.kernels[k].stages;
    if (stages.empty()) return refuse(fmt::format("kernel {} has no stage", k));
    for (size_t i = 0; i < stages.size(); ++i) {
      const StageId id = stages[i];
      if (id.index < 0 || static_cast<size_t>(id.index) >= program.stages.size()) {
        return refuse(fmt::format("kernel {} names stage {}, which does not exist", k, id.index));
      }
      int& kernel = kernel_of[static_cast<size_t>(id.index)];
      if (kernel >= 0) {
        return refuse(fmt::format("stage {} is in two kernels", name_of(program, id)));
      }
      if (i > 0 && stages[i - 1] >= id) {
        return refuse(fmt::format("stage {} is out of program order", name_of(program, id)));
      }
      kernel = static_cast<int>(k);
    }
  }
  return kernel_of;
}

// "aten._log_softmax.default" -> "log_softmax"; empty when nothing usable is left.
std::string short_name(const std::string& origin) {
  std::string first = origin.substr(0, origin.find(','));
  if (first.starts_with("aten.")) first = first.substr(5);
  first = first.substr(0, first.find('.'));
  std::string name;
  for (char c : first) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    name += word ? c : '_';
  }
  name.erase(0, std::min(name.find_first_not_of("_"), name.size()));
  return name.substr(0, 40);
}

std::string kernel_name(const Program& program, const FusedKernel& kernel, const KernelPlan& plan,
                        size_t position) {
  StageId main = plan.stages.back();
  for (size_t i = plan.stages.size(); i-- > 0;) {
    if (kernel.stages[i].reduce != ReduceOp::none) main = plan.stages[i];
  }
  const std::string name = short_name(program.stage(main).origin);
  const std::string fallback(enum_name(kernel.skeleton));
  return fmt::format("kernel{}_{}", position, name.empty() ? fallback : name);
}

std::set<int> loads_of(const FusedStage& stage) {
  std::set<int> loaded;
  walk(stage.body, [&](const Expr& e) {
    if (e.kind == Expr::Kind::load) loaded.insert(e.tensor.index);
  });
  return loaded;
}

class Realizer {
 public:
  Realizer(const Program& program, const Plan& plan) : index_(program), plan_(plan) {}

  Result<std::vector<FusedKernel>> run() {
    const std::vector<int> kernel_of = TRY(assign_kernels(index_.program, plan_));
    std::vector<bool> inlined;
    for (int kernel : kernel_of) inlined.push_back(kernel < 0);
    Inliner inliner(index_, inlined);
    std::vector<FusedKernel> kernels;
    for (size_t k = 0; k < plan_.kernels.size(); ++k) {
      kernels.push_back(TRY(
          build_kernel(index_, inliner, plan_.kernels[k]).context(fmt::format("kernel {}", k))));
      kernels.back().name = kernel_name(index_.program, kernels.back(), plan_.kernels[k], k);
    }
    TRY(order(kernels));
    return kernels;
  }

 private:
  Result<void> order(std::vector<FusedKernel>& kernels) {
    const size_t tensors = index_.program.tensors.size();
    std::vector<int> written_by(tensors, -1), last_read(tensors, -1);
    for (size_t k = 0; k < kernels.size(); ++k) {
      std::set<int> read;
      for (const FusedStage& stage : kernels[k].stages) {
        for (int tensor : loads_of(stage)) {
          const auto position = static_cast<size_t>(tensor);
          if (index_.writer[position] >= 0 && written_by[position] < 0) {
            return refuse(fmt::format("kernel {} reads {} before it is computed", k,
                                      index_.program.tensors[position].name));
          }
          last_read[position] = static_cast<int>(k);
          if (written_by[position] != static_cast<int>(k)) read.insert(tensor);
        }
        written_by[static_cast<size_t>(stage.output.index)] = static_cast<int>(k);
      }
      for (int tensor : read) kernels[k].reads.push_back({tensor});
    }
    for (size_t k = 0; k < kernels.size(); ++k) {
      for (const FusedStage& stage : kernels[k].stages) {
        const auto position = static_cast<size_t>(stage.output.index);
        // A scan's kernel reads each value only where it is made.
        const bool one_a_row = stage.inner.empty() || stage.reduce != ReduceOp::none ||
                               kernels[k].skeleton == Skeleton::scan;
        const bool local = last_read[position] <= static_cast<int>(k);
        const bool internal = one_a_row && local && !index_.is_output[position];
        (internal ? kernels[k].internals : kernels[k].writes).push_back(stage.output);
      }
    }
    return {};
  }

  ProgramIndex index_;
  const Plan& plan_;
};

}  // namespace

Result<std::vector<FusedKernel>> realize(const Program& program, const Plan& plan) {
  return Realizer(program, plan).run();
}

Result<void> verify(const Program& program, const Plan& plan) {
  TRY(realize(program, plan));
  std::vector<bool> named(program.stages.size(), false);
  for (const KernelPlan& kernel : plan.kernels) {
    for (StageId id : kernel.stages) named[static_cast<size_t>(id.index)] = true;
  }
  const ProgramIndex index(program);
  for (TensorId id : program.outputs) {
    const int stage = index.writer[static_cast<size_t>(id.index)];
    if (stage >= 0 && !named[static_cast<size_t>(stage)]) {
      return refuse(fmt::format("output {} is computed by no kernel", program.tensor(id).name));
    }
  }
  return {};
}

}  // namespace ke::ir
