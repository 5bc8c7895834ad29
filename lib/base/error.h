// The kinds of failure, as types. Numerical events (inf, NaN, a skipped step, divergence) are results and never appear here.
// Who turns these into messages on a terminal and exit codes: apps/scaletrace/main.cc.
#ifndef SCALETRACE_BASE_ERROR_H_
#define SCALETRACE_BASE_ERROR_H_

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrace {

// Where an input error sits. `line` counts from 1; 0 means that the error belongs to no line (then none is printed).
struct Place {
  std::string file;  // as the user named it; "--set" or "-" where that is what the user gave
  std::size_t line = 0;
  std::string key;  // dotted path, as in --set: "scaler.growth_interval"; empty if there is none
};

// The user's input is wrong. what() is one line: "FILE:LINE: KEY: MESSAGE", MESSAGE saying what was found and what is allowed.
class InputError : public std::runtime_error {
 public:
  // kConfig: the command line or a config (exit 2). kData: data, a log or a trace (exit 3).
  enum class Kind { kConfig, kData };

  InputError(Kind kind, const Place& place, const std::string& message);
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

// The machine failed: cannot open, short write, disk full. what() is one line: "PATH: DOING: REASON".
class IoError : public std::runtime_error {
 public:
  // `error_number` is an errno value.
  IoError(const std::string& path, const std::string& doing, int error_number);
  IoError(const std::string& path, const std::string& message);
};

// A bug in scaletrace, found by SCALETRACE_CHECK, in release builds too.
class InternalError : public std::logic_error {
 public:
  InternalError(const char* file, int line, const char* condition);
};

#define SCALETRACE_CHECK(condition)                                          \
  do {                                                                       \
    if (!(condition)) {                                                      \
      throw ::scaletrace::InternalError(__FILE__, __LINE__, #condition);     \
    }                                                                        \
  } while (false)

// The candidate nearest to `word` by edit distance, or empty where none is near enough to be a likely slip
// (at most a third of the word, and at least one edit allowed, but never as many as the word has letters). Ties: the first candidate.
std::string_view NearestWord(std::string_view word, const std::vector<std::string_view>& candidates);

// " (did you mean 'x'?)", or empty.
std::string DidYouMean(std::string_view word, const std::vector<std::string_view>& candidates);

// `text` as it may stand in a one-line message: control characters and broken UTF-8 as \xNN, cut after `limit` bytes with "...".
std::string Printable(std::string_view text, std::size_t limit = 60);

}  // namespace scaletrace

#endif  // SCALETRACE_BASE_ERROR_H_
