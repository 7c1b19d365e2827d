// SPDX-License-Identifier: Apache-2.0
//
// The program is compiled for the oldest CPU it runs on, so the loop that measures the peak exists
// in three forms, chosen at run time. Every figure is the best of several repeats: a ceiling is
// wanted, and other work on the machine can only lower it.
#include "eval/profile.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>

#include "base/digest.hpp"
#include "base/json.hpp"
#include "eval/build.hpp"
#include "kernelevolve/thread_pool.hpp"
#include "os/clock.hpp"
#include "os/file_system.hpp"

namespace ke {
namespace {

using Seconds64 = double;

// --- Identity and sizes ------------------------------------------------------------------------

std::string first_line(const std::filesystem::path& path) {
  std::string text = os::read_file(path, 1 << 20).value_or("");
  return text.substr(0, text.find('\n'));
}

std::string cpuinfo_field(const std::string& cpuinfo, std::string_view field) {
  const size_t at = cpuinfo.find(field);
  if (at == std::string::npos) return "";
  const size_t colon = cpuinfo.find(':', at);
  const size_t end = cpuinfo.find('\n', at);
  if (colon == std::string::npos || colon > end) return "";
  return cpuinfo.substr(colon + 2, end - colon - 2);
}

int32_t vector_bytes() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return 64;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 32;
#endif
  return 16;
}

std::string cpu_identity() {
  const std::string cpuinfo = os::read_file("/proc/cpuinfo", 8 << 20).value_or("");
  return fmt::format("{} (family {}, model {}, vectors of {} bits)",
                     cpuinfo_field(cpuinfo, "model name"), cpuinfo_field(cpuinfo, "cpu family"),
                     cpuinfo_field(cpuinfo, "model\t"), 8 * vector_bytes());
}

// "32K", "512K", "32768K" as sysfs writes them.
int64_t size_of(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  if (*end == 'K') value <<= 10;
  if (*end == 'M') value <<= 20;
  return value;
}

void read_cache_sizes(MachineProfile& profile) {
  for (int i = 0; i < 8; ++i) {
    const std::filesystem::path folder =
        fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}", i);
    const std::string level = first_line(folder / "level");
    const int64_t bytes = size_of(first_line(folder / "size"));
    if (bytes <= 0 || first_line(folder / "type") == "Instruction") continue;
    if (level == "1") profile.l1_bytes = bytes;
    if (level == "2") profile.l2_bytes = bytes;
    if (level == "3" || level == "4") profile.llc_bytes = bytes;
  }
  profile.llc_bytes = std::max(profile.llc_bytes, profile.l2_bytes);
}

// --- Arithmetic --------------------------------------------------------------------------------

// Twelve independent chains of multiply-adds hide the latency of two units.
constexpr int kChains = 12;
constexpr int64_t kSteps = 100'000;

template <int kBytes>
struct Vectors {
  typedef float Type __attribute__((vector_size(kBytes)));
};

#define KE_PEAK_LOOP(bytes)                                                  \
  using V = Vectors<bytes>::Type;                                            \
  V chain[kChains];                                                          \
  for (int j = 0; j < kChains; ++j) chain[j] = V{} + seed;                   \
  const V factor = V{} + 0.999f, term = V{} + 0.001f;                        \
  for (int64_t i = 0; i < kSteps; ++i) {                                     \
    _Pragma("GCC unroll 12") for (int j = 0; j < kChains; ++j) {             \
      chain[j] = chain[j] * factor + term;                                   \
    }                                                                        \
  }                                                                          \
  float sum = 0;                                                             \
  for (int j = 0; j < kChains; ++j) {                                        \
    for (size_t k = 0; k < (bytes) / sizeof(float); ++k) sum += chain[j][k]; \
  }                                                                          \
  return sum

#if defined(__x86_64__)
__attribute__((target("avx512f"), optimize("O3", "fp-contract=fast"), noinline)) float peak_64(
    float seed) {
  KE_PEAK_LOOP(64);
}
__attribute__((target("avx2,fma"), optimize("O3", "fp-contract=fast"), noinline)) float peak_32(
    float seed) {
  KE_PEAK_LOOP(32);
}
#endif
__attribute__((optimize("O3", "fp-contract=fast"), noinline)) float peak_16(float seed) {
  KE_PEAK_LOOP(16);
}
#undef KE_PEAK_LOOP

struct PeakJob {
  float (*loop)(float);
  volatile float sink;
};

void run_peak(int64_t, void* raw) {
  PeakJob& job = *static_cast<PeakJob*>(raw);
  job.sink = job.loop(1.0f);
}

// --- Bandwidth ---------------------------------------------------------------------------------

// Plain memory, huge pages wished for, like large tensors have.
class Block {
 public:
  explicit Block(size_t bytes) : bytes_(bytes) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return;
    madvise(mapped, bytes, MADV_HUGEPAGE);
    std::memset(mapped, 1, bytes);
    data_ = static_cast<float*>(mapped);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (data_) munmap(data_, bytes_);
  }
  float* data() const { return data_; }

 private:
  size_t bytes_;
  float* data_ = nullptr;
};

