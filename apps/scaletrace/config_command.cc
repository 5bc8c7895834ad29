// scaletrace config, configs, init, schema: everything about configs but running them.
#include <unistd.h>

#include <cerrno>
#include <fcntl.h>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "config/config.h"
#include "config/schema.h"
#include "scaletrace/commands.h"
#include "scaletrace/messages.h"
#include "scaletrace/shipped.h"

namespace scaletrace {
namespace {

bool EndsWith(std::string_view text, std::string_view end) { return text.size() >= end.size() && text.substr(text.size() - end.size()) == end; }

// The first paragraph of the comment at the head of a config, as one line.
std::string Headline(std::string_view text) {
  std::string line;
  while (!text.empty() && text[0] == '#') {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view comment = text.substr(1, end - 1);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!comment.empty() && comment[0] == ' ') comment.remove_prefix(1);
    if (comment.empty()) break;
    line += (line.empty() ? "" : " ") + std::string(comment);
  }
  return line;
}

// `text` in lines of at most `width`, those after the first indented.
std::string Wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::size_t word = end - start;
    if (column > indent && column + 1 + word > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(start, word);
    column += word;
    start = end + 1;
  }
  return out;
}

std::vector<std::string_view> ConfigNames() {
  std::vector<std::string_view> names;
  for (const ShippedFile& file : ShippedFiles()) {
    if (EndsWith(file.name, ".yaml")) names.push_back(file.name.substr(0, file.name.size() - 5));
  }
  return names;
}

int ListConfigs() {
  std::size_t widest = 0;
  for (const std::string_view name : ConfigNames()) widest = std::max(widest, name.size());
  for (const ShippedFile& file : ShippedFiles()) {
    if (!EndsWith(file.name, ".yaml")) continue;
    std::string name(file.name.substr(0, file.name.size() - 5));
    name.resize(widest + 2, ' ');
    Print(name + Wrapped(Headline(file.text), widest + 2, 110) + "\n");
  }
  Print("\nscaletrace init NAME copies one here.\n");
  return 0;
}

void WriteNewFile(const std::string& name, std::string_view text, bool force) {
  const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd >= 0) {
    ::close(fd);
  } else if (errno != EEXIST) {
    throw IoError(name, "cannot create", errno);
  } else if (!force) {
    throw InputError(InputError::Kind::kConfig, {.file = name}, "exists already; --force replaces it");
  }
  WriteFileAtomically(name, text);
}

int Init(const std::string& name, bool force) {
  const std::string wanted = EndsWith(name, ".yaml") ? name.substr(0, name.size() - 5) : name;
  const std::vector<std::string_view> names = ConfigNames();
  if (std::find(names.begin(), names.end(), wanted) == names.end()) {
    throw InputError(InputError::Kind::kConfig, {.file = "init"},
                     "found '" + Printable(name) + "'; allowed: a name that `scaletrace configs` lists" + DidYouMean(wanted, names));
  }
  // A config and the data file of the same name that it reads, if it has one.
  for (const ShippedFile& file : ShippedFiles()) {
    if (file.name.substr(0, file.name.rfind('.')) != wanted) continue;
    WriteNewFile(std::string(file.name), file.text, force);
    Print("wrote " + std::string(file.name) + "\n");
  }
  Print(std::string("next: scaletrace ") + (wanted.starts_with("sweep-") ? "sweep " : "run ") + wanted + ".yaml\n");
  return 0;
}

struct ConfigOptions {
  std::string config;
  std::vector<std::string> overrides;
};

}  // namespace

Action AddConfig(CLI::App& command) {
  auto options = std::make_shared<ConfigOptions>();
  command.add_option("CONFIG", options->config, "YAML file, - is standard input")->required();
  command.add_option("--set", options->overrides, "Override a key")->type_name("KEY.PATH=VALUE")->allow_extra_args(false);
  command.footer("Example:\n  scaletrace config quickstart.yaml --set scaler.policy=deepspeed > deepspeed.yaml");
  return [options] {
    const RunConfig config = ReadConfig(options->config, options->overrides);
    for (const std::string& warning : ConfigWarnings(config)) Warn(warning);
    Print(ResolvedYaml(config));
    return 0;
  };
}

Action AddConfigs(CLI::App& command) {
  command.footer("Examples:\n  scaletrace configs\n  scaletrace init sawtooth-bf16                   one of them, here, to change it");
  return ListConfigs;
}

Action AddInit(CLI::App& command) {
  auto name = std::make_shared<std::string>();
  auto force = std::make_shared<bool>(false);
  command.add_option("NAME", *name, "One that `scaletrace configs` lists")->required();
  command.add_flag("--force", *force, "Replace files that are here already");
  command.footer("Example:\n  scaletrace init quickstart && scaletrace run quickstart.yaml");
  return [name, force] { return Init(*name, *force); };
}

Action AddSchema(CLI::App& command) {
  auto reference = std::make_shared<bool>(false);
  command.add_flag("--reference", *reference, "Print the reference of all keys instead, as Markdown");
  command.footer("An editor with YAML support completes and checks configs with it; in VS Code:\n"
                 "  scaletrace schema > scaletrace.schema.json, and \"yaml.schemas\": {\"./scaletrace.schema.json\": \"*.yaml\"}");
  return [reference] {
    Print(*reference ? ConfigReference() : JsonSchema());
    return 0;
  };
}

}  // namespace scaletrace
