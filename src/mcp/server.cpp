// SPDX-License-Identifier: Apache-2.0
#include "mcp/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace ke::mcp {
namespace {

// Newest last: what is answered to a client that speaks none of them.
constexpr std::array<std::string_view, 3> kVersions = {"2024-11-05", "2025-03-26", "2025-06-18"};

Json encode(const Tool& tool) {
  return {{"name", tool.name},
          {"title", tool.title},
          {"description", tool.description},
          {"inputSchema", tool.arguments},
          {"annotations",
           {{"title", tool.title},
            {"readOnlyHint", tool.reads_only},
            {"destructiveHint", false},
            {"openWorldHint", false}}}};
}

Json encode(const ToolAnswer& answer) {
  Json content = Json::array();
  for (const std::string& text : answer.texts) {
    content.push_back({{"type", "text"}, {"text", text}});
  }
  if (content.empty()) content.push_back({{"type", "text"}, {"text", dump_json(answer.data)}});
  return {{"content", std::move(content)}, {"structuredContent", answer.data}, {"isError", false}};
}

Json encode(const Error& error) {
  return {{"content", {{{"type", "text"}, {"text", error.to_string()}}}}, {"isError", true}};
}

// Tokens are echoed, so only what the protocol names is taken.
Json progress_token(const Json& params) {
  const auto meta = params.find("_meta");
  if (meta == params.end() || !meta->is_object()) return {};
  const auto token = meta->find("progressToken");
  const bool good =
      token != meta->end() && (token->is_string() || token->is_number_integer());
  return good ? *token : Json();
}

bool is_known(std::string_view method) {
  constexpr std::array<std::string_view, 5> kMethods = {
      "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read"};
  return std::ranges::find(kMethods, method) != kMethods.end();
}

}  // namespace

// Stages on their way to whoever waits for the call.
class Server::ProgressEvents final : public EventSink {
 public:
  ProgressEvents(Server& server, const Json& token) : server_(server), token_(token) {}

  void emit(std::string_view name, const Json& fields) override {
    server_.events_.emit(name, fields);
    const auto what = fields.find("what");
    if (token_.is_null() || name != "stage" || what == fields.end()) return;
    server_.send(notification_line(
        "notifications/progress",
        {{"progressToken", token_}, {"progress", ++count_}, {"message", *what}}));
  }

 private:
  Server& server_;
  const Json& token_;
  int64_t count_ = 0;
};

Server::Server(Backend& backend, EventSink& events, ServerOptions options)
    : backend_(backend), events_(events), options_(std::move(options)) {}

// --- The reading thread -------------------------------------------------------------------------

void Server::receive(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  const Message message = read_message(line);
  if (const auto* request = std::get_if<Request>(&message)) {
    handle(*request);
  } else if (const auto* notification = std::get_if<Notification>(&message)) {
    handle(*notification);
  } else if (const auto* malformed = std::get_if<Malformed>(&message)) {
    fail(malformed->id, malformed->code, malformed->sentence);
  }
}

void Server::receive_too_long() {
  fail({}, Code::invalid_request,
       fmt::format("a line has at most {} bytes", options_.limits.request_bytes_max));
}

void Server::handle(const Request& request) {
  const std::string& method = request.method;
  if (method == "ping") return answer(request.id, Json::object());
  if (method == "initialize") return initialize(request);
  if (!is_known(method)) {
    return fail(request.id, Code::method_not_found, "there is no such method");
  }
  if (!initialized_) {
    return fail(request.id, Code::invalid_request, "the first request is initialize");
  }
  if (method == "tools/list") {
    Json tools = Json::array();
    for (const Tool& tool : backend_.tools()) tools.push_back(encode(tool));
    answer(request.id, {{"tools", std::move(tools)}});
  } else if (method == "tools/call") {
    call_tool(request);
  } else if (method == "resources/templates/list") {
    answer(request.id, {{"resourceTemplates", Json::array()}});
  } else if (method == "resources/list") {
    enqueue({request.id, {}, [this](const Job& job) { list_resources(job); }});
  } else {
    const auto uri = request.params.find("uri");
    if (uri == request.params.end() || !uri->is_string()) {
      return fail(request.id, Code::invalid_params, "resources/read needs uri, a string");
    }
    enqueue({request.id, {}, [this, text = uri->get<std::string>()](const Job& job) {
               read_resource(job, text);
             }});
  }
}

