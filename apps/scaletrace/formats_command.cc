// scaletrace formats: its command line. What it prints: lib/numerics/format_text.h.
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/number.h"
#include "model/precision.h"
#include "numerics/format.h"
#include "numerics/format_text.h"
#include "scaletrace/commands.h"
#include "scaletrace/messages.h"

namespace scaletrace {
namespace {

const Format& FormatNamed(const std::string& name) {
  if (const Format* format = FindFormat(name)) return *format;
  const std::vector<std::string_view> names(FormatNames().begin(), FormatNames().end());
  std::string allowed;
  for (const std::string_view known : names) allowed += (allowed.empty() ? "" : ", ") + std::string(known);
  throw InputError(InputError::Kind::kConfig, {},
                   "found the format '" + Printable(name) + "'" + DidYouMean(name, names) + "; allowed: " + allowed);
}

// The usage with the values, which the parser does not know of.
class FormatsHelp : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string name) const override {
    return "Usage: " + name + " [OPTIONS] [NAME [VALUE ...]]\n";
  }
};

float ValueOf(const std::string& text) {
  const std::optional<float> value = text == "nan" ? std::numeric_limits<float>::quiet_NaN() : ReadCsvFloat(text);
  if (value) return *value;
  throw InputError(
      InputError::Kind::kConfig, {},
      "found the value '" + Printable(text) + "'; allowed: a decimal number that a float32 can hold, inf, -inf, nan");
}

}  // namespace

Action AddFormats(CLI::App& command) {
  auto name = std::make_shared<std::string>();
  auto markdown = std::make_shared<bool>(false);
  CLI::Option* one = command.add_option("NAME", *name,
                                        "The format to show in full. Values behind it, decimal numbers, inf, -inf "
                                        "or nan: show what it makes of them");
  command.add_flag("--markdown", *markdown, "Print docs/formats.md")->excludes(one);
  auto presets = std::make_shared<bool>(false);
  command.add_flag("--presets", *presets, "List the presets of precision.preset instead: which role has which format")->excludes(one);
  // As a positional the parser would take -inf for an option. So all values are what it has left over, in their order.
  command.prefix_command();
  const auto help = std::make_shared<FormatsHelp>();
  help->column_width(command.get_formatter()->get_column_width());
  command.formatter(help);
  command.footer(
      "Examples:\n"
      "  scaletrace formats float8_e4m3fn                one format: its range and its codes\n"
      "  scaletrace formats float16 0.1 65520 1e-8 -inf  what it makes of these, in every rounding mode");
  return [&command, name, markdown, presets] {
    std::vector<std::string> values = command.remaining();
    std::erase(values, "--");
    if (name->empty()) {
      if (!values.empty()) {
        throw InputError(InputError::Kind::kConfig, {},
                         "found '" + Printable(values.front()) + "'; allowed: the name of a format before it");
      }
      Print(*presets ? PresetTable() : *markdown ? FormatsMarkdown() : FormatsTable());
      return 0;
    }
    const Format& format = FormatNamed(*name);
    std::string text = values.empty() ? FormatText(format) : "";
    for (const std::string& value : values) text += ConversionText(format, ValueOf(value), value);
    Print(text);
    return 0;
  };
}

}  // namespace scaletrace
