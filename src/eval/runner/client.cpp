// SPDX-License-Identifier: Apache-2.0
#include "eval/runner/client.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sstream>
#include <utility>

#include "base/assert.hpp"
#include "os/file_system.hpp"
#include "os/socket.hpp"

namespace ke::runner {
namespace {

constexpr Nanoseconds kHostPatience = std::chrono::seconds(30);  // for work of our own alone
constexpr Nanoseconds kStopPatience = std::chrono::seconds(10);

std::string printable(std::string_view text) {
  std::string out;
  for (char c : text) out += c >= ' ' && c <= '~' ? c : '?';
  return out;
}

std::string_view tensor_kind(Where where) {
  switch (where) {
    case Where::input_guard:
    case Where::input:
      return "an input";
    case Where::output_guard:
    case Where::output:
      return "an output";
    case Where::scratch_guard:
      return "its scratch memory";
    case Where::elsewhere:
      break;
  }
  return "unknown memory";
}

RunnerFailure failure_of_fault(int signal, Where where) {
  switch (where) {
    case Where::input_guard:
    case Where::output_guard:
    case Where::scratch_guard:
      return {Verdict::out_of_bounds,
              fmt::format("it touched memory beyond the bounds of {}", tensor_kind(where))};
    case Where::input:
      return {Verdict::input_mutated, "it tried to write to an input"};
    case Where::output:
    case Where::elsewhere:
      break;
  }
  return {Verdict::crashed,
          fmt::format("it crashed with signal {} ({})", signal, strsignal(signal))};
}

// 'T' or 't' when stopped, 'Z' or 'X' when dead, 0 when unknown.
char state_of(const std::string& stat_path) {
  const Result<std::string> text = os::read_file(stat_path, 4096);
  if (!text) return 0;
  const size_t name_end = text->rfind(')');
  return name_end != std::string::npos && name_end + 2 < text->size() ? (*text)[name_end + 2] : 0;
}

bool all_threads_stopped(int64_t pid) {
  const std::string tasks = fmt::format("/proc/{}/task", pid);
  const Result<std::vector<std::string>> names = os::list_directory(tasks);
  if (!names) return true;  // it is gone
  for (const std::string& name : *names) {
    const char state = state_of(tasks + "/" + name + "/stat");
    if (state != 'T' && state != 't' && state != 'Z' && state != 'X' && state != 0) return false;
  }
  return true;
}

}  // namespace

// --- Runner ------------------------------------------------------------------------------------

Runner::Runner(Host* host, int64_t pid, os::FileDescriptor pidfd, os::FileDescriptor socket,
               std::string protections)
    : host_(host),
      pid_(pid),
      pidfd_(std::move(pidfd)),
      socket_(std::move(socket)),
      protections_(std::move(protections)) {}

Runner::Runner(Runner&& other) noexcept
    : host_(other.host_),
      pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      socket_(std::move(other.socket_)),
      protections_(std::move(other.protections_)),
      stopped_(other.stopped_) {}

Runner& Runner::operator=(Runner&& other) noexcept {
  if (this != &other) {
    end();
    host_ = other.host_;
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
    socket_ = std::move(other.socket_);
    protections_ = std::move(other.protections_);
    stopped_ = other.stopped_;
  }
  return *this;
}

Runner::~Runner() { end(); }

void Runner::end() {
  if (pid_ <= 0) return;
  const Result<HostReply> reaped = host_->reap(pid_);
  if (!reaped) (void)signal(SIGKILL);  // the host is gone, and its children go with it
  pid_ = -1;
  socket_.reset();
}

std::set<std::string> Runner::code_files() const {
  std::set<std::string> names;
  const Result<std::string> maps = os::read_file(fmt::format("/proc/{}/maps", pid_), 16 << 20);
  if (!maps) return names;
  std::istringstream lines(*maps);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string range, rights, offset, device, inode, path;
    words >> range >> rights >> offset >> device >> inode >> path;
    const bool code = rights.find('x') != std::string::npos;
    if (!code || !path.starts_with('/') || path.starts_with("/memfd:")) continue;
    names.insert(path.substr(path.rfind('/') + 1));
  }
  return names;
}

Result<void> Runner::signal(int number) {
  if (syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0) != 0 && errno != ESRCH) {
    return os::system_error(errno, "signal a runner");
  }
  return {};
}

Result<void> Runner::stop() {
  if (pid_ <= 0 || stopped_) return {};
  TRY(signal(SIGSTOP));
  os::Clock& clock = *host_->options_.clock;
  const Nanoseconds deadline = clock.now() + kStopPatience;
  while (!all_threads_stopped(pid_)) {
    if (clock.now() > deadline) return Error{Errc::internal, "a runner does not stop"};
    clock.sleep_for(std::chrono::microseconds(20));
  }
  stopped_ = true;
  return {};
}

