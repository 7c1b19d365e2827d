// SPDX-License-Identifier: Apache-2.0
#include "eval/build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/assert.hpp"
#include "base/digest.hpp"
#include "base/json.hpp"
#include "domain/python_source.hpp"
#include "eval/build_room.hpp"
#include "target/device_package.hpp"

namespace ke {
namespace {

Evaluation failure(Verdict verdict, std::string detail, std::string diagnostics = {}) {
  Evaluation evaluation;
  evaluation.verdict = verdict;
  evaluation.detail = std::move(detail);
  evaluation.diagnostics = std::move(diagnostics);
  return evaluation;
}

// The first lines say most; the end may hold the linker's words. Both are kept.
std::string capped(std::string text, int64_t bytes_max) {
  const size_t limit = static_cast<size_t>(bytes_max);
  if (text.size() <= limit) return text;
  const std::string tail = text.substr(text.size() - limit / 4);
  return text.substr(0, limit - tail.size() - 32) + "\n[… cut …]\n" + tail;
}

std::string first_error_line(const std::string& diagnostics) {
  size_t at = diagnostics.find("error:");
  if (at == std::string::npos) at = diagnostics.find("undefined reference");
  if (at == std::string::npos) at = 0;
  const size_t begin =
      diagnostics.rfind('\n', at) == std::string::npos ? 0 : diagnostics.rfind('\n', at) + 1;
  return diagnostics.substr(begin,
                            std::min<size_t>(diagnostics.find('\n', at), begin + 200) - begin);
}

// What is wrong with a built library, if anything.
std::optional<Evaluation> flaw_of_library(const std::filesystem::path& library,
                                          const LibraryPolicy& policy,
                                          const std::string& diagnostics) {
  const Result<ElfSummary> elf = summarize_elf(library);
  if (!elf) return failure(Verdict::compile_error, elf.error().message);
  if (std::find(elf->exports.begin(), elf->exports.end(), "ke_launch") == elf->exports.end()) {
    return failure(Verdict::compile_error, "it does not export ke_launch", diagnostics);
  }
  const LibraryFinding finding = check_libraries(*elf, policy);
  if (finding.violation) return failure(Verdict::policy_violation, *finding.violation);
  return std::nullopt;
}

// Copies a literal that begins at source[i]; returns the index after it.
size_t copy_literal(std::string_view source, size_t i, std::string& out) {
  const char quote = source[i];
  out += source[i++];
  while (i < source.size() && source[i] != quote && source[i] != '\n') {
    if (source[i] == '\\' && i + 1 < source.size()) out += source[i++];
    out += source[i++];
  }
  if (i < source.size()) out += source[i++];
  return i;
}

std::string_view suffix_of(ArtifactKind kind) {
  switch (kind) {
    case ArtifactKind::shared_library:
      return ".so";
    case ArtifactKind::device_package:
      return ".package";
    case ArtifactKind::python_module:
      return ".py";
  }
  KE_ASSERT(false);
}

}  // namespace

std::string normalized_source(std::string_view source) {
  if (is_python(source)) return normalise_python(source);
  if (source.find("R\"") != std::string_view::npos) return std::string(source);
  std::string out;
  const auto at = [&](size_t i) { return i < source.size() ? source[i] : '\0'; };
  const auto space = [&] {
    if (!out.empty() && out.back() != ' ' && out.back() != '\n') out += ' ';
  };
  const auto new_line = [&] {
    if (!out.empty() && out.back() == ' ') out.pop_back();
    if (!out.empty() && out.back() != '\n') out += '\n';
  };
  for (size_t i = 0; i < source.size();) {
    const char c = source[i];
    if (c == '/' && at(i + 1) == '/') {
      const size_t end = std::min(source.find('\n', i), source.size());
      const std::string_view comment = source.substr(i, end - i);
      if (comment.starts_with("// ke:")) out += comment;
      i = end;
    } else if (c == '/' && at(i + 1) == '*') {
      const size_t end = source.find("*/", i + 2);
      space();
      i = end == std::string_view::npos ? source.size() : end + 2;
    } else if (c == '"' || (c == '\'' && !(i > 0 && std::isalnum(at(i - 1))))) {
      i = copy_literal(source, i, out);
    } else if (c == '\n') {
      new_line();
      ++i;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      space();
      ++i;
    } else {
      out += source[i++];
    }
  }
  new_line();
  return out;
}

Result<Builder> Builder::create(const BuilderOptions& options) {
  TRY(os::make_directories(options.artifacts));
  std::string toolchain = TRY(options.target->toolchain().context("no toolchain"));
  return Builder(options, std::move(toolchain));
}

Result<Artifact> Builder::build(const std::string& source) const {
  const Nanoseconds start = options_.clock->now();
  if (static_cast<int64_t>(source.size()) > options_.limits.source_bytes_max) {
    return Artifact{{}, failure(Verdict::compile_error, "the source is too long"), 0};
  }
  const Result<BuildRecipe> recipe = options_.target->recipe(source);
  if (!recipe) {
    if (recipe.error().code != Errc::refused) return recipe.error();
    return Artifact{{}, failure(Verdict::policy_violation, recipe.error().message), 0};
  }
  for (const std::string& name : recipe->libraries) {
    if (options_.libraries.may_link(name)) continue;
    const std::string why =
        fmt::format("it links the library {}, which the library policy forbids", name);
    return Artifact{{}, failure(Verdict::policy_violation, why), 0};
  }
  std::string key = normalized_source(source);
  for (const std::string& word : recipe->command) key += '\x1f' + word;
  key += fmt::format("\x1f{}\x1f{}\x1f{}", toolchain_, options_.libraries.to_string(),
                     kHarnessVersion);
  const std::string name = digest_of(key).hex();
  const std::filesystem::path library =
      options_.artifacts / (name + std::string(suffix_of(recipe->artifact)));
  const std::filesystem::path record = options_.artifacts / (name + ".json");

  Artifact artifact;
  const Result<std::string> remembered = os::read_file(record, 1 << 20);
  if (os::exists(library)) {
    artifact.built_path = library;
  } else if (remembered) {
    artifact.failure = TRY(decode_evaluation(TRY(parse_json(*remembered))));
  } else {
    artifact = TRY(build_anew(source, *recipe, library));
    if (artifact.failure) {
      TRY(os::write_file_atomically(record, dump_json(encode(*artifact.failure))));
    }
  }
  artifact.build_ms = (options_.clock->now() - start).count() / 1'000'000;
  if (artifact.failure) artifact.failure->build_ms = artifact.build_ms;
  return artifact;
}

Result<Artifact> Builder::build_anew(const std::string& source, const BuildRecipe& recipe,
                                     const std::filesystem::path& library) const {
  BuildRoom room = TRY(BuildRoom::create(source, recipe, options_.limits, *options_.timing_lock));
  const std::filesystem::path output_path = room.output_path();
  const os::RunResult ran = TRY(room.run(recipe.command, 4 * options_.limits.diagnostic_bytes_max)
                                    .context("cannot run the compiler"));

  const std::string diagnostics =
      capped(ran.error + ran.output, options_.limits.diagnostic_bytes_max);
  if (ran.timed_out || diagnostics.find("CPU time limit exceeded") != std::string::npos) {
    return Artifact{{},
                    failure(Verdict::compile_error,
                            fmt::format("the compiler needed more than {} ms of its own time",
                                        options_.limits.compile_max.count()),
                            diagnostics),
                    0};
  }
  if (!ran.status.success()) {
    return Artifact{
        {},
        failure(Verdict::compile_error,
                fmt::format("it does not compile: {}", first_error_line(diagnostics)), diagnostics),
        0};
  }
  const std::string bytes = TRY(os::read_file(output_path, int64_t{256} << 20));
  if (recipe.artifact == ArtifactKind::shared_library) {
    auto flaw = flaw_of_library(output_path, options_.libraries, diagnostics);
    if (flaw) return Artifact{{}, std::move(flaw), 0};
  } else if (recipe.artifact == ArtifactKind::python_module) {
    if (bytes.empty()) return Artifact{{}, failure(Verdict::compile_error, "it is empty"), 0};
  } else if (const auto package = target::decode_package(bytes); !package) {
    return Artifact{{}, failure(Verdict::compile_error, package.error().to_string()), 0};
  }
  TRY(os::write_file_atomically(library, bytes, 0444));
  return Artifact{library, std::nullopt, 0};
}

}  // namespace ke
