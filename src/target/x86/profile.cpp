// SPDX-License-Identifier: Apache-2.0
#include "target/x86/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace ke::x86 {
namespace {

constexpr size_t kLinesMax = 400'000;  // of a disassembly
constexpr size_t kLoopMax = 400;       // instructions; what is longer is no inner loop
constexpr size_t kLoopsMax = 4096;
constexpr size_t kRemarksMax = 40;
constexpr size_t kLineBytesMax = 200;
constexpr int kIterations = 100;

std::string_view next_line(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

std::optional<uint64_t> hexadecimal(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end != text.data() ? std::optional(value) : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(begin);
  const size_t last = text.find_last_not_of(" \t\r");
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

struct Instruction {
  uint64_t address = 0;
  std::string_view text;  // mnemonic and operands
};

std::string_view mnemonic(std::string_view instruction) {
  return instruction.substr(0, instruction.find_first_of(" \t"));
}

// "    1160:\tvmovups (%rdi,%rax,1),%ymm0"
std::optional<Instruction> instruction_in(std::string_view line) {
  const size_t colon = line.find(":\t");
  if (colon == std::string_view::npos || !line.starts_with(' ')) return std::nullopt;
  const std::optional<uint64_t> address = hexadecimal(trimmed(line.substr(0, colon)));
  const std::string_view text = trimmed(line.substr(colon + 2));
  if (!address || text.empty()) return std::nullopt;
  return Instruction{*address, text};
}

// Where a jump goes: "jne    1160 <f+0x60>".
std::optional<uint64_t> jump_target(std::string_view text) {
  if (!text.starts_with('j')) return std::nullopt;
  const size_t blank = text.find_first_of(" \t");
  if (blank == std::string_view::npos) return std::nullopt;
  return hexadecimal(trimmed(text.substr(blank)));
}

enum class Arithmetic : uint8_t { none, vector, scalar };

Arithmetic arithmetic_of(std::string_view name) {
  static constexpr std::array<std::string_view, 15> kFloating{
      "add",  "sub",   "mul", "div", "fmadd", "fmsub", "fnmadd", "fnmsub",
      "sqrt", "rsqrt", "rcp", "max", "min",   "round", "dp"};
  if (name.starts_with('v')) name.remove_prefix(1);
  static constexpr std::array<std::string_view, 7> kPacked{"padd", "psub", "pmul", "pmadd",
                                                           "pmax", "pmin", "pdp"};
  const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
  if (std::ranges::any_of(kPacked, begins)) return Arithmetic::vector;
  if (name.size() < 4 || std::ranges::none_of(kFloating, begins)) return Arithmetic::none;
  const std::string_view type = name.substr(name.size() - 2);
  if (type == "ps" || type == "pd" || type == "ph") return Arithmetic::vector;
  if (type == "ss" || type == "sd" || type == "sh") return Arithmetic::scalar;
  return Arithmetic::none;
}

bool touches_the_stack(std::string_view text) {
  if (text.find("(%rsp") != std::string_view::npos) return true;
  // With a frame pointer, locals lie below it.
  const size_t at = text.find("(%rbp)");
  if (at == std::string_view::npos) return false;
  const size_t begin = text.find_last_of(" \t,", at);
  return begin != std::string_view::npos && text.substr(begin + 1).starts_with("-0x");
}

struct Loop {
  size_t begin = 0, end = 0;  // instructions [begin, end]
  int depth = 0;              // loops around it
  bool innermost = true;
};

struct Function {
  std::string_view name;
  std::vector<Instruction> instructions;
};

std::vector<Loop> loops_of(const Function& function) {
  std::vector<Loop> loops;
  const auto& all = function.instructions;
  for (size_t i = 0; i < all.size() && loops.size() < kLoopsMax; ++i) {
    const std::optional<uint64_t> target = jump_target(all[i].text);
    if (!target || *target > all[i].address || *target < all.front().address) continue;
    const auto begin = std::ranges::lower_bound(all, *target, {}, &Instruction::address);
    if (begin == all.end() || begin->address != *target) continue;
    const auto at = static_cast<size_t>(begin - all.begin());
    // Several jumps back to one place are one loop, up to the last of them.
    const auto same = std::ranges::find(loops, at, &Loop::begin);
    if (same != loops.end()) {
      same->end = std::max(same->end, i);
    } else {
      loops.push_back({at, i});
    }
  }
  for (Loop& loop : loops) {
    for (const Loop& other : loops) {
      if (&other == &loop) continue;
      if (other.begin <= loop.begin && loop.end <= other.end) ++loop.depth;
      if (loop.begin <= other.begin && other.end <= loop.end) loop.innermost = false;
    }
  }
  return loops;
}

struct Score {
  int depth = -1;
  bool vector = false;
  int64_t arithmetic = 0;
  auto operator<=>(const Score&) const = default;
};

// An instruction as an assembler takes it: no comment, no symbol behind an address, and jumps back
// to the loop's begin by name.
std::string assembled(std::string_view text, uint64_t loop_begin) {
  const std::optional<uint64_t> target = jump_target(text);
  if (target) {
    const char* label = *target == loop_begin ? ".Lloop" : ".Lout";
    return fmt::format("{} {}", mnemonic(text), label);
  }
  text = text.substr(0, text.find('#'));
  text = text.substr(0, text.find('<'));
  return std::string(trimmed(text));
}

HotLoop loop_text(const Function& function, const Loop& loop) {
  HotLoop found{.function = std::string(function.name.substr(0, kLineBytesMax))};
  const uint64_t begin = function.instructions[loop.begin].address;
  for (size_t i = loop.begin; i <= loop.end; ++i) {
    found.instructions.push_back(assembled(function.instructions[i].text, begin));
  }
  return found;
}

// Takes the function's best loop when it is better than what was found so far.
void consider(const Function& function, Score& best, std::optional<HotLoop>& found) {
  for (const Loop& loop : loops_of(function)) {
    if (!loop.innermost || loop.end - loop.begin >= kLoopMax) continue;
    HotLoop candidate = loop_text(function, loop);
    const LoopCounts counts = count(candidate);
    if (counts.vector + counts.scalar == 0) continue;
    const Score score{loop.depth, counts.vector > 0, counts.vector + counts.scalar};
    if (score > best) {
      best = score;
      found = std::move(candidate);
    }
  }
}

// The number in "name: 12.5" or in "name [ 12.5% ]".
std::optional<double> number_after(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + name.size());
  text = text.substr(0, text.find('\n'));
  const size_t digit = text.find_first_of("0123456789");
  if (digit == std::string_view::npos) return std::nullopt;
  text.remove_prefix(digit);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

void take_disassembly(std::string_view text, KernelProfile& profile, ToolRunner& tools) {
  const std::optional<HotLoop> loop = find_hot_loop(text);
  if (!loop) {
    for (const char* metric : {"hot_loop", "vector_instructions", "scalar_instructions", "spills",
                               "cycles_per_iteration"}) {
      profile.missing[metric] = "no loop of the kernel does floating arithmetic";
    }
    return;
  }
  const LoopCounts counts = count(*loop);
  profile.function = loop->function;
  profile.hot_loop = loop->instructions;
  profile.vector_instructions = counts.vector;
  profile.scalar_instructions = counts.scalar;
  profile.spills = counts.spills;
  std::string assembler = ".Lloop:\n";
  for (const std::string& instruction : loop->instructions) assembler += "\t" + instruction + "\n";
  const Result<void> written = tools.write("loop.s", assembler + ".Lout:\n");
  const Result<std::string> modelled =
      written ? tools.run({"llvm-mca", "-mcpu=native", fmt::format("-iterations={}", kIterations),
                           "-bottleneck-analysis", "loop.s"})
              : Result<std::string>(written.error());
  if (!modelled) {
    profile.missing["cycles_per_iteration"] = modelled.error().message;
    return;
  }
  PipelineEstimate estimate = read_pipeline_model(*modelled, kIterations);
  profile.cycles_per_iteration = estimate.cycles_per_iteration;
  profile.bottleneck = std::move(estimate.bottleneck);
  if (!profile.cycles_per_iteration) {
    profile.missing["cycles_per_iteration"] = "the pipeline model printed none";
  }
}

}  // namespace

std::optional<HotLoop> find_hot_loop(std::string_view disassembly) {
  Function function;
  Score best;
  std::optional<HotLoop> found;
  for (size_t lines = 0; !disassembly.empty() && lines < kLinesMax; ++lines) {
    const std::string_view line = next_line(disassembly);
    if (const std::optional<Instruction> instruction = instruction_in(line)) {
      const bool ascending = function.instructions.empty() ||
                             function.instructions.back().address < instruction->address;
      if (ascending) function.instructions.push_back(*instruction);
    } else if (line.ends_with(">:")) {  // "0000000000001100 <f>:"
      if (!function.instructions.empty()) consider(function, best, found);
      const size_t open = line.find('<');
      const bool named = open != std::string_view::npos && open + 3 <= line.size();
      function = {named ? line.substr(open + 1, line.size() - open - 3) : std::string_view(), {}};
    }
  }
  if (!function.instructions.empty()) consider(function, best, found);
  return found;
}

LoopCounts count(const HotLoop& loop) {
  LoopCounts counts;
  for (const std::string& instruction : loop.instructions) {
    const Arithmetic kind = arithmetic_of(mnemonic(instruction));
    if (kind == Arithmetic::vector) ++counts.vector;
    if (kind == Arithmetic::scalar) ++counts.scalar;
    if (touches_the_stack(instruction)) ++counts.spills;
  }
  return counts;
}

std::vector<std::string> vectorisation_remarks(std::string_view compiler_output) {
  std::vector<std::string> remarks;
  while (!compiler_output.empty() && remarks.size() < kRemarksMax) {
    const std::string_view line = next_line(compiler_output);
    const bool remark = line.find(": optimized:") != std::string_view::npos ||
                        line.find(": missed:") != std::string_view::npos;
    if (!remark) continue;
    std::string text(line.substr(line.find_last_of('/', line.find(':')) + 1, kLineBytesMax));
    if (std::ranges::find(remarks, text) == remarks.end()) remarks.push_back(std::move(text));
  }
  return remarks;
}

PipelineEstimate read_pipeline_model(std::string_view output, int iterations) {
  PipelineEstimate estimate;
  if (const std::optional<double> cycles = number_after(output, "Total Cycles:")) {
    estimate.cycles_per_iteration = *cycles / iterations;
  }
  const double resources = number_after(output, "Resource Pressure").value_or(0);
  const double dependencies = number_after(output, "Data Dependencies:").value_or(0);
  if (resources > 0 && resources >= dependencies) {
    estimate.bottleneck = "execution units";
  } else if (dependencies > 0) {
    estimate.bottleneck = "data dependencies";
  }
  return estimate;
}

KernelProfile profile(const BuildRecipe& recipe, ToolRunner& tools) {
  KernelProfile result;
  std::vector<std::string> command = recipe.command;
  command.emplace_back("-fopt-info-vec-optimized");
  const Result<std::string> built = tools.run(command);
  const auto all_missing = [&](const std::string& reason) {
    for (const char* metric : {"hot_loop", "vector_instructions", "scalar_instructions", "spills",
                               "cycles_per_iteration"}) {
      result.missing[metric] = reason;
    }
  };
  if (!built) {
    result.missing["compiler_remarks"] = built.error().message;
    all_missing(built.error().message);
    return result;
  }
  result.compiler_remarks = vectorisation_remarks(*built);
  const Result<std::string> listing =
      tools.run({"objdump", "--disassemble", "--demangle", "--no-show-raw-insn", "{output}"});
  if (!listing) {
    all_missing(listing.error().message);
    return result;
  }
  take_disassembly(*listing, result, tools);
  return result;
}

}  // namespace ke::x86
