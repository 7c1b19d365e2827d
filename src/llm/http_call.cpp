// SPDX-License-Identifier: Apache-2.0
#include "llm/http_call.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "llm/rate_limit.hpp"

namespace ke::llm {

namespace {

constexpr size_t kErrorBytesMax = 64 << 10;
constexpr size_t kKeyBytesMax = 1 << 10;

Failure failure_of_connection(const Error& error) {
  FailureKind kind = FailureKind::unreachable;
  if (error.code == Errc::timed_out) kind = FailureKind::timed_out;
  if (error.code == Errc::invalid) kind = FailureKind::refused;
  return Failure{kind, error.to_string()};
}

// One call under way.
class Call {
 public:
  Call(const HttpCall& call, const ProviderContext& context, const OnDelta& on_delta)
      : call_(call),
        context_(context),
        on_delta_(on_delta),
        events_(context.limits.llm_answer_bytes_max) {}

  bool receive(const os::HttpResponse& head, std::string_view bytes) {
    if (head.status != 200) {
      body_.append(bytes.substr(0, kErrorBytesMax - std::min(kErrorBytesMax, body_.size())));
      return body_.size() < kErrorBytesMax;
    }
    const std::string* type = head.header("content-type");
    streamed_ = type == nullptr || type->find("json") == std::string::npos;
    if (!streamed_) {
      body_.append(bytes);  // limited by the HTTP client
      return true;
    }
    const Result<bool> more =
        events_.feed(bytes, [this](const SseEvent& event) { return take(event); });
    if (!more) failure_ = Failure{FailureKind::malformed, more.error().message};
    return more && *more;
  }

  Outcome finish(const Result<os::HttpResponse>& response, Nanoseconds elapsed) {
    if (response && !response->stopped && response->status == 200) read_rest();
    Outcome outcome = judge(response);
    const int64_t now = context_.clock.utc_ms();
    const auto wait = response ? asked_wait(*response, now) : std::nullopt;
    if (outcome) {
      outcome->elapsed = elapsed;
      outcome->pause = wait;
      return outcome;
    }
    Failure& failure = outcome.error();
    if (failure.kind == FailureKind::rate_limited || failure.kind == FailureKind::overloaded) {
      failure.retry_after = wait;
    }
    failure.message = describe(failure, response ? response->status : 0);
    return outcome;
  }

 private:
  bool take(const SseEvent& event) {
    const size_t before = answer_.text.size();
    failure_ = call_.reader.on_event(event, answer_);
    return !failure_ && pass_on(before) && !answer_.ended;
  }

  // False: the receiver wants no more.
  bool pass_on(size_t before) {
    if (answer_.text.size() == before) return true;
    // A server that repeats what it was sent must not get a key into files.
    const size_t from = before - std::min(before, kKeyBytesMax);
    const std::string_view tail = std::string_view(answer_.text).substr(from);
    if (context_.environment.redact(tail) != tail) {
      failure_ = Failure{FailureKind::malformed, "the answer holds a key of this environment"};
      answer_.text.resize(from);
      return false;
    }
    const Delta delta{std::string_view(answer_.text).substr(before)};
    if (on_delta_ && !on_delta_(delta)) stopped_ = true;
    return !stopped_;
  }

  void read_rest() {
    if (streamed_) {
      if (!failure_ && !stopped_ && !answer_.ended) {
        events_.finish([this](const SseEvent& event) { return take(event); });
      }
      return;
    }
    const Result<Json> document = parse_json(body_);
    if (!document) {
      failure_ = Failure{FailureKind::malformed, "the answer is " + document.error().message};
      return;
    }
    failure_ = call_.reader.on_document(*document, answer_);
    if (!failure_) pass_on(0);
  }

  Outcome judge(const Result<os::HttpResponse>& response) {
    if (failure_) return with_usage(*failure_);
    if (response && response->status != 200 && response->status != 0) {
      const Result<Json> body = parse_json(body_);
      Failure failure = failure_of_error(response->status, body ? *body : Json());
      if (!body && failure.message.empty()) failure.message = body_.substr(0, 200);
      return failure;
    }
    if (answer_.finish && !stopped_) return completion(*answer_.finish);
    if (stopped_ || (response && response->stopped && !answer_.ended)) {
      Completion stopped = completion(FinishReason::stopped_by_us);
      if (response && response->status == 0) stopped.usage = {};  // before anything was answered
      return stopped;
    }
    if (!response) return with_usage(failure_of_connection(response.error()));
    return with_usage(Failure{FailureKind::unreachable, "the answer ended in the middle"});
  }

  Usage usage() const {
    const Usage guess = estimate_usage(call_.request, answer_.text);
    Usage usage = answer_.usage;
    if (usage.input_tokens == 0) {
      usage.input_tokens = guess.input_tokens;
      usage.estimated = true;
    }
    // A stream that was cut short ends before the final count.
    const bool counted = answer_.finish.has_value() && usage.output_tokens > 0;
    if (!counted && guess.output_tokens > usage.output_tokens) {
      usage.output_tokens = guess.output_tokens;
      usage.estimated = true;
    }
    return usage;
  }

  Completion completion(FinishReason finish) {
    Completion result;
    result.usage = usage();
    result.text = std::move(answer_.text);
    result.finish = finish;
    result.provider = call_.provider;
    return result;
  }

