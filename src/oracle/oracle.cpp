// SPDX-License-Identifier: Apache-2.0
//
// Starts or forks the Python process and turns calls into requests. The oracle serves one socket; a
// second process, forked from it before anything ran, builds and runs torch.compile and serves
// another.
#include "oracle/oracle.hpp"

#include <csignal>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "base/json.hpp"
#include "oracle/connected_slots.hpp"
#include "oracle/connection.hpp"
#include "oracle/oracle_process.hpp"
#include "oracle/protocol.hpp"
#include "oracle/python_room.hpp"
#include "oracle/zygote.hpp"
#include "os/clock.hpp"
#include "os/file_system.hpp"
#include "os/process.hpp"
#include "os/sandbox.hpp"
#include "os/socket.hpp"

namespace ke {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kProblemBytesMax = 64 << 20;
constexpr int kJudgeFd = 3, kCompileFd = 4;  // numbers in the child

class ProcessOracle final : public Oracle {
 public:
  ProcessOracle(OracleOptions options, std::unique_ptr<oracle::OracleProcess> process,
                os::FileDescriptor judge, os::FileDescriptor compile)
      : options_(std::move(options)),
        process_(std::move(process)),
        main_(std::move(judge), process_.get(), blame()),
        compile_(std::move(compile), nullptr, blame()) {
    if (!options_.device.empty()) connect_slots();
  }

  // In two steps, so that several processes can import and export at the same time.
  Result<void> request_load();
  Result<void> finish_load(Digest digest);

  const Problem& problem() const override { return problem_; }
  Result<InputSet> make_set(const SetRequest& request) override;
  void release(int64_t set_id) override;
  Result<BaselineState> baseline(BaselineKind kind) override;
  Result<Nanoseconds> ring(BaselineKind kind, const std::vector<int64_t>& set_ids) override;
  void set_running(bool running) override;
  void freeze(bool frozen) override;

 private:
  void connect_slots();
  oracle::Blame blame() const {
    return {options_.problem_path, options_.python, options_.limits.oracle_memory_bytes};
  }
  Nanoseconds set_max() const { return options_.limits.oracle_set_max; }
  Result<void> hold_compile(bool held);
  Result<void> build_compile();
  Result<void> await_compile();
  Result<Nanoseconds> ring_on(oracle::Connection& connection, const std::vector<int64_t>& set_ids);

