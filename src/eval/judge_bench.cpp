// SPDX-License-Identifier: Apache-2.0
//
// How long one evaluation of a small kernel takes, by phase: sources that differ in one constant,
// so that nothing comes from the cache. The oracle is fake and answers at once.
#include <cstdio>

#include "eval/judge_fixture.hpp"
#include "eval/profile.hpp"
#include "eval/runner/host.hpp"
#include "eval/runner/protocol.hpp"
#include "eval/statistics.hpp"
#include "kernelevolve/thread_pool.hpp"
#include "os/clock.hpp"

namespace ke {
namespace {

int bench_evaluations(int count) {
  judge_test::JudgeBench bench(self_test_problem(), 64);
  const std::string plain = judge_test::source_of(judge_test::kData / "honest" / "pool.cpp");
  os::SystemClock clock;
  std::vector<int64_t> build, judge, whole;
  for (int i = 0; i < count; ++i) {
    const Nanoseconds start = clock.now();
    const std::string source =
        plain + "extern \"C\" int variant" + std::to_string(i) + "() { return 1; }\n";
    const Evaluation evaluation = bench.judge(source, {.effort = Effort::screen});
    if (evaluation.verdict != Verdict::accepted) {
      std::printf("rejected: %s\n", evaluation.detail.c_str());
      return 1;
    }
    if (i == 0) continue;  // makes the sets and starts the host
    build.push_back(evaluation.build_ms);
    judge.push_back(evaluation.judge_ms);
    whole.push_back((clock.now() - start).count() / 1'000'000);
  }
  std::printf("evaluation, median of %zu: build %ld ms, judge %ld ms, together %ld ms\n",
              build.size(), static_cast<long>(median_ns(build)),
              static_cast<long>(median_ns(judge)), static_cast<long>(median_ns(whole)));
  const Evaluation checked = bench.judge(plain, {.effort = Effort::full, .measure = false});
  std::printf("correctness alone: %ld ms\n", static_cast<long>(checked.judge_ms));
  return 0;
}

void bench_thread_pool() {
  ThreadPool pool(2);
  os::SystemClock clock;
  std::vector<int64_t> warm, cold;
  const auto nothing = [](int64_t, void*) {};
  for (int i = 0; i < 2001; ++i) {
    const Nanoseconds start = clock.now();
    pool.parallel_for(2, nothing, nullptr);
    warm.push_back((clock.now() - start).count());
  }
  for (int i = 0; i < 51; ++i) {
    clock.sleep_for(std::chrono::milliseconds(2));
    const Nanoseconds start = clock.now();
    pool.parallel_for(2, nothing, nullptr);
    cold.push_back((clock.now() - start).count());
  }
  std::printf("parallel_for on 2 threads: %ld ns awake, %ld ns asleep\n",
              static_cast<long>(median_ns(warm)), static_cast<long>(median_ns(cold)));
}

int bench_profile() {
  const os::TemporaryDirectory folder = *os::TemporaryDirectory::create();
  os::SystemClock clock;
  const Nanoseconds start = clock.now();
  const Result<MachineProfile> measured = measure_profile(folder.path(), 2);
  if (!measured) return 1;
  const double seconds = static_cast<double>((clock.now() - start).count()) * 1e-9;
  std::printf("profile in %.2f s: %s\n  %.0f / %.0f GFLOP/s, %.1f / %.1f GB/s, cache %.1f GB/s\n",
              seconds, measured->cpu.c_str(), measured->flops_f32_single * 1e-9,
              measured->flops_f32_all * 1e-9, measured->bandwidth_single * 1e-9,
              measured->bandwidth_all * 1e-9, measured->bandwidth_llc_all * 1e-9);
  return 0;
}

}  // namespace
}  // namespace ke

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "__runner-host") {
    return ke::runner_host_main(ke::runner::kHostSocket);
  }
  ke::bench_thread_pool();
  if (argc > 1 && std::string_view(argv[1]) == "pool") return 0;
  if (ke::bench_profile() != 0) return 1;
  return ke::bench_evaluations(12);
}