  // Only an answer that had begun is paid for.
  Failure with_usage(Failure failure) const {
    if (!answer_.text.empty() || answer_.usage.input_tokens > 0) failure.usage = usage();
    return failure;
  }

  std::string describe(const Failure& failure, int status) const {
    std::string text = call_.provider;
    if (status != 0 && status != 200) text += fmt::format(" answered {}", status);
    std::string reason = context_.environment.redact(failure.message);
    if (reason.size() > 400) reason = reason.substr(0, 400) + "…";
    text += ": " + (reason.empty() ? std::string("no reason given") : reason);
    if (failure.kind == FailureKind::unauthorized) text += "; check " + call_.key_name;
    if (status >= 300 && status < 400) text += "; redirects are not followed, set the base URL";
    return text;
  }

  const HttpCall& call_;
  const ProviderContext& context_;
  const OnDelta& on_delta_;
  SseReader events_;
  AnswerSoFar answer_;
  std::optional<Failure> failure_;
  std::string body_;      // of an error, or of an answer that is not streamed
  bool streamed_ = true;
  bool stopped_ = false;  // by on_delta
};

// --- What an error object means -----------------------------------------------------------------

bool holds_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// The number that stands behind one of the phrases servers use for the limit.
std::optional<int64_t> context_limit_in(std::string_view message) {
  for (const std::string_view phrase : {"maximum context length is ", " > ", "context size (",
                                        "Limit ", "limit of ", "maximum of "}) {
    const size_t at = message.find(phrase);
    if (at == std::string_view::npos) continue;
    int64_t value = 0;
    int digits = 0;
    for (const char c : message.substr(at + phrase.size())) {
      if (c == ',') continue;
      if (c < '0' || c > '9' || ++digits > 12) break;
      value = value * 10 + (c - '0');
    }
    if (digits > 0) return value;
  }
  return std::nullopt;
}

FailureKind kind_of_error(int status, std::string_view type, std::string_view message) {
  using enum FailureKind;
  if (holds_any(type, {"insufficient_quota", "billing_error", "credit"}) || status == 402 ||
      holds_any(message, {"credit balance is too low", "exceeded your current quota"})) {
    return unauthorized;
  }
  if (holds_any(type, {"context_length_exceeded", "exceed_context_size", "request_too_large"}) ||
      status == 413 ||
      holds_any(message, {"maximum context length", "prompt is too long", "exceed context limit",
                          "context window", "context size", "Request too large"})) {
    return context_overflow;
  }
  if (holds_any(type, {"authentication", "permission", "invalid_api_key"}) || status == 401 ||
      status == 403) {
    return unauthorized;
  }
  if (holds_any(type, {"rate_limit"}) || status == 429) return rate_limited;
  if (holds_any(type, {"timeout"}) || status == 408) return timed_out;
  if (holds_any(type, {"overloaded", "api_error", "server_error"}) || status >= 500 ||
      status == 409 || status == 425) {
    return overloaded;
  }
  return refused;
}

}  // namespace

const Json* object_at(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || !found->is_object() ? nullptr : &*found;
}

int64_t count_or_zero(const Json& object, const char* key) {
  if (!object.is_object()) return 0;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return 0;
  constexpr double kMost = 1e12;  // beyond that it is no count of tokens
  const double value = found->get<double>();
  return value > 0 && value < kMost ? static_cast<int64_t>(value) : 0;
}

std::string text_or_empty(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

Failure failure_of_error(int status, const Json& body) {
  const Json* error = object_at(body, "error");
  if (error == nullptr) error = &body;
  std::string message = text_or_empty(*error, "message");
  if (message.empty()) message = text_or_empty(body, "error");   // Ollama
  if (message.empty()) message = text_or_empty(body, "detail");  // FastAPI servers
  const std::string type = text_or_empty(*error, "type") + " " + text_or_empty(*error, "code");
  if (status == 0) status = static_cast<int>(std::min<int64_t>(count_or_zero(*error, "code"), 599));
  Failure failure{kind_of_error(status, type, message), message};
  if (failure.kind == FailureKind::context_overflow) {
    failure.context_tokens_max = context_limit_in(message);
    if (const int64_t window = count_or_zero(*error, "n_ctx"); window > 0) {  // llama.cpp
      failure.context_tokens_max = window;
    }
  }
  return failure;
}

os::HttpRequest new_http_request(std::string url, const Limits& limits) {
  os::HttpRequest request;
  request.url = std::move(url);
  request.headers = {{"Content-Type", "application/json"},
                     {"Accept", "text/event-stream, application/json"},
                     {"User-Agent", "kernelevolve"}};
  request.connect_max = limits.llm_connect_max;
  request.idle_max = limits.llm_idle_max;
  request.total_max = limits.llm_total_max;
  request.response_bytes_max = limits.llm_answer_bytes_max;
  return request;
}

Outcome run_call(const HttpCall& call, const ProviderContext& context, const OnDelta& on_delta,
                 const std::stop_token& stop) {
  Call running(call, context, on_delta);
  const Nanoseconds start = context.clock.now();
  const Result<os::HttpResponse> response = context.http.post(
      call.http,
      [&](const os::HttpResponse& head, std::string_view bytes) {
        return running.receive(head, bytes);
      },
      stop);
  return running.finish(response, context.clock.now() - start);
}

}  // namespace ke::llm