Result<void> Runner::resume() {
  if (pid_ <= 0 || !stopped_) return {};
  TRY(signal(SIGCONT));
  stopped_ = false;
  return {};
}

Result<Outcome> Runner::bind(int slot, std::span<const TensorFile> inputs,
                             std::span<const TensorFile> outputs) {
  std::vector<TensorFile> files(inputs.begin(), inputs.end());
  files.insert(files.end(), outputs.begin(), outputs.end());
  const size_t limit = os::kDescriptorsPerMessageMax;
  Outcome outcome = Nanoseconds{0};
  for (size_t first = 0; first == 0 || first < files.size(); first += limit) {
    const size_t end = std::min(files.size(), first + limit);
    Writer packet;
    packet.put(static_cast<int64_t>(RunnerCommand::bind));
    packet.put(slot);
    packet.put(static_cast<int64_t>(first));
    std::vector<int> descriptors;
    for (size_t i = first; i < end; ++i) {
      packet.put(files[i].offset);
      packet.put(files[i].file_bytes);
      packet.put(int64_t{i < inputs.size() ? 0 : 1});
      descriptors.push_back(files[i].fd);
    }
    outcome = TRY(command(packet.bytes(), descriptors, kHostPatience));
    if (failure_of(outcome)) return outcome;
  }
  return outcome;
}

Result<Outcome> Runner::load(int library_fd, const Problem& problem, Nanoseconds timeout) {
  Writer packet;
  packet.put(static_cast<int64_t>(RunnerCommand::load));
  packet.put(static_cast<int64_t>(problem.inputs.size()));
  packet.put(static_cast<int64_t>(problem.outputs.size()));
  for (const std::vector<TensorSpec>* specs : {&problem.inputs, &problem.outputs}) {
    for (const TensorSpec& spec : *specs) {
      packet.put(TensorLayout{spec.dtype, spec.shape, spec.strides});
    }
  }
  const int descriptors[] = {library_fd};
  return command(packet.bytes(), std::span(descriptors, library_fd >= 0 ? 1 : 0), timeout);
}

Result<Outcome> Runner::run(std::span<const int64_t> slots, Nanoseconds timeout) {
  KE_ASSERT(static_cast<int64_t>(slots.size()) <= kCallsPerBatchMax);
  Writer packet;
  packet.put(static_cast<int64_t>(RunnerCommand::run));
  packet.put(std::vector<int64_t>(slots.begin(), slots.end()));
  return command(packet.bytes(), {}, timeout);
}

Result<Outcome> Runner::command(std::string_view packet, std::span<const int> descriptors,
                                Nanoseconds timeout) {
  KE_ASSERT(!stopped_);
  if (!alive()) return Error{Errc::internal, "a dead runner got a command"};
  // A reply that nobody asked for: the kernel knows the socket. (At its end, sending fails below.)
  char byte;
  if (recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
    end();
    return Outcome(RunnerFailure{Verdict::policy_violation, "it wrote to the runner's socket"});
  }
  os::Clock& clock = *host_->options_.clock;
  const Nanoseconds start = clock.now();
  const Result<void> sent = os::send_message(socket_.get(), packet, descriptors, kHostPatience);
  if (!sent) {
    if (sent.error().code == Errc::not_found) return ended_by_itself();
    return sent.error();
  }
  Result<std::optional<os::Message>> answer =
      os::receive_message(socket_.get(), kPacketBytesMax, timeout);
  const Nanoseconds taken = clock.now() - start;
  if (!answer && answer.error().code == Errc::timed_out) {
    end();
    return Outcome(RunnerFailure{Verdict::timed_out, fmt::format("it was still running after {} ms",
                                                                 timeout.count() / 1'000'000)});
  }
  if (!answer || !answer->has_value()) return ended_by_itself();
  const std::optional<RunnerReply> reply = reply_of<RunnerReply>((*answer)->bytes);
  if (!reply) {
    end();
    return Outcome(RunnerFailure{Verdict::policy_violation, "it wrote to the runner's socket"});
  }
  if (reply->ending == Ending::done) return Outcome(taken);
  return failed(*reply);
}

