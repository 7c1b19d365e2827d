// SPDX-License-Identifier: Apache-2.0
//
// The room's init is a bare interpreter that waits for the end of its standard input; the oracle
// moves in beside it. What happens to the oracle comes over the socket `news`.
#include "oracle/zygote.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "base/json.hpp"
#include "domain/limits.hpp"
#include "oracle/python_room.hpp"
#include "os/clock.hpp"
#include "os/file_system.hpp"
#include "os/socket.hpp"

namespace ke::oracle {

namespace {

constexpr int kSocketFd = 3;                 // the number in the zygote
constexpr int64_t kNewsBytesMax = 64 << 10;  // a line
constexpr Nanoseconds kRequestMax = std::chrono::seconds(20);
constexpr Nanoseconds kEnterMax = std::chrono::seconds(60);    // the second one waits for imports
constexpr Nanoseconds kLastNewsMax = std::chrono::seconds(5);  // from SIGKILL to how it ended
constexpr const char* kKeep = "import os; os.read(0, 1)";

// A process whose parent is the zygote's usher.
class ForkedProcess final : public OracleProcess {
 public:
  ForkedProcess(os::Child keeper, os::FileDescriptor news, os::FileDescriptor error)
      : keeper_(std::move(keeper)),
        news_(std::move(news)),
        reader_(news_.get(), kNewsBytesMax),
        error_(std::move(error)) {}
  ~ForkedProcess() override { kill(); }

  // Until it is in its room.
  Result<void> enter(Nanoseconds timeout);

  Result<std::optional<os::ExitStatus>> wait(Nanoseconds timeout) override;
  void signal_group(int signal) override {
    if (pid_ > 0 && !status_) ::kill(-pid_, signal);
  }
  void signal_room(int signal) override {
    if (pid_ > 0 && !status_) os::signal_room(pid_, signal);
  }
  os::RoomUse room_use() const override {
    return pid_ > 0 && !status_ ? os::use_of_room(pid_) : os::RoomUse();
  }
  void kill() override;
  int error() const override { return error_.get(); }
  std::string protections() const override { return keeper_.report().protections(); }

 private:
  void end(os::ExitStatus status);

  os::Child keeper_;  // the room's init
  os::FileDescriptor news_;
  os::LineReader reader_;
  os::FileDescriptor error_;
  pid_t pid_ = 0;
  std::optional<os::ExitStatus> status_;
};

Result<void> ForkedProcess::enter(Nanoseconds timeout) {
  os::SystemClock clock;
  const Nanoseconds deadline = clock.now() + timeout;
  bool entered = false;
  while (!entered || pid_ == 0) {
    const auto line = TRY(reader_.next(std::max(deadline - clock.now(), Nanoseconds{0})));
    if (!line) return Error{Errc::not_found, "the zygote has ended"};
    const Json news = TRY(parse_json(line->bytes));
    if (const auto error = news.find("error"); error != news.end() && error->is_string()) {
      return Error{Errc::unavailable, error->get<std::string>()};
    }
    if (const auto pid = news.find("pid"); pid != news.end() && pid->is_number_integer()) {
      pid_ = pid->get<pid_t>();
    }
    entered = entered || news.contains("entered");
  }
  return {};
}

Result<std::optional<os::ExitStatus>> ForkedProcess::wait(Nanoseconds timeout) {
  if (status_) return status_;
  Result<std::optional<os::Message>> line = reader_.next(timeout);
  if (!line && line.error().code == Errc::timed_out) return std::optional<os::ExitStatus>();
  if (!line) return line.error();
  os::ExitStatus status{.signal = SIGKILL};  // when the usher itself was killed
  if (*line) {
    const Json news = TRY(parse_json((*line)->bytes));
    const auto number = [&](const char* name) {
      const auto found = news.find(name);
      return found != news.end() && found->is_number_integer() ? found->get<int>() : 0;
    };
    status = {.code = number("exited"), .signal = number("signal")};
  }
  end(status);
  return status_;
}

// The oracle's number is its own until `news` is closed: the usher waits for that.
void ForkedProcess::end(os::ExitStatus status) {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);  // whoever is left of the group
  status_ = status;
  news_.reset();
  (void)keeper_.kill();
}

void ForkedProcess::kill() {
  if (status_) return;
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
  }
  if (pid_ > 0) (void)wait(kLastNewsMax);
  if (!status_) end(os::ExitStatus{.signal = SIGKILL});
}

Result<os::Child> start_keeper(const ProcessRequest& request) {
  os::ProcessOptions process;
  process.argv = {request.python, "-I", "-S", "-c", kKeep};
  process.environment = os::minimal_environment();
  process.input = os::Stream::pipe;
  process.room = request.room;
  return os::spawn(process);
}

Result<std::pair<os::FileDescriptor, os::FileDescriptor>> error_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os::system_error(errno, "make a pipe");
  return std::pair{os::FileDescriptor(ends[0]), os::FileDescriptor(ends[1])};
}

}  // namespace

std::string Zygote::why_not() const {
  const std::lock_guard lock(mutex_);
  return why_not_;
}

pid_t Zygote::pid() const {
  const std::lock_guard lock(mutex_);
  return running_ ? running_->child.pid() : 0;
}