void Server::initialize(const Request& request) {
  const auto asked = request.params.find("protocolVersion");
  if (asked == request.params.end() || !asked->is_string()) {
    return fail(request.id, Code::invalid_params, "initialize needs protocolVersion, a string");
  }
  if (std::exchange(initialized_, true)) {
    return fail(request.id, Code::invalid_request, "the conversation is initialized already");
  }
  const auto version = std::ranges::find(kVersions, asked->get_ref<const std::string&>());
  answer(request.id,
         {{"protocolVersion", version == kVersions.end() ? kVersions.back() : *version},
          {"capabilities", {{"tools", Json::object()}, {"resources", Json::object()}}},
          {"serverInfo",
           {{"name", "kernelevolve"}, {"title", "KernelEvolve"}, {"version", options_.version}}},
          {"instructions", backend_.instructions()}});
}

void Server::call_tool(const Request& request) {
  const auto name = request.params.find("name");
  if (name == request.params.end() || !name->is_string()) {
    return fail(request.id, Code::invalid_params, "tools/call needs name, a string");
  }
  const auto& tools = backend_.tools();
  if (std::ranges::find(tools, name->get_ref<const std::string&>(), &Tool::name) == tools.end()) {
    return fail(request.id, Code::invalid_params, "there is no such tool; tools/list names them");
  }
  const auto given = request.params.find("arguments");
  const bool none = given == request.params.end() || given->is_null();
  // Not copied: a hostile value may be too deep for that.
  const Json empty = Json::object();
  const Json& arguments = none ? empty : *given;
  Result<Work> work = arguments.is_object()
                          ? backend_.prepare(name->get<std::string>(), arguments)
                          : Result<Work>(Error{Errc::invalid, "arguments are a JSON object"});
  if (!work) return fail(request.id, Code::invalid_params, work.error().to_string());
  enqueue({request.id, progress_token(request.params),
           [this, work = std::move(*work)](const Job& job) { run_tool(job, work); }});
}

void Server::enqueue(Job job) {
  std::unique_lock lock(mutex_);
  const auto room = static_cast<size_t>(options_.limits.waiting_requests_max);
  if (waiting_.size() >= room) {
    lock.unlock();
    return fail(job.id, Code::busy,
                fmt::format("{} requests wait already; ask again when some are answered", room));
  }
  waiting_.push_back(std::move(job));
  changed_.notify_all();
}

// A request that is cancelled is not answered. The judge finishes what it has begun.
void Server::handle(const Notification& notification) {
  if (notification.method != "notifications/cancelled") return;
  const auto id = notification.params.find("requestId");
  if (id == notification.params.end()) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const Job& job) { return job.id == *id; });
  if (running_ && *running_ == *id) cancelled_ = true;
}

void Server::finish() {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

void Server::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  waiting_.clear();
  changed_.notify_all();
}

// --- The working thread -------------------------------------------------------------------------

void Server::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopped_ || finished_ || !waiting_.empty(); });
    if (stopped_ || waiting_.empty()) return;
    const Job job = std::move(waiting_.front());
    waiting_.pop_front();
    running_ = job.id;
    cancelled_ = false;
    lock.unlock();
    job.run(job);
    lock.lock();
    running_.reset();
  }
}

void Server::run_tool(const Job& job, const Work& work) {
  ProgressEvents events(*this, job.progress_token);
  const Result<ToolAnswer> done = work(events);
  conclude(job, answer_line(job.id, done ? encode(*done) : encode(done.error())));
}

void Server::list_resources(const Job& job) {
  const Result<std::vector<Resource>> found = backend_.resources();
  if (!found) {
    return conclude(job, error_line(job.id, Code::internal_error, found.error().to_string()));
  }
  Json list = Json::array();
  for (const Resource& one : *found) {
    list.push_back({{"uri", one.uri},
                    {"name", one.name},
                    {"title", one.title},
                    {"mimeType", "text/markdown"}});
  }
  conclude(job, answer_line(job.id, {{"resources", std::move(list)}}));
}

void Server::read_resource(const Job& job, const std::string& uri) {
  const Result<std::string> text = backend_.read_resource(uri);
  if (!text) {
    return conclude(job,
                    error_line(job.id, Code::resource_not_found, text.error().to_string()));
  }
  conclude(job, answer_line(job.id, {{"contents",
                                      {{{"uri", uri},
                                        {"mimeType", "text/markdown"},
                                        {"text", *text}}}}}));
}

void Server::conclude(const Job& job, const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    if (running_ && *running_ == job.id && cancelled_) return;
  }
  send(line);
}

void Server::send(const std::string& line) {
  bool read = false;
  {
    const std::lock_guard lock(writing_);
    read = options_.write(line);
  }
  if (!read) stop();
}

}  // namespace ke::mcp