typedef float Quad __attribute__((vector_size(16)));

struct TriadJob {
  float* a;
  const float* b;
  const float* c;
  int64_t elements;  // of each array
  int64_t chunks;
  int64_t repeats;  // passes of each chunk over itself
  bool streaming;
};

__attribute__((optimize("O3"))) void run_triad(int64_t chunk, void* raw) {
  const TriadJob& job = *static_cast<TriadJob*>(raw);
  const int64_t share = job.elements / job.chunks / 16 * 16;
  float* a = job.a + chunk * share;
  const float *b = job.b + chunk * share, *c = job.c + chunk * share;
  for (int64_t repeat = 0; repeat < job.repeats; ++repeat) {
    for (int64_t i = 0; i < share; i += 4) {
      Quad x, y;
      std::memcpy(&x, b + i, sizeof x);
      std::memcpy(&y, c + i, sizeof y);
      const Quad sum = x + 3.0f * y;
#if defined(__x86_64__)
      if (job.streaming) {
        __builtin_ia32_movntps(a + i, sum);
        continue;
      }
#endif
      std::memcpy(a + i, &sum, sizeof sum);
    }
  }
}

// Seconds of the fastest of several runs.
Seconds64 best_of(int runs, const std::function<void()>& work) {
  os::SystemClock clock;
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    const Nanoseconds start = clock.now();
    work();
    best = std::min(best, static_cast<double>((clock.now() - start).count()) * 1e-9);
  }
  return best;
}

double peak_flops(int32_t threads) {
  PeakJob job{peak_16, 0};
#if defined(__x86_64__)
  if (vector_bytes() == 64) job.loop = peak_64;
  if (vector_bytes() == 32) job.loop = peak_32;
#endif
  ThreadPool pool(threads);
  const double operations = 2.0 * kChains * static_cast<double>(kSteps) * threads *
                            (vector_bytes() / static_cast<double>(sizeof(float)));
  return operations / best_of(20, [&] { pool.parallel_for(threads, run_peak, &job); });
}

// Bytes read and written per second; every array counts once.
double triad_bandwidth(int32_t threads, int64_t array_bytes, int64_t repeats, bool streaming,
                       int runs) {
  const Block a(static_cast<size_t>(array_bytes)), b(static_cast<size_t>(array_bytes)),
      c(static_cast<size_t>(array_bytes));
  if (!a.data() || !b.data() || !c.data()) return 0;
  TriadJob job{a.data(), b.data(), c.data(), array_bytes / 4, threads, repeats, streaming};
  ThreadPool pool(threads);
  const double seconds = best_of(runs, [&] { pool.parallel_for(threads, run_triad, &job); });
  return 3.0 * static_cast<double>(array_bytes) * static_cast<double>(repeats) / seconds;
}

double memory_bandwidth(int32_t threads, int64_t llc_bytes) {
  const int64_t array = std::clamp<int64_t>(2 * llc_bytes, 16 << 20, 128 << 20);
  return std::max(triad_bandwidth(threads, array, 1, false, 5),
                  triad_bandwidth(threads, array, 1, true, 5));
}

std::filesystem::path file_of(const std::filesystem::path& cache, int32_t threads) {
  const std::string key = fmt::format("{}\x1f{}\x1f{}", cpu_identity(), threads, kHarnessVersion);
  return cache / fmt::format("machine-{}.json", digest_of(key).short_hex());
}

}  // namespace

Result<MachineProfile> measure_profile(const std::filesystem::path& cache, int32_t threads) {
  MachineProfile profile;
  profile.cpu = cpu_identity();
  profile.threads = std::max(1, threads);
  profile.vector_bytes = vector_bytes();
  read_cache_sizes(profile);
  profile.flops_f32_single = peak_flops(1);
  profile.flops_f32_all = std::max(profile.flops_f32_single, peak_flops(profile.threads));
  profile.bandwidth_single = memory_bandwidth(1, profile.llc_bytes);
  profile.bandwidth_all =
      std::max(profile.bandwidth_single, memory_bandwidth(profile.threads, profile.llc_bytes));
  // Three arrays of an eighth each: in the last-level cache, and beyond the second level's.
  const int64_t array = std::max<int64_t>(64 << 10, profile.llc_bytes / 8 / 4096 * 4096);
  profile.bandwidth_llc_all =
      std::max(profile.bandwidth_all, triad_bandwidth(profile.threads, array, 8, false, 5));
  TRY(os::make_directories(cache));
  TRY(os::write_file_atomically(file_of(cache, threads), dump_json(encode(profile))));
  return profile;
}

Result<MachineProfile> load_or_measure_profile(const std::filesystem::path& cache,
                                               int32_t threads) {
  const Result<std::string> text = os::read_file(file_of(cache, threads), 1 << 16);
  if (text) {
    const Result<Json> json = parse_json(*text);
    if (json) {
      Result<MachineProfile> profile = decode_machine_profile(*json);
      if (profile) return profile;
    }
  }
  return measure_profile(cache, threads);
}

}  // namespace ke
