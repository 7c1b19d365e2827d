// SPDX-License-Identifier: Apache-2.0
#include "llm/exchange.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <system_error>

#include "base/json.hpp"
#include "os/file_descriptor.hpp"
#include "os/file_system.hpp"

namespace ke::llm {

namespace {

Json encode(const Usage& usage) {
  return {{"input", usage.input_tokens},
          {"cached_input", usage.cached_input_tokens},
          {"cache_write", usage.cache_write_tokens},
          {"output", usage.output_tokens},
          {"estimated", usage.estimated}};
}

Result<Usage> decode_usage(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the usage"));
  Usage usage;
  usage.input_tokens = TRY(fields.get<int64_t>("input"));
  usage.cached_input_tokens = TRY(fields.get<int64_t>("cached_input"));
  usage.cache_write_tokens = TRY(fields.get<int64_t>("cache_write"));
  usage.output_tokens = TRY(fields.get<int64_t>("output"));
  usage.estimated = TRY(fields.get<bool>("estimated"));
  TRY(fields.finish());
  return usage;
}

template <class E>
Result<E> decode_enum(Fields& fields, const char* key) {
  const std::string name = TRY(fields.get<std::string>(key));
  const std::optional<E> value = parse_enum<E>(name);
  if (!value) return Error{Errc::invalid, fmt::format("'{}' is no value of '{}'", name, key)};
  return *value;
}

Result<Digest> decode_digest(Fields& fields, const char* key) {
  const std::optional<Digest> digest = parse_digest(TRY(fields.get<std::string>(key)));
  if (!digest) return Error{Errc::invalid, fmt::format("'{}' is not a digest", key)};
  return *digest;
}

Result<Outcome> decode_completion(const Json& json, const std::string& provider) {
  Fields fields = TRY(Fields::of(json, "the answer"));
  Completion completion;
  completion.provider = provider;
  completion.text = TRY(fields.get<std::string>("text"));
  completion.finish = TRY(decode_enum<FinishReason>(fields, "finish"));
  completion.elapsed = Nanoseconds(TRY(fields.get<int64_t>("elapsed_ns")));
  const Json* usage = fields.find("usage");
  if (usage != nullptr) completion.usage = TRY(decode_usage(*usage));
  TRY(fields.finish());
  return Outcome(std::move(completion));
}

Result<Outcome> decode_failure(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the failure"));
  Failure failure;
  failure.kind = TRY(decode_enum<FailureKind>(fields, "kind"));
  failure.message = TRY(fields.get<std::string>("message"));
  const auto limit = TRY(fields.get_or<int64_t>("context_tokens_max", 0));
  if (limit > 0) failure.context_tokens_max = limit;
  const Json* usage = fields.find("usage");
  if (usage != nullptr) failure.usage = TRY(decode_usage(*usage));
  TRY(fields.finish());
  return Outcome(std::move(failure));
}

Json encode_messages(const std::vector<Message>& messages) {
  Json list = Json::array();
  for (const Message& message : messages) {
    list.push_back({{"role", enum_name(message.role)}, {"text", message.text}});
  }
  return list;
}

int64_t first_different_line(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  const auto at = std::mismatch(a.begin(), a.begin() + static_cast<int64_t>(most), b.begin()).first;
  return 1 + std::count(a.begin(), at, '\n');
}

Result<std::vector<Message>> decode_messages(Fields& fields) {
  const Json* list = fields.find("messages");
  if (list == nullptr || !list->is_array()) {
    return Error{Errc::invalid, "the exchange lacks the list 'messages'"};
  }
  std::vector<Message> messages;
  for (const Json& entry : *list) {
    Fields of = TRY(Fields::of(entry, "a message"));
    const Role role = TRY(decode_enum<Role>(of, "role"));
    messages.push_back({role, TRY(of.get<std::string>("text"))});
    TRY(of.finish());
  }
  return messages;
}

// What a kill left of a line must not become the beginning of the next.
Result<void> drop_broken_line(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};  // new, or a pipe or the like
  const std::string text = TRY(os::read_file(file, 4_GiB));
  const size_t end = text.rfind('\n');
  const size_t whole = end == std::string::npos ? 0 : end + 1;
  if (whole == text.size()) return {};
  if (::truncate(file.c_str(), static_cast<off_t>(whole)) == 0) return {};
  return os::system_error(errno, "shorten " + file.string());
}

class RecordingProvider final : public Provider {
 public:
  RecordingProvider(std::unique_ptr<Provider> inner, os::FileDescriptor file, std::string path)
      : inner_(std::move(inner)), file_(std::move(file)), path_(std::move(path)) {}

  std::string id() const override { return inner_->id(); }
  bool available() const override { return inner_->available(); }

