// SPDX-License-Identifier: Apache-2.0
//
// Checks a batch of random functions: lowers each, runs the program through the interpreter and
// compares with PyTorch, then the same through fused kernels of the greedy plan and of random
// neighbours of it. With a target, the kernels of the greedy plan and of one random plan under a
// random schedule, for a random machine, are also printed, built and run.
//
//   ke_fuzz STEM [--plans N] [--only SEED] [--target NAME]
//
// Exit code 0: none wrong; 1: some wrong (each printed with how to reproduce it); 2: could not run.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/rng.hpp"
#include "batch.hpp"
#include "ir/lower/lower.hpp"
#include "ir/plan.hpp"
#include "native.hpp"
#include "target/target.hpp"

namespace ke::fuzz {
namespace {

struct Options {
  std::string stem;
  int plans = 2;      // random walks over fusion boundaries, besides the greedy plan
  int64_t only = -1;  // this seed alone, with its program and plans printed
  std::string target = {};
};

constexpr size_t kSourcesTogether = 24;  // in one translation unit

// A printed kernel that waits to be built and run.
struct Printed {
  const Case* tested;
  ir::Program program;
  PrintedSource source;
};

struct Refusal {
  int count = 0;
  int64_t seed = 0;  // of the last one
};

struct Tally {
  int right = 0, wrong = 0;
  int ran = 0;                             // printed kernels that were built and run
  std::map<std::string, Refusal> refused;  // by sentence

