// SPDX-License-Identifier: Apache-2.0
//
// One conversation in the Model Context Protocol (2024-11-05, 2025-03-26, 2025-06-18). Two threads:
// one hands in lines and is answered at once where nothing has to be done; the other does the work,
// in the order of asking, because the judge is one.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/events.hpp"
#include "domain/limits.hpp"
#include "mcp/backend.hpp"
#include "mcp/message.hpp"

namespace ke::mcp {

struct ServerOptions {
  std::string version;  // of this program
  Limits limits;
  // Takes a line without its end; false when nobody reads any more. Never called by two at a time.
  std::function<bool(const std::string& line)> write;
};

class Server {
 public:
  // `events` gets what work emits, on the working thread. All outlive the server.
  Server(Backend& backend, EventSink& events, ServerOptions options);

  // --- The reading thread
  void receive(std::string_view line);
  void receive_too_long();  // instead of a line longer than request_bytes_max
  void finish();            // no line will come; what was asked is still done

  // Forgets what waits; what is under way is finished. Any thread.
  void stop();

  // --- The working thread: returns after finish() or stop(), or when nobody reads any more.
  void work();

 private:
  struct Job {
    Json id;
    Json progress_token;  // null: none
    std::function<void(const Job&)> run;
  };
  class ProgressEvents;

  void handle(const Request& request);
  void handle(const Notification& notification);
  void initialize(const Request& request);
  void call_tool(const Request& request);
  void run_tool(const Job& job, const Work& work);
  void list_resources(const Job& job);
  void read_resource(const Job& job, const std::string& uri);
  void enqueue(Job job);
  void answer(const Json& id, Json result) { send(answer_line(id, std::move(result))); }
  void fail(const Json& id, Code code, std::string_view sentence) {
    send(error_line(id, code, sentence));
  }
  // What a job says, unless it was cancelled.
  void conclude(const Job& job, const std::string& line);
  void send(const std::string& line);

  Backend& backend_;
  EventSink& events_;
  ServerOptions options_;
  bool initialized_ = false;  // of the reading thread

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::optional<Json> running_;  // id
  bool cancelled_ = false;       // the running one
  bool finished_ = false;
  bool stopped_ = false;

  std::mutex writing_;
};

}  // namespace ke::mcp