  OracleOptions options_;
  os::SystemClock clock_;
  std::unique_ptr<oracle::OracleProcess> process_;
  oracle::Connection main_;
  oracle::Connection compile_;
  Problem problem_;
  std::vector<std::string> reassigned_;
  BaselineState compile_state_ = BaselineState::absent;
  bool compile_held_ = false;  // stopped, with its compilers
  // Of everything above: calls come from one thread, freeze() from another. A call makes others.
  std::recursive_mutex calls_;
  bool paused_ = false;
  bool frozen_ = false;  // paused for others
  std::optional<oracle::ConnectedSlots> connected_;  // of an oracle on a device
};

void ProcessOracle::connect_slots() {
  oracle::ConnectedSlots::Parts parts;
  parts.main = &main_;
  parts.compile = &compile_;
  parts.problem = &problem_;
  parts.set_max = set_max();
  parts.resume = [this] { resume(); };
  parts.await_compile = [this] { return await_compile(); };
  parts.compile_ready = [this] { return compile_state_ == BaselineState::ready; };
  parts.compile_failed = [this] { compile_state_ = BaselineState::failed; };
  parts.hold_compile = [this](bool held) { return hold_compile(held); };
  parts.lose_float64 = [this] { problem_.float64_truth = false; };
  connected_.emplace(std::move(parts));
  offer(&*connected_, &*connected_);
}

Result<void> ProcessOracle::request_load() {
  const Json start{{"do", "start"},
                   {"options",
                    {{"path", options_.problem_path},
                     {"dtype", options_.dtype},
                     {"precision", enum_name(options_.precision)},
                     {"case", options_.shape_case},
                     {"seed", options_.seed},
                     {"threads", options_.threads},
                     {"cache_dir", options_.cache_dir},
                     {"memory_bytes", options_.limits.oracle_memory_bytes},
                     {"device", options_.device},
                     {"driver", options_.driver}}}};
  TRY(main_.send(start));
  return main_.send(Json{{"do", "load"}});
}

Result<void> ProcessOracle::finish_load(Digest digest) {
  TRY(main_.receive(options_.limits.python_start_max));
  const Json answer = TRY(main_.receive(options_.limits.oracle_load_max));
  oracle::Description description = TRY(oracle::decode_description(answer));
  problem_ = std::move(description.problem);
  problem_.name = options_.problem_name;
  problem_.path = options_.problem_path;
  problem_.digest = digest;
  problem_.shape_case = options_.shape_case;
  problem_.mutated = std::move(description.mutated);
  reassigned_ = std::move(description.reassigned);
  return {};
}

Result<InputSet> ProcessOracle::make_set(const SetRequest& request) {
  const std::lock_guard lock(calls_);
  resume();
  TRY(main_.send(Json{{"do", "make_set"},
                      {"kind", enum_name(request.kind)},
                      {"seed", request.seed},
                      {"with_truth", request.with_truth}}));
  oracle::Descriptors descriptors;
  const Json answer = TRY(main_.receive(descriptors, set_max()));
  oracle::MadeSet made = TRY(oracle::decode_set(answer, problem_, std::move(descriptors)));
  if (!made.float64_truth) problem_.float64_truth = false;
  made.set.request = request;
  return std::move(made.set);
}

void ProcessOracle::release(int64_t set_id) {
  const std::lock_guard lock(calls_);
  const bool was_paused = paused_;
  resume();
  // A failure means that the oracle has gone, and the set with it.
  (void)main_.ask(Json{{"do", "release"}, {"set", set_id}}, set_max());
  if (was_paused) pause();
}

Result<void> ProcessOracle::hold_compile(bool held) {
  if (held == compile_held_ || compile_state_ == BaselineState::absent) return {};
  TRY(main_.ask(Json{{"do", "hold"}, {"held", held}}, set_max()));
  compile_held_ = held;
  return {};
}

Result<void> ProcessOracle::build_compile() {
  resume();
  Json draws = Json::array();
  for (const Draw& draw : problem_.draws) draws.push_back(draw.method);
  TRY(compile_.send(Json{{"do", "build"},
                         {"mutated", problem_.mutated},
                         {"reassigned", reassigned_},
                         {"draws", std::move(draws)}}));
  compile_state_ = BaselineState::building;
  return {};
}

Result<BaselineState> ProcessOracle::baseline(BaselineKind kind) {
  const std::lock_guard lock(calls_);
  if (kind == BaselineKind::eager) return BaselineState::ready;
  if (compile_state_ == BaselineState::absent) {
    TRY(build_compile());
  } else if (compile_state_ == BaselineState::building && compile_.answer_ready()) {
    Result<Json> built = compile_.receive(set_max());
    compile_state_ = built ? BaselineState::ready : BaselineState::failed;
  }
  return compile_state_;
}

Result<void> ProcessOracle::await_compile() {
  const std::lock_guard lock(calls_);
  if (compile_state_ == BaselineState::absent) TRY(build_compile());
  if (compile_state_ == BaselineState::building) {
    const Result<Json> built = compile_.receive(options_.limits.compiled_baseline_max);
    compile_state_ = built ? BaselineState::ready : BaselineState::failed;
  }
  return {};
}

Result<Nanoseconds> ProcessOracle::ring_on(oracle::Connection& connection,
                                           const std::vector<int64_t>& set_ids) {
  TRY(connection.ask(Json{{"do", "ring"}, {"sets", set_ids}}, set_max()));
  const Nanoseconds start = clock_.now();
  TRY(connection.ring(set_max()));
  return clock_.now() - start;
}

Result<Nanoseconds> ProcessOracle::ring(BaselineKind kind, const std::vector<int64_t>& set_ids) {
  const std::lock_guard lock(calls_);
  if (kind == BaselineKind::eager) {
    // The compile process stands still while the bell rings: the oracle sees to that.
    resume();
    return ring_on(main_, set_ids);
  }
  if (compile_state_ != BaselineState::ready) {
    return Error{Errc::unavailable, "the torch.compile baseline is not ready"};
  }
  resume();
  TRY(main_.ask(Json{{"do", "share"}, {"sets", set_ids}}, set_max()));
  Result<Nanoseconds> rung = ring_on(compile_, set_ids);
  if (!rung) compile_state_ = BaselineState::failed;
  return rung;
}

// A failure to stop or continue the compile process means that the oracle has gone; then there is
// nothing to stop.
void ProcessOracle::set_running(bool running) {
  const std::lock_guard lock(calls_);
  if (running) {
    if (frozen_) return;
    if (paused_) process_->signal_group(SIGCONT);
    paused_ = false;
    (void)hold_compile(false);
  } else if (!paused_) {
    (void)hold_compile(true);
    process_->signal_group(SIGSTOP);
    paused_ = true;
  }
}

void ProcessOracle::freeze(bool frozen) {
  const std::lock_guard lock(calls_);
  if (frozen == frozen_) return;
  if (frozen) {
    if (paused_) return;  // its own judge is at it
    pause();
    frozen_ = true;
  } else {
    frozen_ = false;
    resume();
  }
}

// Digest of the file and its sidecar.
Result<Digest> digest_of_problem(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return Error{Errc::invalid,
                 fmt::format("the problem file {} does not exist; check its path", path)};
  }
  if (!fs::is_regular_file(path, error)) {
    return Error{Errc::invalid, fmt::format("{} is not a file; name a Python file", path)};
  }
  Result<std::string> text = os::read_file(path, kProblemBytesMax);
  if (!text) return Error{Errc::invalid, text.error().to_string()};
  const fs::path sidecar = fs::path(path).replace_extension(".toml");
  if (fs::exists(sidecar, error)) {
    text->append(1, '\0').append(TRY(os::read_file(sidecar, kProblemBytesMax)));
  }
  return digest_of(*text);
}