  Outcome complete(const CompletionRequest& request, const OnDelta& on_delta,
                   std::stop_token stop) override {
    Outcome outcome = inner_->complete(request, on_delta, stop);
    const Exchange exchange{prompt_digest(request), digest_of(request.stable), request.messages,
                            id(), outcome};
    const Result<void> written = append(dump_json(llm::encode(exchange)) + "\n");
    if (written) return outcome;
    Failure failure{FailureKind::unreachable, written.error().to_string()};
    failure.usage = outcome ? outcome->usage : outcome.error().usage;
    return failure;
  }

 private:
  Result<void> append(std::string_view line) {
    const std::lock_guard lock(mutex_);
    while (!line.empty()) {
      const ssize_t count = ::write(file_.get(), line.data(), line.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return os::system_error(errno, "write " + path_);
      line.remove_prefix(static_cast<size_t>(count));
    }
    return {};
  }

  std::unique_ptr<Provider> inner_;
  std::mutex mutex_;
  os::FileDescriptor file_;
  std::string path_;
};

}  // namespace

Json encode_request(const CompletionRequest& request) {
  Json json{{"messages", encode_messages(request.messages)},
            {"output_tokens_max", request.output_tokens_max}};
  if (request.temperature) json["temperature"] = *request.temperature;
  return json;
}

Result<CompletionRequest> decode_request(const Json& json, std::string stable) {
  Fields fields = TRY(Fields::of(json, "the request"));
  CompletionRequest request;
  request.stable = std::move(stable);
  request.messages = TRY(decode_messages(fields));
  request.output_tokens_max = TRY(fields.get<int64_t>("output_tokens_max"));
  if (fields.find("temperature") != nullptr) {
    request.temperature = TRY(fields.get<double>("temperature"));
  }
  TRY(fields.finish());
  return request;
}

Json encode_outcome(const Outcome& outcome) {
  if (outcome) {
    return {{"answer",
             {{"text", outcome->text},
              {"finish", enum_name(outcome->finish)},
              {"usage", encode(outcome->usage)},
              {"elapsed_ns", outcome->elapsed.count()}}}};
  }
  const Failure& failure = outcome.error();
  Json json{{"kind", enum_name(failure.kind)},
            {"message", failure.message},
            {"usage", encode(failure.usage)}};
  if (failure.context_tokens_max) json["context_tokens_max"] = *failure.context_tokens_max;
  return {{"failure", std::move(json)}};
}

Result<Outcome> decode_outcome(const Json& json, const std::string& provider) {
  Fields fields = TRY(Fields::of(json, "the exchange"));
  const Json* answer = fields.find("answer");
  const Json* failure = fields.find("failure");
  if ((answer == nullptr) == (failure == nullptr)) {
    return Error{Errc::invalid, "the exchange needs either 'answer' or 'failure'"};
  }
  return answer != nullptr ? decode_completion(*answer, provider) : decode_failure(*failure);
}

std::string difference(const CompletionRequest& asked, const Digest& recorded_stable,
                       const std::vector<Message>& recorded) {
  if (digest_of(asked.stable) != recorded_stable) return "the stable part differs";
  const size_t most = std::max(asked.messages.size(), recorded.size());
  for (size_t i = 0; i < most; ++i) {
    if (i >= asked.messages.size()) return fmt::format("message {} is missing now", i + 1);
    if (i >= recorded.size()) return fmt::format("message {} is new", i + 1);
    if (asked.messages[i] == recorded[i]) continue;
    return fmt::format("message {} differs from line {} on", i + 1,
                       first_different_line(asked.messages[i].text, recorded[i].text));
  }
  return "nothing differs";
}

Json encode(const Exchange& exchange) {
  Json json = encode_outcome(exchange.outcome);
  json["schema"] = 1;
  json["prompt"] = exchange.prompt.hex();
  json["stable"] = exchange.stable.hex();
  json["messages"] = encode_messages(exchange.messages);
  json["provider"] = exchange.provider;
  return json;
}

Result<Exchange> decode_exchange(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the exchange"));
  if (const int schema = TRY(fields.get<int>("schema")); schema != 1) {
    return Error{Errc::conflict, fmt::format("the exchange has schema {}, known is 1", schema)};
  }
  Exchange exchange;
  exchange.prompt = TRY(decode_digest(fields, "prompt"));
  exchange.stable = TRY(decode_digest(fields, "stable"));
  exchange.messages = TRY(decode_messages(fields));
  exchange.provider = TRY(fields.get<std::string>("provider"));
  for (const char* key : {"answer", "failure"}) fields.find(key);
  TRY(fields.finish());
  exchange.outcome = TRY(decode_outcome(json, exchange.provider));
  return exchange;
}

Result<std::unique_ptr<Provider>> with_recording(std::unique_ptr<Provider> inner,
                                                 const std::filesystem::path& file) {
  if (file.has_parent_path()) TRY(os::make_directories(file.parent_path()));
  TRY(drop_broken_line(file));
  os::FileDescriptor fd(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, mode_t{0644}));
  if (!fd.valid()) return os::system_error(errno, "write " + file.string());
  return std::unique_ptr<Provider>(
      std::make_unique<RecordingProvider>(std::move(inner), std::move(fd), file.string()));
}

}  // namespace ke::llm
