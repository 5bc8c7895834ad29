// scaletrace step: single steps, JSON in and out. What a step computes: lib/train/single_step.h.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "scaletrace/commands.h"
#include "scaletrace/messages.h"
#include "train/single_step.h"

namespace scaletrace {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;  // of one object

// Reads a file or standard input line by line, a line being at most kMaxBytes.
class LineReader {
 public:
  explicit LineReader(const std::string& path)
      : path_(path), file_(path == "-" ? stdin : std::fopen(path.c_str(), "rb"), path == "-" ? [](std::FILE*) { return 0; } : &std::fclose) {
    if (file_ == nullptr) throw IoError(path_, "cannot open", errno);
  }
  // False at the end. The newline stays.
  bool Next(std::string& line) {
    line.clear();
    while (true) {
      if (next_ == buffer_.size()) {
        buffer_.resize(std::size_t{1} << 16);
        buffer_.resize(std::fread(buffer_.data(), 1, buffer_.size(), file_.get()));
        next_ = 0;
        if (std::ferror(file_.get())) throw IoError(path_, "cannot read", errno);
        if (buffer_.empty()) break;
      }
      const std::size_t newline = buffer_.find('\n', next_);
      const std::size_t end = newline == std::string::npos ? buffer_.size() : newline + 1;
      line.append(buffer_, next_, end - next_);
      next_ = end;
      if (line.size() > kMaxBytes) throw TooLong();
      if (newline != std::string::npos) break;
    }
    if (!line.empty()) ++number_;
    return !line.empty();
  }
  std::size_t number() const { return number_; }
  InputError TooLong() const {
    return {InputError::Kind::kData, {.file = path_, .line = number_ + 1}, "found more than 64 MiB; allowed: one JSON object of at most that"};
  }

 private:
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::string buffer_;
  std::size_t next_ = 0;  // in buffer_
  std::size_t number_ = 0;
};

// Whether the brackets of `line` (outside strings) close again: then it is a whole object.
bool IsWhole(std::string_view line) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return depth <= 0 && !in_string;
}

struct StepOptions {
  std::string file = "-";
  std::string target;
  PrecisionOptions precision = {.compute = "bfloat16"};
  std::string profile = "strict";
};

int Step(const StepOptions& options) {
  PrecisionOptions precision = options.precision;
  precision.profile = options.profile == "excess" ? Profile::kExcess : Profile::kStrict;
  const KernelTable& kernels = KernelsFor(options.target);
  LineReader reader(options.file);
  const std::string file = options.file == "-" ? "standard input" : options.file;
  std::size_t answers = 0;
  const auto answer = [&](const std::string& text, std::size_t first_line) {
    const Json json = Json::Parse(text, file, kMaxBytes, first_line);
    Print(SingleStep(json, json.root(), kernels, precision) + "\n");
    ++answers;
  };
  std::string line;
  try {
    while (reader.Next(line)) {
      const std::size_t start = line.find_first_not_of(" \t\r\n");
      if (start == std::string::npos) continue;
      if (answers == 0 && line[start] == '{' && !IsWhole(line)) {
        // One object over several lines: all the rest belongs to it.
        const std::size_t first = reader.number();
        std::string more;
        while (reader.Next(more)) {
          line += more;
          if (line.size() > kMaxBytes) throw reader.TooLong();
        }
        answer(line, first);
        break;
      }
      answer(line, reader.number());
    }
  } catch (...) {
    FlushPrint();  // the answers before a bad line
    throw;
  }
  if (answers == 0) throw InputError(InputError::Kind::kData, {.file = file}, "found nothing; allowed: one JSON object, or one a line");
  return 0;
}

}  // namespace

Action AddStep(CLI::App& command) {
  auto options = std::make_shared<StepOptions>();
  command.add_option("FILE", options->file, "JSON: one object, or one a line; - is standard input")->capture_default_str();
  command.add_option("--profile", options->profile, "strict rounds after adding the bias, excess does not")
      ->check(CLI::IsMember({"strict", "excess"}))->capture_default_str();
  std::vector<std::string> formats(FormatNames().begin(), FormatNames().end());
  command.add_option("--format", options->precision.compute, "Compute format")->check(CLI::IsMember(formats))->capture_default_str();
  AddTargetOption(command, options->target);
  command.footer(
      "Reads objects with params {w: D x K, b: K}, x: B x D, y: B x K, loss_scale, good_steps, lr, growth_interval,\n"
      "writes for each one line with loss, params, loss_scale, good_steps, grads_finite.\n"
      "Such an object may also stand under the key `input` of one with kind and output, as in a file of expected steps.\n"
      "Numbers read back to the same float32; non-finite ones are the strings \"inf\", \"-inf\", \"nan\", both ways.\n\n"
      "Example:\n"
      "  echo '{\"params\": {\"w\": [[0.5], [-1.25]], \"b\": [0.1]}, \"x\": [[1, 2], [0.5, -1]], \"y\": [[-1.9], [1.5]],\n"
      "         \"loss_scale\": 1024, \"good_steps\": 0, \"lr\": 0.1, \"growth_interval\": 2}' | scaletrace step");
  return [options] { return Step(*options); };
}

}  // namespace scaletrace