// Forked where that can be had, else started from the interpreter with `script`.
Result<std::unique_ptr<oracle::OracleProcess>> start_python(const oracle::ProcessRequest& request,
                                                            const fs::path& script,
                                                            const OracleOptions& options) {
  if (options.zygote != nullptr) {
    auto forked = options.zygote->fork(request, options.limits.python_start_max);
    if (forked) return forked;
  }
  os::ProcessOptions process;
  process.argv = {request.python, "-I", script.string(), std::to_string(kJudgeFd),
                  std::to_string(kCompileFd)};
  process.environment = request.environment;
  process.error = os::Stream::pipe;
  process.descriptors = {{request.judge, kJudgeFd}, {request.compile, kCompileFd}};
  process.limits.data_bytes = request.memory_bytes;
  process.limits.open_files = oracle::kOpenFilesMax;
  process.limits.processors = request.threads;
  process.room = request.room;
  os::Child child = TRY(os::spawn(process));
  return std::unique_ptr<oracle::OracleProcess>(
      std::make_unique<oracle::StartedProcess>(std::move(child)));
}

// Checked and made absolute.
Result<OracleOptions> settled(OracleOptions options) {
  if (options.dtype != "as-is" && options.dtype != "fp16" && options.dtype != "bf16") {
    return Error{Errc::invalid,
                 fmt::format("there is no type '{}'; use as-is, fp16 or bf16", options.dtype)};
  }
  options.python = TRY(oracle::absolute_python(options.python));
  options.problem_path = fs::absolute(options.problem_path).lexically_normal().string();
  options.cache_dir = fs::absolute(options.cache_dir).lexically_normal().string();
  TRY(os::make_directories(options.cache_dir));
  return options;
}

// Each of torch.compile's workers imports PyTorch, and several problems may share a device.
constexpr const char* kFewCompilers = "TORCHINDUCTOR_COMPILE_THREADS=4";

// A process that has been asked to load its case.
Result<std::unique_ptr<ProcessOracle>> begin_oracle(const OracleOptions& options) {
  auto judge = TRY(os::make_socket_pair(os::SocketKind::stream));
  auto compile = TRY(os::make_socket_pair(os::SocketKind::stream));
  const fs::path script = TRY(oracle::unpack_python(options.cache_dir));
  const os::Room room = TRY(
      oracle::prepare_python_room({.python = options.python,
                                   .problem_folder = fs::path(options.problem_path).parent_path(),
                                   .cache_dir = options.cache_dir,
                                   .memory_bytes = options.limits.oracle_memory_bytes,
                                   .driver = options.device.empty() ? "" : options.driver}));
  oracle::ProcessRequest request;
  request.python = options.python;
  request.room = &room;
  request.judge = judge.second.get();
  request.compile = compile.second.get();
  request.environment = oracle::python_environment(options.cache_dir);
  if (!options.device.empty()) request.environment.emplace_back(kFewCompilers);
  // A driver reserves address space for all of its device's memory; the room's limit remains.
  request.memory_bytes = options.device.empty() ? options.limits.oracle_memory_bytes
                                                : std::numeric_limits<int64_t>::max();
  request.threads = options.threads;
  auto process = TRY(start_python(request, script, options));
  judge.second.reset();
  compile.second.reset();
  auto oracle = std::make_unique<ProcessOracle>(options, std::move(process), std::move(judge.first),
                                                std::move(compile.first));
  TRY(oracle->request_load());
  return oracle;
}

}  // namespace

Result<std::unique_ptr<Oracle>> start_oracle(const OracleOptions& given) {
  const Digest digest = TRY(digest_of_problem(given.problem_path));
  auto oracle = TRY(begin_oracle(TRY(settled(given))));
  TRY(oracle->finish_load(digest));
  return std::unique_ptr<Oracle>(std::move(oracle));
}

Result<std::vector<std::unique_ptr<Oracle>>> start_oracles(const OracleOptions& given) {
  const Digest digest = TRY(digest_of_problem(given.problem_path));
  OracleOptions options = TRY(settled(given));
  std::vector<std::unique_ptr<ProcessOracle>> started;
  started.push_back(TRY(begin_oracle(options)));
  TRY(started.front()->finish_load(digest));
  const int32_t count = started.front()->problem().case_count;
  if (count > options.limits.shape_cases_max) {
    return Error{Errc::invalid,
                 fmt::format("{} has {} shape cases, get_inputs() included, and at most {} are "
                             "judged; list fewer in get_input_cases()",
                             options.problem_path, count, options.limits.shape_cases_max)};
  }
  // A process lives no longer than the thread that started it, so this thread starts them all.
  while (++options.shape_case < count) started.push_back(TRY(begin_oracle(options)));
  std::vector<std::unique_ptr<Oracle>> oracles;
  std::vector<const Problem*> problems;
  for (auto& one : started) {
    if (!oracles.empty()) TRY(one->finish_load(digest));
    problems.push_back(&one->problem());
    oracles.push_back(std::move(one));
  }
  TRY(check_cases(problems));
  return oracles;
}

}  // namespace ke
