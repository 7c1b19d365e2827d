// SPDX-License-Identifier: Apache-2.0
#include "graph/source.hpp"

#include <cctype>

#include "domain/python_source.hpp"

namespace ke {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)); }

class Normaliser {
 public:
  explicit Normaliser(std::string_view source) : rest_(source) {}

  std::string run() {
    while (!rest_.empty()) step();
    if (directive_) out_ += '\n';
    return std::move(out_);
  }

 private:
  void step() {
    const char c = rest_.front();
    if (rest_.starts_with("//")) {
      line_comment();
    } else if (rest_.starts_with("/*")) {
      const size_t end = rest_.find("*/", 2);
      blank_ = true;
      drop(end == std::string_view::npos ? rest_.size() : end + 2);
    } else if (rest_.starts_with("R\"") && (out_.empty() || blank_ || !is_word(out_.back()))) {
      raw_string();
    } else if (c == '"' || (c == '\'' && (blank_ || out_.empty() || !is_word(out_.back())))) {
      quoted(c);
    } else if (rest_.starts_with("\\\n")) {
      blank_ = true;
      drop(2);
    } else if (c == '\n') {
      if (directive_) out_ += '\n';
      directive_ = false;
      line_start_ = blank_ = true;
      drop(1);
    } else if (is_blank(c)) {
      blank_ = true;
      drop(1);
    } else {
      if (c == '#' && line_start_) begin_directive();
      emit(1);
    }
  }

  // A preprocessor line must begin and end a line of its own.
  void begin_directive() {
    if (!out_.empty() && out_.back() != '\n') out_ += '\n';
    directive_ = true;
    blank_ = false;
  }

  // Only comments that change the build are kept. Declared tunables do not: they are comments about
  // the values beside them.
  void line_comment() {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view comment = rest_.substr(0, end);
    if (comment.starts_with("// ke:flags")) {
      if (!out_.empty() && out_.back() != '\n') out_ += '\n';
      out_ += comment;
      out_ += '\n';
    }
    blank_ = true;
    drop(end);
  }

  void quoted(char quote) {
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != quote && rest_[end] != '\n') {
      end += rest_[end] == '\\' ? 2 : 1;
    }
    emit(std::min(end + 1, rest_.size()));
  }

  void raw_string() {
    const size_t open = rest_.find('(');
    if (open == std::string_view::npos) return emit(1);
    std::string close(1, ')');
    close.append(rest_.substr(2, open - 2)).push_back('"');
    const size_t end = rest_.find(close, open);
    emit(end == std::string_view::npos ? rest_.size() : end + close.size());
  }

  // Copies n characters; a blank before them counts only between two words or two equal signs of an
  // operator, where leaving it out could join tokens.
  void emit(size_t n) {
    if (blank_ && !out_.empty() && out_.back() != '\n') {
      const char before = out_.back();
      const char after = rest_.front();
      const bool words = is_word(before) && is_word(after);
      const bool signs = std::ispunct(static_cast<unsigned char>(before)) &&
                         std::ispunct(static_cast<unsigned char>(after));
      if (words || signs || directive_) out_ += ' ';
    }
    blank_ = line_start_ = false;
    out_ += rest_.substr(0, n);
    drop(n);
  }

  void drop(size_t n) { rest_.remove_prefix(n); }

  std::string_view rest_;
  std::string out_;
  bool blank_ = false;      // blanks were skipped since the last character of out_
  bool line_start_ = true;  // nothing but blanks on this line so far
  bool directive_ = false;  // inside a preprocessor line
};

}  // namespace

std::string normalise_source(std::string_view source) {
  return is_python(source) ? normalise_python(source) : Normaliser(source).run();
}

Digest normalised_digest(std::string_view source) { return digest_of(normalise_source(source)); }

}  // namespace ke
