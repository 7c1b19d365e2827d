// SPDX-License-Identifier: Apache-2.0
//
// Prints the kernel of one matrix product, for bench/contract/bench.py:
//   print_product M K N [key=value…]
// where a key is batch, left_transposed, right_transposed, float64, epilogue, prologue,
// threads_max, vector_bytes or the name of a schedule choice. The choices and their preferred
// values go to stderr.
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "target/x86/contract_example.hpp"
#include "target/x86/skeleton.hpp"

int main(int count, char** words) {
  using namespace ke;  // tidy: allow(using-namespace) because it is a small program
  if (count < 4) return 2;
  x86::ProductExample spec{
      .m = std::atol(words[1]), .k = std::atol(words[2]), .n = std::atol(words[3])};
  MachineProfile machine{.threads = 2, .flops_f32_single = 9.4e10};
  for (int i = 4; i < count; ++i) {
    const std::string_view word = words[i];
    const size_t equal = std::min(word.find('='), word.size());
    const std::string key(word.substr(0, equal));
    const int64_t value = equal < word.size() ? std::atol(word.data() + equal + 1) : 1;
    if (key == "batch")
      spec.batch = value;
    else if (key == "left_transposed")
      spec.left_transposed = value != 0;
    else if (key == "right_transposed")
      spec.right_transposed = value != 0;
    else if (key == "float64")
      spec.dtype = value ? ir::DType::float64 : ir::DType::float32;
    else if (key == "epilogue")
      spec.epilogue = static_cast<x86::Epilogue>(value);
    else if (key == "prologue")
      spec.prologue = static_cast<x86::Prologue>(value);
    else if (key == "threads_max")
      machine.threads = static_cast<int32_t>(value);
    else if (key == "vector_bytes")
      machine.vector_bytes = static_cast<int32_t>(value);
    else
      spec.schedule[key] = value;
  }
  const x86::ExampleKernel example = x86::make_example(spec, "kernel0_product");
  x86::PrintContext context{example.program, machine, example.kernel};
  Result<x86::KernelCode> code = x86::contract_skeleton().print(context);
  if (!code) {
    fmt::print(stderr, "{}\n", code.error().to_string());
    return 1;
  }
  for (const ScheduleChoice& choice :
       x86::contract_skeleton().choices(example.program, example.kernel, machine)) {
    fmt::print(stderr, "{}={} ", choice.name, choice.preferred);
  }
  fmt::print(stderr, "estimate={:.0f}\n",
             x86::contract_skeleton().estimate_ns(example.program, example.kernel, machine));
  const x86::PrintedKernel printed{&example.kernel, std::move(*code)};
  fmt::print("{}", x86::assemble(example.program, {&printed, 1}));
  return 0;
}
