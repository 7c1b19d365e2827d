// SPDX-License-Identifier: Apache-2.0
//
// A reader over the socket's lines that keeps the last stage the oracle reported: a process that
// ends or hangs in the user's code is the problem's fault, before that it is Python's or torch's.
#include "oracle/connection.hpp"

#include <unistd.h>

#include <csignal>

#include "base/json.hpp"
#include "os/clock.hpp"

namespace ke::oracle {

namespace {

constexpr int64_t kLineBytesMax = 256 << 20;  // a graph of many thousand nodes with constants
constexpr Nanoseconds kSendMax = std::chrono::seconds(20);
constexpr Nanoseconds kEndMax = std::chrono::seconds(5);  // from end of stream to end of process
constexpr int64_t kErrorTextBytes = 2000;

// The last line of what the process wrote to its standard error, or nothing.
std::string last_words(const OracleProcess& process) {
  std::string text;
  while (process.error() >= 0 && text.size() < kErrorTextBytes) {
    Result<bool> readable = os::wait_readable(process.error(), Nanoseconds{0});
    char buffer[4096];
    if (!readable || !*readable) break;
    const ssize_t count = read(process.error(), buffer, sizeof buffer);
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

Error answered_error(const Json& error) {
  Result<Fields> fields = Fields::of(error, "the oracle's error");
  if (!fields) return fields.error();
  Result<std::string> code = fields->get<std::string>("code");
  Result<std::string> message = fields->get<std::string>("message");
  if (!code || !message) return Error{Errc::internal, "the oracle answered without a reason"};
  Errc errc = Errc::internal;
  if (*code == "invalid") errc = Errc::invalid;
  if (*code == "unavailable") errc = Errc::unavailable;
  return Error{errc, *message};
}

}  // namespace

Connection::Connection(os::FileDescriptor socket, OracleProcess* process, Blame blame)
    : socket_(std::move(socket)),
      reader_(socket_.get(), kLineBytesMax),
      process_(process),
      blame_(std::move(blame)) {}

Result<void> Connection::send(const Json& request) {
  if (dead_) return Error{Errc::unavailable, "the oracle has ended"};
  const std::string line = dump_json(request) + "\n";
  Result<void> sent = os::send_message(socket_.get(), line, {}, kSendMax);
  if (!sent && sent.error().code == Errc::not_found) return ended();
  return sent;
}

Result<Json> Connection::ask(const Json& request, Nanoseconds timeout) {
  TRY(send(request));
  return receive(timeout);
}

Result<Json> Connection::receive(Nanoseconds timeout) {
  Descriptors none;
  return receive(none, timeout);
}

Result<Json> Connection::receive(Descriptors& descriptors, Nanoseconds timeout) {
  if (dead_) return Error{Errc::unavailable, "the oracle has ended"};
  os::SystemClock clock;
  const Nanoseconds deadline = clock.now() + timeout;
  size_t announced = 0;
  for (;;) {
    const Json line =
        TRY(answer_line(descriptors, std::max(deadline - clock.now(), Nanoseconds{0})));
    if (const auto stage = line.find("stage"); stage != line.end() && stage->is_string()) {
      stage_ = stage->get<std::string>();
    } else if (const auto count = line.find("descriptors"); count != line.end()) {
      announced += count->is_number_unsigned() ? count->get<size_t>() : 0;
    } else if (const auto error = line.find("error"); error != line.end()) {
      stage_.clear();
      return answered_error(*error);
    } else {
      stage_.clear();
      const auto ok = line.find("ok");
      if (ok == line.end() || announced != descriptors.size()) {
        return Error{Errc::internal, "the oracle sent a message that makes no sense"};
      }
      return *ok;
    }
  }
}

Result<Json> Connection::answer_line(Descriptors& descriptors, Nanoseconds timeout) {
  Result<std::optional<os::Message>> message = reader_.next(timeout);
  if (!message) {
    if (message.error().code == Errc::timed_out) return late(timeout);
    return message.error();
  }
  if (!*message) return ended();
  for (os::FileDescriptor& fd : (*message)->descriptors) descriptors.push_back(std::move(fd));
  Result<Json> json = parse_json((*message)->bytes);
  if (!json) return std::move(json).context("the oracle's answer");
  if (!json->is_object()) return Error{Errc::internal, "the oracle's answer is not an object"};
  return json;
}

bool Connection::answer_ready() const {
  Result<bool> readable = os::wait_readable(socket_.get(), Nanoseconds{0});
  return dead_ || !readable || *readable;
}

Result<void> Connection::ring(Nanoseconds timeout) {
  constexpr std::string_view kBell = "x", kRung = "\n";
  TRY(os::send_message(socket_.get(), kBell, {}, kSendMax));
  Result<std::optional<os::Message>> answer = os::receive_message(socket_.get(), 1, timeout);
  if (!answer) {
    if (answer.error().code == Errc::timed_out) return late(timeout);
    return answer.error();
  }
  if (!*answer) return ended();
  if ((*answer)->bytes == kRung) return {};
  Result<Json> reason = receive(timeout);
  if (!reason) return reason.error();
  return Error{Errc::internal, "the oracle answered the bell without a reason"};
}

Error Connection::ended() {
  dead_ = true;
  if (process_ == nullptr) return Error{Errc::unavailable, "the process of torch.compile ended"};
  Result<std::optional<os::ExitStatus>> waited = process_->wait(kEndMax);
  const bool known = waited.has_value() && waited->has_value();
  const std::string how = known ? (*waited)->to_string() : "unknown state";
  if (stage_.empty()) {
    const std::string words = last_words(*process_);
    return Error{Errc::unavailable,
                 fmt::format("the PyTorch process of {} ended ({}){}{}", blame_.python, how,
                             words.empty() ? "" : ": ", words)};
  }
  if (known && (*waited)->signal == SIGKILL) {
    return Error{
        Errc::invalid,
        fmt::format("{} was killed during {}, most likely because it needs more than the "
                    "{:.3g} GiB of memory that the oracle may use; make the problem smaller",
                    blame_.problem_path, stage_,
                    static_cast<double>(blame_.memory_bytes) / (1 << 30))};
  }
  return Error{Errc::invalid,
               fmt::format("{} ended the program during {} ({}); it must return instead",
                           blame_.problem_path, stage_, how)};
}

Error Connection::late(Nanoseconds timeout) {
  dead_ = true;
  const double seconds = std::chrono::duration<double>(timeout).count();
  const std::string stage = stage_;
  if (process_ != nullptr) process_->kill();
  if (stage.empty()) {
    return Error{Errc::timed_out, fmt::format("the PyTorch process of {} did not answer within "
                                              "its time limit ({:.3g} s were left)",
                                              blame_.python, seconds)};
  }
  return Error{
      Errc::invalid,
      fmt::format("{} did not finish {} within its time limit; look for an endless loop or "
                  "make the problem smaller",
                  blame_.problem_path, stage)};
}

}  // namespace ke::oracle