Result<Zygote::Running> Zygote::start(const std::string& python, Nanoseconds start_max) {
  // Where no problem could have left anything; read while starting and not needed afterwards.
  const auto files = TRY(os::TemporaryDirectory::create("kernelevolve-zygote"));
  TRY(write_python(files.path()));
  auto sockets = TRY(os::make_socket_pair(os::SocketKind::stream));
  os::ProcessOptions process;
  process.argv = {python, "-I", "-B", (files.path() / "zygote.py").string(),
                  std::to_string(kSocketFd)};
  process.environment = python_environment(files.path(), files.path().string());
  process.working_directory = "/";
  process.descriptors = {{sockets.second.get(), kSocketFd}};
  process.limits.open_files = kOpenFilesMax;
  os::Child child = TRY(os::spawn(process));
  sockets.second.reset();
  os::LineReader reader(sockets.first.get(), kNewsBytesMax);
  const auto line = TRY(reader.next(start_max));
  if (!line) return Error{Errc::unavailable, "the zygote ended while importing torch"};
  const Json answer = TRY(parse_json(line->bytes));
  if (const auto error = answer.find("error"); error != answer.end() && error->is_object()) {
    return Error{Errc::unavailable, error->value("message", "")};
  }
  return Running{std::move(child), std::move(sockets.first), python};
}

// Called with the mutex held, as are send() and try_fork().
Result<void> Zygote::ensure(const std::string& python, Nanoseconds start_max) {
  if (refused_python_ == python) return Error{Errc::unavailable, why_not_};
  if (running_ && running_->python == python) {
    const Result<std::optional<os::ExitStatus>> ended = running_->child.wait(Nanoseconds{0});
    if (ended && !*ended) return {};
  }
  running_.reset();
  Result<Running> started = start(python, start_max);
  if (!started) {
    refused_python_ = python;
    return Error{Errc::unavailable, started.error().to_string()};
  }
  running_.emplace(std::move(*started));
  return {};
}

Result<void> Zygote::send(const ProcessRequest& request, const os::Door& door, int keeper,
                          int error, int news) {
  std::vector<int> descriptors{keeper, request.judge, request.compile, error, news};
  if (door.ruleset.valid()) descriptors.push_back(door.ruleset.get());
  for (const os::FileDescriptor& cgroup : door.cgroups) descriptors.push_back(cgroup.get());
  const Json announced{{"descriptors", descriptors.size()}};
  const Json wish{{"namespaces", door.namespaces},
                  {"landlock", door.ruleset.valid() ? 1 : 0},
                  {"environment", request.environment},
                  {"data_bytes", request.memory_bytes},
                  {"processors", request.threads},
                  {"role", request.role},
                  {"driver", request.driver}};
  return os::send_message(running_->socket.get(),
                          dump_json(announced) + "\n" + dump_json(wish) + "\n", descriptors,
                          kRequestMax);
}

Result<std::unique_ptr<OracleProcess>> Zygote::try_fork(const ProcessRequest& request,
                                                        Nanoseconds start_max) {
  os::Child keeper = TRY(start_keeper(request));
  const os::Door door = TRY(os::open_door(*request.room, keeper));
  TRY(ensure(request.python, start_max));
  auto error = TRY(error_pipe());
  auto news = TRY(os::make_socket_pair(os::SocketKind::stream));
  TRY(send(request, door, keeper.pidfd(), error.second.get(), news.second.get()));
  error.second.reset();
  news.second.reset();
  auto forked = std::make_unique<ForkedProcess>(std::move(keeper), std::move(news.first),
                                                std::move(error.first));
  const Result<void> entered = forked->enter(kEnterMax);
  if (!entered) {
    if (entered.error().code == Errc::unavailable) refused_python_ = request.python;
    return entered.error();
  }
  return std::unique_ptr<OracleProcess>(std::move(forked));
}

Result<std::unique_ptr<OracleProcess>> Zygote::fork(const ProcessRequest& request,
                                                    Nanoseconds start_max) {
  const std::lock_guard lock(mutex_);
  Result<std::unique_ptr<OracleProcess>> forked = try_fork(request, start_max);
  // It may have ended between two uses: once more, with a new one.
  if (!forked && forked.error().code == Errc::not_found) {
    running_.reset();
    forked = try_fork(request, start_max);
  }
  why_not_ = forked ? "" : forked.error().to_string();
  if (!forked) return Error{Errc::unavailable, why_not_};
  return forked;
}

Result<void> probe_zygote(const std::string& python, const std::filesystem::path& cache_dir) {
  const Limits limits;
  const std::filesystem::path folder = std::filesystem::absolute(cache_dir).lexically_normal();
  const std::string program = std::filesystem::absolute(python).lexically_normal().string();
  const os::Room room = TRY(prepare_python_room({.python = program,
                                                 .problem_folder = folder,
                                                 .cache_dir = folder,
                                                 .memory_bytes = limits.oracle_memory_bytes}));
  const auto judge = TRY(os::make_socket_pair(os::SocketKind::stream));
  const auto compile = TRY(os::make_socket_pair(os::SocketKind::stream));
  ProcessRequest request;
  request.python = program;
  request.room = &room;
  request.judge = judge.second.get();
  request.compile = compile.second.get();
  request.environment = python_environment(folder);
  request.memory_bytes = limits.oracle_memory_bytes;
  Zygote zygote;
  TRY(zygote.fork(request, limits.python_start_max));
  return {};
}

}  // namespace ke::oracle
