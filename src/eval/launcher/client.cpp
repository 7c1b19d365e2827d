// SPDX-License-Identifier: Apache-2.0
#include "eval/launcher/client.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "base/assert.hpp"
#include "os/cuda_api.hpp"
#include "os/cuda_room.hpp"
#include "os/sandbox.hpp"
#include "os/shared_memory.hpp"
#include "os/socket.hpp"

namespace ke::launcher {
namespace {

constexpr Nanoseconds kPatience = std::chrono::seconds(60);  // for work of our own alone
constexpr Nanoseconds kGlance = std::chrono::milliseconds(100);
constexpr int32_t kProcessesMax = 64;                        // a driver has threads

std::string printable_only(std::string_view text) {
  std::string out;
  for (const char c : text) out += c >= ' ' && c <= '~' ? c : '?';
  return out;
}

Result<os::Room> prepare_room(const Options& options) {
  os::RoomOptions room;
  room.paths = os::toolchain_paths();
  os::cuda::show_device(room, options.driver);
  room.paths.push_back({.host = options.command.front(), .inside = {}, .writable = false});
  room.system_calls = os::SystemCalls::all;  // the program is ours; the driver's calls are its own
  room.processes_max = kProcessesMax;
  return os::Room::prepare(room);
}

}  // namespace

Result<std::unique_ptr<Launcher>> Launcher::start(const Options& options) {
  KE_ASSERT(options.clock != nullptr && !options.command.empty());
  const os::Room room = TRY(prepare_room(options));
  auto [ours, theirs] = TRY(os::make_socket_pair(os::SocketKind::packets));
  os::ProcessOptions process;
  process.argv = options.command;
  process.environment = os::minimal_environment();
  process.descriptors = {{theirs.get(), kSocket}};
  process.room = &room;
  os::Child child = TRY(os::spawn(process).context("cannot start the launcher"));
  theirs.reset();
  Process started;
  started.process = std::make_unique<oracle::StartedProcess>(std::move(child));
  started.socket = std::move(ours);
  return open(std::move(started), options);
}

Result<std::unique_ptr<Launcher>> Launcher::open(Process process, const Options& options) {
  std::unique_ptr<Launcher> launcher(new Launcher(options, std::move(process)));
  runner::Writer packet;
  packet.put(static_cast<int64_t>(Command::open));
  packet.put(options.ordinal);
  const Outcome opened = TRY(launcher->command(packet.bytes(), {}, options.start_max));
  if (const LaunchFailure* failure = failure_of(opened)) {
    return Error{Errc::unavailable, failure->detail};
  }
  return launcher;
}

Result<Outcome> Launcher::bind(int64_t slot, std::span<const DeviceTensor> inputs,
                               std::span<const DeviceTensor> outputs, bool inputs_writable) {
  std::vector<std::pair<DeviceTensor, bool>> tensors;
  for (const DeviceTensor& tensor : inputs) tensors.emplace_back(tensor, inputs_writable);
  const auto input_count = static_cast<int64_t>(inputs.size());
  for (const DeviceTensor& tensor : outputs) tensors.emplace_back(tensor, true);
  const size_t limit = os::kDescriptorsPerMessageMax;
  Outcome outcome;
  for (size_t first = 0; first == 0 || first < tensors.size(); first += limit) {
    const size_t end = std::min(tensors.size(), first + limit);
    runner::Writer packet;
    packet.put(static_cast<int64_t>(Command::bind));
    packet.put(slot);
    packet.put(int64_t{first == 0 ? 1 : 0});
    std::vector<int> descriptors;
    for (size_t i = first; i < end; ++i) {
      const auto& [tensor, writable] = tensors[i];
      packet.put(int64_t{static_cast<int64_t>(i) < input_count ? 0 : 1});
      packet.put(int64_t{writable ? 1 : 0});
      packet.put(tensor.offset);
      packet.put(tensor.memory_bytes);
      descriptors.push_back(tensor.fd);
    }
    outcome = TRY(command(packet.bytes(), descriptors, kPatience));
    if (failure_of(outcome)) return outcome;
  }
  return outcome;
}

Result<Outcome> Launcher::load(std::string_view code, const target::LaunchPlan& plan) {
  KE_ASSERT(!code.empty());
  const os::SharedMemory memory = TRY(os::SharedMemory::create(static_cast<int64_t>(code.size())));
  std::memcpy(memory.data(), code.data(), code.size());
  runner::Writer packet;
  packet.put(static_cast<int64_t>(Command::load));
  packet.put(plan.scratch_bytes);
  packet.put(static_cast<int64_t>(plan.launches.size()));
  for (const target::Launch& launch : plan.launches) {
    packet.put(launch.kernel);
    for (const int64_t extent : launch.grid) packet.put(extent);
    for (const int64_t extent : launch.block) packet.put(extent);
    packet.put(launch.shared_bytes);
    std::vector<int64_t> arguments;
    for (const target::LaunchArgument& argument : launch.arguments) {
      arguments.push_back(static_cast<int64_t>(argument.kind));
      arguments.push_back(argument.value);
    }
    packet.put(arguments);
  }
  packet.put(static_cast<int64_t>(code.size()));
  const int descriptors[] = {memory.fd()};
  return command(packet.bytes(), descriptors, kPatience);
}

Result<Outcome> Launcher::load_module(std::string_view source, std::string_view info,
                                      Nanoseconds timeout) {
  holds_module_ = true;
  runner::Writer packet;
  packet.put(static_cast<int64_t>(Command::load_module));
  std::vector<os::SharedMemory> memories;
  std::vector<int> descriptors;
  for (const std::string_view text : {source, info}) {
    packet.put(static_cast<int64_t>(text.size()));
    memories.push_back(TRY(os::SharedMemory::create(static_cast<int64_t>(text.size()))));
    std::memcpy(memories.back().data(), text.data(), text.size());
    descriptors.push_back(memories.back().fd());
  }
  return command(packet.bytes(), descriptors, timeout);
}

Result<Outcome> Launcher::collect(std::span<const int64_t> slots, Nanoseconds timeout) {
  runner::Writer packet;
  packet.put(static_cast<int64_t>(Command::collect));
  packet.put(std::vector<int64_t>(slots.begin(), slots.end()));
  return command(packet.bytes(), {}, timeout);
}

Result<Outcome> Launcher::stain(std::byte value) {
  runner::Writer packet;
  packet.put(static_cast<int64_t>(Command::stain));
  packet.put(std::to_integer<int64_t>(value));
  return command(packet.bytes(), {}, kPatience);
}

void Launcher::set_running(bool running) {
  if (alive_) process_.process->signal_room(running ? SIGCONT : SIGSTOP);
}

Result<Outcome> Launcher::run(std::span<const int64_t> slots, const RunOptions& options,
                              Nanoseconds timeout) {
  KE_ASSERT(static_cast<int64_t>(slots.size()) <= kCallsPerBatchMax);
  runner::Writer packet;
  packet.put(static_cast<int64_t>(Command::run));
  packet.put(static_cast<int64_t>(options.mode));
  packet.put(options.flush_bytes);
  packet.put(std::vector<int64_t>(slots.begin(), slots.end()));
  return command(packet.bytes(), {}, timeout);
}

// A module's room is looked at meanwhile: its kernel may not know limits. Ends early when it takes
// too much.
Result<std::optional<os::Message>> Launcher::await(Nanoseconds timeout) const {
  if (!holds_module_) return os::receive_message(process_.socket.get(), kPacketBytesMax, timeout);
  const Nanoseconds end = options_.clock->now() + timeout;
  while (true) {
    const Nanoseconds left = end - options_.clock->now();
    auto answer = os::receive_message(process_.socket.get(), kPacketBytesMax,
                                      std::clamp<Nanoseconds>(left, Nanoseconds(0), kGlance));
    if (answer || answer.error().code != Errc::timed_out || left <= kGlance) return answer;
    if (!greed_of_module().empty()) return answer;
  }
}

// What its processes take too much of; empty where they don't.
std::string Launcher::greed_of_module() const {
  if (!holds_module_) return "";
  const os::RoomUse use = process_.process->room_use();
  if (use.processes > options_.module_processes_max) {
    return fmt::format("it has {} processes, more than the {} that it may have", use.processes,
                       options_.module_processes_max);
  }
  if (use.memory_bytes > options_.module_memory_bytes) {
    return fmt::format("it takes {} MiB of the processor's memory, more than the {} that it may",
                       use.memory_bytes >> 20, options_.module_memory_bytes >> 20);
  }
  return "";
}

Result<Outcome> Launcher::command(std::string_view packet, std::span<const int> descriptors,
                                  Nanoseconds timeout) {
  if (!alive_) return Error{Errc::internal, "a dead launcher got a command"};
  auto sent = os::send_message(process_.socket.get(), packet, descriptors, kPatience);
  if (!sent) {
    return broken({sent.error().code,
                   fmt::format("the launcher does not listen: {}", sent.error().to_string())});
  }
  auto answer = await(timeout);
  if (const std::string greed = answer ? "" : greed_of_module(); !greed.empty()) {
    end();
    return Outcome(LaunchFailure{Verdict::crashed, greed, false});
  }
  if (!answer && answer.error().code == Errc::timed_out) {
    end();
    return Outcome(LaunchFailure{
        Verdict::timed_out,
        fmt::format("it was still running after {} ms", timeout.count() / 1'000'000), false});
  }
  if (!answer || !answer->has_value()) {
    const auto status = process_.process->wait(std::chrono::seconds(2));
    const std::string how = status && *status ? (*status)->to_string() : "an unknown state";
    end();
    // A launcher of ours never ends by itself; a candidate's own code may end its process.
    if (holds_module_) {
      return Outcome(LaunchFailure{Verdict::crashed, "its process ended with " + how, false});
    }
    return Error{Errc::internal, "the launcher ended with " + how};
  }
  const std::string& bytes = (*answer)->bytes;
  const auto reply =
      runner::reply_of<LauncherReply>(std::string_view(bytes).substr(0, sizeof(LauncherReply)));
  if (!reply) return broken({Errc::internal, "the launcher's answer makes no sense"});
  if (reply->ending != Ending::done) return failed(*reply);
  const std::string_view rest = std::string_view(bytes).substr(sizeof(LauncherReply));
  if (rest.empty()) return Outcome(std::vector<int64_t>());
  runner::Reader reader(rest);
  std::vector<int64_t> times = reader.integers();
  if (!reader.ok()) return broken({Errc::internal, "the launcher's answer makes no sense"});
  return Outcome(std::move(times));
}

Result<Outcome> Launcher::failed(const LauncherReply& reply) {
  end();
  const std::string text = printable_only(reply.text);
  const auto failure = [](Verdict verdict, std::string detail) {
    return Outcome(LaunchFailure{verdict, std::move(detail), false});
  };
  switch (reply.ending) {
    case Ending::no_device:
      return failure(Verdict::crashed, text);
    case Ending::bad_code:
      return failure(Verdict::compile_error, text);
    case Ending::no_kernel:
      return failure(Verdict::compile_error,
                     fmt::format("a launch line names {}, which is no kernel of the source", text));
    case Ending::bad_launch:
      return failure(Verdict::crashed, text);
    case Ending::no_memory:
      return failure(Verdict::crashed, fmt::format("the device has no memory for it: {}", text));
    case Ending::bad_result:
      return failure(Verdict::wrong_output, text);
    case Ending::exception:
      return failure(Verdict::crashed, text);
    case Ending::fault: {
      const bool illegal = reply.code == os::cuda::kIllegalAddress;
      return Outcome(
          LaunchFailure{illegal ? Verdict::out_of_bounds : Verdict::crashed,
                        illegal ? "it touched memory beyond its tensors, or wrote to an input"
                                : fmt::format("the device stopped it: {}", text),
                        illegal});
    }
    case Ending::done:
    case Ending::misunderstood:
      break;
  }
  return broken({Errc::internal, text.empty()
                                     ? "the launcher and the judge misunderstand each other"
                                     : "the launcher misunderstood: " + text});
}

// What ours never does is an error. A process that a candidate's own code runs in may say anything,
// and no candidate may end a search.
Result<Outcome> Launcher::broken(Error error) {
  end();
  if (!holds_module_) return error;
  return Outcome(LaunchFailure{
      Verdict::crashed, "its process broke the protocol: " + error.message, false});
}

void Launcher::end() {
  process_.process->kill();
  process_.socket.reset();
  alive_ = false;
}

}  // namespace ke::launcher