  void refuse(const std::string& sentence, int64_t seed) {
    ++refused[sentence].count;
    refused[sentence].seed = seed;
  }
};

void report(const Case& tested, std::string_view stage, std::string_view what) {
  fmt::print(
      "WRONG seed {0}: {1}: {2}\n  reproduce: random_modules.py --first {0} --count 1 --out one && "
      "ke_fuzz one --only {0}\n",
      tested.seed, stage, what);
}

// What a stage of the pipeline made of a case: nothing when right, else a sentence.
std::optional<std::string> judge(const Case& tested,
                                 const Result<std::vector<ir::TensorBytes>>& outputs) {
  if (!outputs.has_value()) return outputs.error().to_string();
  return compare(tested.outputs, *outputs);
}

std::optional<std::string> check_plan(const Case& tested, const ir::Program& program,
                                      const ir::Plan& plan) {
  const Result<std::vector<ir::FusedKernel>> kernels = ir::realize(program, plan);
  if (!kernels.has_value()) return "does not realize: " + kernels.error().to_string();
  return judge(tested, ir::interpret(program, *kernels, tested.inputs));
}

// A machine that kernels are printed for, able to do no more than this one. Small caches bring out
// the code for large problems.
MachineProfile random_machine(Rng& rng) {
  MachineProfile machine;
  machine.threads = rng.chance(0.75) ? 2 : 1;
  if (__builtin_cpu_supports("avx512f") != 0 && rng.chance(0.25)) machine.vector_bytes = 64;
  if (rng.chance(0.5)) {
    machine.l1_bytes = 1 << 10;
    machine.l2_bytes = 4 << 10;
    machine.llc_bytes = 16 << 10;
  }
  return machine;
}

// Half of the choices as the target prefers them, the others at random.
void randomize(const Target& target, const MachineProfile& machine, const ir::Program& program,
               ir::FusedKernel& kernel, Rng& rng) {
  for (const ScheduleChoice& choice : target.choices(program, kernel, machine)) {
    if (!choice.values.empty() && rng.chance(0.5)) {
      kernel.schedule[choice.name] = rng.pick(choice.values);
    }
  }
}

// The greedy plan as it is and the last random plan under a random schedule, printed.
void print_sources(const Target& target, const Case& tested, const ir::Program& program,
                   const std::vector<ir::Plan>& plans, std::vector<Printed>& waiting,
                   Tally& tally) {
  Rng rng = Rng(static_cast<uint64_t>(tested.seed)).split("schedules");
  for (const bool random : {false, true}) {
    const ir::Plan& plan = random ? plans.back() : plans.front();
    Result<std::vector<ir::FusedKernel>> kernels = ir::realize(program, plan);
    if (!kernels.has_value()) continue;  // already reported
    const MachineProfile machine = random ? random_machine(rng) : MachineProfile{};
    for (ir::FusedKernel& kernel : *kernels) {
      if (random) randomize(target, machine, program, kernel, rng);
    }
    Result<std::string> text = target.print(program, *kernels, machine);
    if (!text.has_value()) {
      tally.refuse("the target: " + text.error().to_string(), tested.seed);
      continue;
    }
    const std::string_view how = random ? "random plan, schedule and machine" : "greedy plan";
    waiting.push_back({&tested, program, {std::string(how), std::move(*text)}});
  }
}

// Builds what waits in one library, calls each kernel and compares.
void run_printed(const Options& options, const Target& target, std::vector<Printed>& waiting,
                 Tally& tally) {
  if (waiting.empty()) return;
  std::vector<PrintedSource> sources;
  for (const Printed& printed : waiting) sources.push_back(printed.source);
  const std::string folder = options.stem + ".build";
  std::filesystem::create_directories(folder);
  const Result<Library> library = Library::build(target, sources, folder);
  if (!library.has_value()) {
    report(*waiting.front().tested, "build", library.error().to_string());
    ++tally.wrong;
  }
  for (size_t i = 0; library.has_value() && i < waiting.size(); ++i) {
    const Printed& printed = waiting[i];
    ++tally.ran;
    const auto outputs = library->run(i, printed.program, printed.tested->inputs);
    if (options.only >= 0) fmt::print("// {}\n{}\n", printed.source.label, printed.source.text);
    if (const auto wrong = judge(*printed.tested, outputs)) {
      report(*printed.tested, printed.source.label, *wrong);
      ++tally.wrong;
    }
  }
  waiting.clear();
}

// The greedy plan and plans a few random moves away from it.
std::vector<ir::Plan> plans_of(const Options& options, const Case& tested,
                               const ir::Program& program) {
  Rng rng = Rng(static_cast<uint64_t>(tested.seed)).split("plans");
  std::vector<ir::Plan> plans = {ir::fuse_greedily(program)};
  for (int i = 0; i < options.plans; ++i) {
    ir::Plan plan = plans.front();
    for (int64_t moves = 1 + rng.below(4); moves > 0; --moves) {
      const std::vector<ir::Plan> neighbours = ir::fusion_neighbours(program, plan);
      if (neighbours.empty()) break;
      plan = rng.pick(neighbours);
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

bool check_text(const ir::Program& program) {
  const Result<ir::Program> again = ir::parse_program(ir::print(program));
  return again.has_value() && ir::print(*again) == ir::print(program);
}

void check_case(const Options& options, const Target* target, const Case& tested,
                std::vector<Printed>& waiting, Tally& tally) {
  const Result<ir::Program> program = ir::lower(tested.graph);
  if (!program.has_value()) {
    tally.refuse(program.error().to_string(), tested.seed);
    return;
  }
  const bool verbose = options.only >= 0;
  if (verbose) {
    fmt::print("{}\n{}\n{}\n", tested.source, ir::print(tested.graph), ir::print(*program));
  }
  const auto fail = [&](std::string_view stage, std::string_view what) {
    report(tested, stage, what);
    ++tally.wrong;
  };
  if (const auto wrong = judge(tested, ir::interpret(*program, tested.inputs))) {
    return fail("program", *wrong);
  }
  if (!check_text(*program)) return fail("text form", "does not parse back to itself");
  const std::vector<ir::Plan> plans = plans_of(options, tested, *program);
  for (const ir::Plan& plan : plans) {
    if (verbose) fmt::print("{}\n", ir::print(plan));
    if (const auto wrong = check_plan(tested, *program, plan)) {
      return fail("plan " + digest_of(plan).short_hex(), *wrong);
    }
  }
  ++tally.right;
  if (target) print_sources(*target, tested, *program, plans, waiting, tally);
  if (target && waiting.size() >= kSourcesTogether) run_printed(options, *target, waiting, tally);
}

int run(const Options& options) {
  const Result<std::vector<Case>> cases = read_batch(options.stem);
  if (!cases.has_value()) {
    fmt::print(stderr, "{}\n", cases.error().to_string());
    return 2;
  }
  const TargetInfo* info = options.target.empty() ? nullptr : find_target(options.target);
  if (!options.target.empty() && !info) {
    fmt::print(stderr, "there is no target {}\n", options.target);
    return 2;
  }
  const std::unique_ptr<Target> target = info ? info->make() : nullptr;
  Tally tally;
  std::vector<Printed> waiting;
  for (const Case& tested : *cases) {
    if (options.only >= 0 && tested.seed != options.only) continue;
    check_case(options, target.get(), tested, waiting, tally);
  }
  if (target) run_printed(options, *target, waiting, tally);
  int refused = 0;
  for (const auto& [sentence, refusal] : tally.refused) {
    fmt::print("refused {} times: {} (seed {})\n", refusal.count, sentence, refusal.seed);
    refused += refusal.count;
  }
  fmt::print("{} lowered and planned right, {} kernels run, {} wrong, {} refused\n", tally.right,
             tally.ran, tally.wrong, refused);
  // A generator that is refused too often no longer tests anything.
  const bool toothless = options.only < 0 && refused * 10 > tally.right;
  return tally.wrong == 0 && !toothless ? 0 : 1;
}

// Options come as "--name value" pairs after the batch.
std::optional<Options> parse(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0) return std::nullopt;
  Options options{.stem = argv[1]};
  for (int i = 2; i < argc; i += 2) {
    const int64_t value = std::strtoll(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--plans") == 0) {
      options.plans = static_cast<int>(value);
    } else if (std::strcmp(argv[i], "--only") == 0) {
      options.only = value;
    } else if (std::strcmp(argv[i], "--target") == 0) {
      options.target = argv[i + 1];
    } else {
      return std::nullopt;
    }
  }
  return options;
}

}  // namespace
}  // namespace ke::fuzz

int main(int argc, char** argv) {
  const std::optional<ke::fuzz::Options> options = ke::fuzz::parse(argc, argv);
  if (!options) {
    fmt::print(stderr, "usage: ke_fuzz STEM [--plans N] [--only SEED] [--target NAME]\n");
    return 2;
  }
  return ke::fuzz::run(*options);
}