Result<Outcome> Runner::failed(const RunnerReply& reply) {
  end();
  RunnerFailure failure;
  switch (reply.ending) {
    case Ending::done:
      KE_ASSERT(false);
    case Ending::no_library:
      failure = {Verdict::compile_error,
                 fmt::format("the library cannot be loaded: {}", printable(reply.text))};
      break;
    case Ending::no_symbol:
      failure = {Verdict::compile_error, "it does not export ke_launch"};
      break;
    case Ending::bad_scratch:
      failure = {Verdict::crashed,
                 fmt::format("it asks for {} bytes of scratch memory, more than the {} allowed",
                             reply.code, host_->options_.limits.scratch_bytes_max)};
      break;
    case Ending::returned:
      failure = {Verdict::crashed, fmt::format("ke_launch returned {}", reply.code)};
      break;
    case Ending::threw:
      failure = {Verdict::crashed, "an exception left ke_launch"};
      break;
    case Ending::fault:
      failure = failure_of_fault(static_cast<int>(reply.code), reply.where);
      break;
    case Ending::no_memory:
      failure = {Verdict::crashed,
                 fmt::format("the runner has no memory for it: {}", printable(reply.text))};
      break;
  }
  if (failure.detail.empty()) failure = {Verdict::policy_violation, "its reply makes no sense"};
  return Outcome(failure);
}

Result<Outcome> Runner::ended_by_itself() {
  const int64_t pid = std::exchange(pid_, -1);
  const HostReply status = TRY(host_->reap(pid));
  const int number = static_cast<int>(status.signal);
  if (number == SIGSYS) {
    return Outcome(
        RunnerFailure{Verdict::policy_violation, "it used a system call that the sandbox forbids"});
  }
  if (number == SIGKILL) {
    return Outcome(RunnerFailure{Verdict::crashed, "it was killed, most likely out of memory"});
  }
  if (number != 0) return Outcome(failure_of_fault(number, Where::elsewhere));
  return Outcome(RunnerFailure{
      Verdict::crashed, fmt::format("it ended its process with exit code {}", status.exit_code)});
}

// --- Host --------------------------------------------------------------------------------------

Host::Host(HostOptions options, os::Child process, os::FileDescriptor socket)
    : options_(std::move(options)), process_(std::move(process)), socket_(std::move(socket)) {}

Result<std::unique_ptr<Host>> Host::start(const HostOptions& options) {
  KE_ASSERT(options.clock != nullptr && !options.command.empty());
  auto [ours, theirs] = TRY(os::make_socket_pair(os::SocketKind::packets));
  os::ProcessOptions process;
  process.argv = options.command;
  process.environment = os::minimal_environment();
  process.environment.push_back(fmt::format("OMP_NUM_THREADS={}", options.threads));
  process.environment.push_back("OMP_DYNAMIC=false");
  process.descriptors = {{theirs.get(), kHostSocket}};
  process.limits.processors = options.threads;  // also of threads that a kernel starts by itself
  os::Child child = TRY(os::spawn(process).context("cannot start the runner host"));
  return std::unique_ptr<Host>(new Host(options, std::move(child), std::move(ours)));
}

Result<HostReply> Host::ask(std::string_view packet, std::span<const int> descriptors,
                            os::FileDescriptor* received) {
  TRY(os::send_message(socket_.get(), packet, descriptors, kHostPatience)
          .context("the runner host does not listen"));
  std::optional<os::Message> answer =
      TRY(os::receive_message(socket_.get(), kPacketBytesMax, kHostPatience)
              .context("the runner host does not answer"));
  if (!answer) return Error{Errc::internal, "the runner host ended"};
  const std::optional<HostReply> reply = reply_of<HostReply>(answer->bytes);
  if (!reply) return Error{Errc::internal, "the runner host's answer makes no sense"};
  if (!reply->ok) return Error{Errc::internal, reply->text};
  if (received && !answer->descriptors.empty()) *received = std::move(answer->descriptors[0]);
  return *reply;
}

Result<Runner> Host::spawn() {
  auto [ours, theirs] = TRY(os::make_socket_pair(os::SocketKind::packets));
  Writer packet;
  packet.put(static_cast<int64_t>(HostCommand::spawn));
  packet.put(options_.limits.runner_memory_bytes);
  packet.put(options_.threads);
  packet.put(options_.limits.scratch_bytes_max);
  packet.put(options_.libraries ? static_cast<int64_t>(options_.libraries->size()) : -1);
  if (options_.libraries) {
    for (const std::string& path : *options_.libraries) packet.put(path);
  }
  const int descriptors[] = {theirs.get()};
  os::FileDescriptor pidfd;
  const HostReply reply = TRY(ask(packet.bytes(), descriptors, &pidfd));
  if (!pidfd.valid()) return Error{Errc::internal, "the runner host sent no process descriptor"};
  return Runner(this, reply.pid, std::move(pidfd), std::move(ours), reply.text);
}

Result<HostReply> Host::reap(int64_t pid) {
  Writer packet;
  packet.put(static_cast<int64_t>(HostCommand::reap));
  packet.put(pid);
  return ask(packet.bytes(), {}, nullptr);
}

}  // namespace ke::runner
