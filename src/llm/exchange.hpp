// SPDX-License-Identifier: Apache-2.0
//
// A recorded exchange: one JSON line of a recording, written by with_recording and read by the
// provider `replay`. A prompt is named by its digest; its messages are kept as well, so that a
// replay which diverges can say where.
#pragma once

#include <filesystem>

#include "base/json_fwd.hpp"
#include "llm/provider.hpp"

namespace ke::llm {

struct Exchange {
  Digest prompt;
  Digest stable;  // of the stable part
  std::vector<Message> messages;
  std::string provider;
  Outcome outcome = Failure{};
};

// The parts of it, for other journals of ours. A request's stable part is kept apart, since many
// share it. An outcome is {"answer": {…}} or {"failure": {…}}; other keys are not looked at.
Json encode_request(const CompletionRequest& request);
Result<CompletionRequest> decode_request(const Json& json, std::string stable);
Json encode_outcome(const Outcome& outcome);
Result<Outcome> decode_outcome(const Json& json, const std::string& provider);

// Where a request differs from a recorded one, as the end of a sentence.
std::string difference(const CompletionRequest& asked, const Digest& recorded_stable,
                       const std::vector<Message>& recorded);

Json encode(const Exchange& exchange);
Result<Exchange> decode_exchange(const Json& json);

// Appends every exchange of `inner` to the file, whole lines in the order in which they ended. A
// line that cannot be written fails the call: a recording with a hole is worth nothing.
Result<std::unique_ptr<Provider>> with_recording(std::unique_ptr<Provider> inner,
                                                 const std::filesystem::path& file);

}  // namespace ke::llm
