#include "policy_command.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "config/config.h"
#include "config/field_text.h"
#include "scaling/events.h"
#include "scaling/policy_list.h"
#include "scaling/scaler.h"
#include "scaling/tensor_policies.h"

namespace scaletrace {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 28;

[[noreturn]] void Refuse(const std::string& message) { throw InputError(InputError::Kind::kConfig, {}, message); }

std::vector<std::string_view> AllKeys() {
  std::vector<std::string_view> keys;
  for (const std::string_view key : KindNames<Policy>()) keys.push_back(key);
  for (const std::string_view key : KindNames<TensorPolicy>()) keys.push_back(key);
  return keys;
}

[[noreturn]] void RefuseKey(std::string_view key) {
  Refuse("found the policy '" + Printable(key) + "'" + DidYouMean(key, AllKeys()) +
         "; allowed: a key that `scaletrace policies` lists");
}

// One parameter as text: for tables.
struct Parameter {
  std::string_view key;
  std::string value;
  std::string allowed;
  std::string doc;
};
class ParameterReader {
 public:
  template <class T>
  void Value(const Field& field, const T& value) {
    parameters.push_back({field.key, YamlText(value), AllowedText<T>(field), std::string(field.doc)});
  }
  std::vector<Parameter> parameters;
};
template <class P>
std::vector<Parameter> ParametersOf(const P& policy) {
  ParameterReader reader;
  P::Visit(policy, reader);
  return std::move(reader.parameters);
}
std::vector<Parameter> ParametersOf(const Policy& policy) {
  return std::visit([](const auto& p) { return ParametersOf(p); }, policy);
}

Policy DefaultPolicy(std::string_view key) {
  Policy policy;
  if (!SetKind(policy, key)) {
    if (const std::string why = WhyNotInRun(key); !why.empty()) Refuse(why);
    RefuseKey(key);
  }
  return policy;
}

// "init_scale=2" of "init_scale=2".
std::string_view NameOf(std::string_view setting) {
  return setting.substr(0, std::min(setting.find('='), setting.size()));
}

bool HasParameter(std::string_view key, std::string_view name) {
  const std::vector<Parameter> parameters = ParametersOf(DefaultPolicy(key));
  return std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& p) { return p.key == name; });
}

// The settings as the config reader takes them; its messages name the keys as the user did.
Policy PolicyFrom(std::string_view key, const std::vector<std::string>& settings) {
  std::vector<std::string_view> names;
  const std::vector<Parameter> parameters = ParametersOf(DefaultPolicy(key));
  for (const Parameter& parameter : parameters) names.push_back(parameter.key);
  for (const std::string& setting : settings) {
    const std::string_view name = NameOf(setting);
    if (name.size() == setting.size()) Refuse("--set: found " + Printable(setting) + "; allowed: parameter=VALUE");
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      Refuse("--set: found " + Printable(name) + DidYouMean(name, names) + "; allowed: " +
             (names.empty() ? "none, since " + std::string(key) + " has no parameters" : Choices(names)));
    }
  }
  std::vector<std::string> overrides = {"scaler.policy=" + std::string(key)};
  for (const std::string& setting : settings) overrides.push_back("scaler." + setting);
  try {
    Policy policy = ParseConfig("{}", "--set", ".", overrides).scaler;
    if (const auto problem = FindProblem(policy))
      Refuse("--set: " + std::string(problem->key) + ": " + problem->message);
    return policy;
  } catch (const InputError& error) {
    std::string text = error.what();
    for (std::size_t at; (at = text.find("scaler.")) != std::string::npos;) text.erase(at, 7);
    throw InputError(error.kind(), {}, text);
  }
}

std::vector<Policy> PoliciesFrom(const PolicyOptions& options) {
  std::vector<std::vector<std::string>> settings(options.keys.size());
  for (const std::string& setting : options.settings) {
    const std::string_view name = NameOf(setting);
    bool taken = options.keys.size() == 1;
    if (taken) {
      const std::string prefix = options.keys[0] + ".";
      settings[0].push_back(setting.starts_with(prefix) ? setting.substr(prefix.size()) : setting);
    }
    for (std::size_t i = 0; i < options.keys.size() && options.keys.size() > 1; ++i) {
      const std::string prefix = options.keys[i] + ".";
      if (name.starts_with(prefix)) {
        settings[i].push_back(setting.substr(prefix.size()));
        taken = true;
      } else if (HasParameter(options.keys[i], name)) {
        settings[i].push_back(setting);
        taken = true;
      }
    }
    if (!taken)
      Refuse("--set: found " + Printable(name) +
             "; allowed: a parameter of one of the policies, or KEY.parameter for one of them");
  }
  std::vector<Policy> policies;
  for (std::size_t i = 0; i < options.keys.size(); ++i) policies.push_back(PolicyFrom(options.keys[i], settings[i]));
  return policies;
}

// The shortest decimal of the scale as a double.
std::string ScaleCell(double scale) { return ToText(scale); }

std::string Padded(std::string text, std::size_t width, bool right = true) {
  const std::size_t fill = width > text.size() ? width - text.size() : 0;
  return right ? std::string(fill, ' ') + text : text + std::string(fill, ' ');
}

// A table for people: columns as wide as what stands in them, two blanks between them. Widths are those of the first
// rows, all that are held back until they are known; a longer cell further down pushes its row to the right.
class Table {
 public:
  struct Column {
    std::string head;
    bool right = true;
    std::size_t width = 0;  // at least
  };
  Table(std::vector<Column> columns, Sink print) : columns_(std::move(columns)), print_(std::move(print)) {
    for (Column& column : columns_) column.width = std::max(column.width, column.head.size());
  }
  // One cell for each column; `remark` stands behind the last.
  void Add(std::vector<std::string> cells, const std::string& remark = "") {
    if (open_) return Print(cells, remark);
    for (std::size_t i = 0; i < cells.size(); ++i) columns_[i].width = std::max(columns_[i].width, cells[i].size());
    rows_.emplace_back(std::move(cells), remark);
    if (rows_.size() >= kRowsHeld) Finish();
  }
  // To be called after the last row.
  void Finish() {
    if (open_) return;
    open_ = true;
    std::vector<std::string> heads;
    for (const Column& column : columns_) heads.push_back(column.head);
    Print(heads, "");
    for (const auto& [cells, remark] : rows_) Print(cells, remark);
    rows_.clear();
  }

 private:
  static constexpr std::size_t kRowsHeld = 4096;

  void Print(const std::vector<std::string>& cells, const std::string& remark) const {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) line += "  " + Padded(cells[i], columns_[i].width, columns_[i].right);
    line += remark;
    while (line.ends_with(' ')) line.pop_back();
    print_(line + "\n");
  }

  std::vector<Column> columns_;
  Sink print_;
  bool open_ = false;  // whether the widths are known, and the first rows printed
  std::vector<std::pair<std::vector<std::string>, std::string>> rows_;
};

// A row of a driven policy, before the step was taken.
struct Row {
  std::int64_t step = 0;
  double scale = 0;
  std::string finite;  // empty after the last step
  std::string event;
  std::vector<std::string> counters;
  std::string applied;  // whether the optimizer took the step; empty after the last step
};

void PrintRow(const Row& row, const std::vector<std::string_view>& names, PolicyOutput output, bool first,
              const Sink& print, Table& table) {
  std::string line;
  if (output == PolicyOutput::kJson) {
    line = std::string(first ? "\n" : ",\n") + "  {\"step\": " + std::to_string(row.step) +
           ", \"loss_scale\": " + ToJsonText(row.scale) +
           ", \"grads_finite\": " + (row.finite.empty() ? "null" : row.finite) +
           ", \"event\": " + (row.finite.empty() ? "null" : ToJsonString(row.event));
    for (std::size_t i = 0; i < names.size(); ++i) {
      const bool number = row.counters[i].find_first_not_of("0123456789+-.e") == std::string::npos;
      line += ", " + ToJsonString(names[i]) + ": " + (number ? row.counters[i] : ToJsonString(row.counters[i]));
    }
    line += ", \"applied\": " + (row.applied.empty() ? "null" : row.applied) + "}";
  } else if (output == PolicyOutput::kCsv) {
    line = std::to_string(row.step) + "," + ScaleCell(row.scale) + "," + row.finite + "," + row.event;
    for (const std::string& counter : row.counters) line += "," + counter;
    line += "," + row.applied + "\n";
  } else {
    std::vector<std::string> cells = {std::to_string(row.step), ScaleCell(row.scale), row.finite, row.event};
    cells.insert(cells.end(), row.counters.begin(), row.counters.end());
    cells.push_back(row.applied);
    return table.Add(std::move(cells));
  }
  print(line);
}

// The steps that drive policies: by kind, and where they come from a file of amax, the largest |gradient| of each.
struct StepList {
  std::vector<EventRun> runs;
  std::vector<double> amax;

  Observation At(const EventRun& run, std::int64_t step) const {
    Observation seen = ObservationOf(run.event);
    seen.step = step;
    if (!amax.empty() && run.event == 'F') seen.max_abs = amax[static_cast<std::size_t>(step)];
    return seen;
  }
};

void PrintSteps(const Policy& policy, const StepList& steps, PolicyOutput output, const Sink& print) {
  Scaler scaler(policy);
  const std::vector<std::string_view> names = scaler.CounterNames();
  if (output == PolicyOutput::kJson) {
    std::string head = "{\"policy\": " + ToJsonString(KindName(policy)) + ", \"parameters\": ";
    head += std::visit([](const auto& p) { return FieldsToJson(p); }, policy);
    print(head + ", \"rows\": [");
  } else if (output == PolicyOutput::kCsv) {
    std::string head = "step,loss_scale,grads_finite,event";
    for (const std::string_view name : names) head += "," + std::string(name);
    print(head + ",applied\n");
  }
  std::vector<Table::Column> columns = {{"step", true, 6}, {"loss_scale"}, {"finite"}, {"event", false, 8}};
  for (const std::string_view name : names) columns.push_back({std::string(name)});
  columns.push_back({"applied"});
  Table table(std::move(columns), print);
  std::int64_t step = 0;
  bool raised = false;
  for (const EventRun& run : steps.runs) {
    for (std::int64_t i = 0; i < run.count && !raised; ++i, ++step) {
      Row row = {step, scaler.loss_scale(), "", "", scaler.Counters(), ""};
      const Scaler::Decision decision = scaler.Next(steps.At(run, step));
      row.finite = decision.finite ? "1" : "0";
      row.event = Name(decision.event);
      row.applied = decision.apply ? "1" : "0";
      raised = decision.raised;
      PrintRow(row, names, output, step == 0, print, table);
    }
  }
  if (!raised) PrintRow({step, scaler.loss_scale(), "", "", scaler.Counters(), ""}, names, output, step == 0, print, table);
  if (output == PolicyOutput::kTable) table.Finish();
  if (output == PolicyOutput::kJson) print("\n]}\n");
}

// Side by side: the scales; a row where they part for the first time is marked.
void PrintComparison(const std::vector<std::string>& keys, const std::vector<Policy>& policies,
                     const StepList& steps, PolicyOutput output, const Sink& print) {
  std::vector<Scaler> scalers;
  for (const Policy& policy : policies) scalers.emplace_back(policy);
  std::vector<bool> raised(scalers.size(), false);
  std::vector<Table::Column> columns = {{"step", true, 6}, {"in", false}};
  for (const std::string& key : keys) columns.push_back({key, true, 12});
  Table table(std::move(columns), print);
  std::string head;
  if (output == PolicyOutput::kJson) {
    head = "{\"policies\": [";
    for (std::size_t i = 0; i < keys.size(); ++i) head += (i > 0 ? ", " : "") + ToJsonString(keys[i]);
    head += "], \"rows\": [";
  } else if (output == PolicyOutput::kCsv) {
    head = "step,input";
    for (const std::string& key : keys) head += "," + key;
    head += ",first_difference\n";
  }
  print(head);

  std::int64_t step = 0;
  std::optional<std::int64_t> first;
  bool first_row = true;
  const auto row = [&](const std::string& input) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < scalers.size(); ++i)
      cells.push_back(raised[i] ? "" : ScaleCell(scalers[i].loss_scale()));
    const bool parts =
        !first && std::any_of(cells.begin(), cells.end(), [&](const std::string& cell) { return cell != cells[0]; });
    if (parts) first = step;
    std::string line;
    if (output == PolicyOutput::kJson) {
      line = std::string(first_row ? "\n" : ",\n") + "  {\"step\": " + std::to_string(step) +
             ", \"input\": " + (input.empty() ? "null" : ToJsonString(input)) + ", \"loss_scales\": [";
      for (std::size_t i = 0; i < cells.size(); ++i)
        line += (i > 0 ? ", " : "") + (raised[i] ? "null" : ToJsonText(scalers[i].loss_scale()));
      line += std::string("], \"first_difference\": ") + (parts ? "true" : "false") + "}";
    } else if (output == PolicyOutput::kCsv) {
      line = std::to_string(step) + "," + input;
      for (const std::string& cell : cells) line += "," + cell;
      line += parts ? ",1\n" : ",0\n";
    } else {
      std::vector<std::string> shown = {std::to_string(step), input};
      for (std::size_t i = 0; i < cells.size(); ++i) shown.push_back(raised[i] ? "raised" : cells[i]);
      return table.Add(std::move(shown), parts ? "   <- first difference" : "");
    }
    first_row = false;
    print(line);
  };
  for (const EventRun& run : steps.runs) {
    for (std::int64_t i = 0; i < run.count; ++i, ++step) {
      row(std::string(1, run.event));
      const Observation seen = steps.At(run, step);
      for (std::size_t p = 0; p < scalers.size(); ++p) {
        if (!raised[p]) raised[p] = scalers[p].Next(seen).raised;
      }
    }
  }
  row("");
  if (output == PolicyOutput::kJson) print("\n]}\n");
  if (output == PolicyOutput::kTable) table.Finish();
  if (output == PolicyOutput::kTable)
    print(first ? "\nThey part at step " + std::to_string(*first) + ".\n" : "\nNo difference.\n");
}

// The lines of a file of amax as numbers: steps, each with the numbers of all tensors. One number for each is an amax,
// of float32 values: not negative, and no larger than they are.
std::vector<std::vector<double>> ReadAmax(const std::string& path, std::size_t inputs) {
  const std::string text = ReadFile(path, kMaxFileBytes);
  std::vector<std::vector<double>> steps;
  std::size_t line = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    ++line;
    std::vector<double> step;
    std::string_view rest = std::string_view(text).substr(start, end - start);
    start = end + 1;
    rest = rest.substr(0, std::min(rest.find('#'), rest.size()));
    for (;;) {
      const std::size_t begin = rest.find_first_not_of(" \t\r,");
      if (begin == std::string_view::npos) break;
      rest.remove_prefix(begin);
      const std::string_view token = rest.substr(0, std::min(rest.find_first_of(" \t\r,"), rest.size()));
      const std::optional<double> number = ReadCsvDouble(token == "nan" ? "NaN" : token);
      const auto refuse = [&](const std::string& note, const std::string& allowed) {
        throw InputError(InputError::Kind::kData, {path, line, ""},
                         "found " + Printable(token) + note + "; allowed: " + allowed);
      };
      if (!number) refuse("", "a number, inf or NaN");
      if (inputs == 1 && *number < 0) refuse("", "a number >= 0, inf or NaN");
      if (inputs == 1 && std::isfinite(*number) && !ReadCsvFloat(token)) refuse(" (too large for float32)", "a number >= 0, inf or NaN");
      step.push_back(*number);
      rest.remove_prefix(token.size());
    }
    if (step.empty()) continue;
    if (step.size() % inputs != 0 || (!steps.empty() && step.size() != steps.front().size())) {
      throw InputError(
          InputError::Kind::kData, {path, line, ""},
          "found " + std::to_string(step.size()) + (step.size() == 1 ? " number" : " numbers") + "; allowed: " +
              (steps.empty() ? inputs == 1 ? "one for each tensor" : std::to_string(inputs) + " for each layer"
                             : std::to_string(steps.front().size()) + ", as in the first step"));
    }
    steps.push_back(std::move(step));
  }
  if (steps.empty())
    throw InputError(InputError::Kind::kData, {path, 0, ""}, "found no step; allowed: at least one line of numbers");
  return steps;
}

// "parameter=VALUE" into a tensor policy: numbers and names only.
class Setter {
 public:
  Setter(std::string_view name, std::string_view text) : name_(name), text_(text) {}
  template <class T>
  void Value(const Field& field, T& value) {
    keys_.push_back(field.key);
    if (field.key != name_) return;
    found_ = true;
    bool good = false;
    if constexpr (std::is_enum_v<T>) {
      const auto names = EnumNames(T{});
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] != text_) continue;
        value = static_cast<T>(i);
        good = true;
      }
    } else if constexpr (std::is_integral_v<T>) {
      const auto number = ReadInteger(text_);
      good = number && field.limits.Allows(static_cast<double>(*number));
      if (good) value = *number;
    } else {
      const auto number = ReadDouble(text_);
      good = number && field.limits.Allows(static_cast<double>(static_cast<T>(*number)));
      if (good) value = static_cast<T>(*number);
    }
    if (!good)
      Refuse("--set: " + std::string(name_) + ": found " + Printable(text_) + "; allowed: " + AllowedText<T>(field));
  }
  void Finish() const {
    if (!found_) Refuse("--set: found " + Printable(name_) + DidYouMean(name_, keys_) + "; allowed: " + Choices(keys_));
  }

 private:
  std::string_view name_;
  std::string_view text_;
  std::vector<std::string_view> keys_;
  bool found_ = false;
};

void PrintTensorSteps(const PolicyOptions& options, const Sink& print) {
  TensorPolicy policy;
  SetKind(policy, options.keys[0]);
  for (const std::string& setting : options.settings) {
    if (setting.find('=') == std::string::npos)
      Refuse("--set: found " + Printable(setting) + "; allowed: parameter=VALUE");
    const std::string_view name = NameOf(setting);
    Setter setter(name, std::string_view(setting).substr(name.size() + 1));
    std::visit([&]<class P>(P& p) { P::Visit(p, setter); }, policy);
    setter.Finish();
  }
  const std::size_t inputs = std::visit([]<class P>(const P&) { return P::kInputs; }, policy);
  const auto rows = TensorScales(policy, ReadAmax(options.amax_file, inputs));
  const PolicyOutput output = options.output;
  if (output == PolicyOutput::kTable) {
    std::vector<Table::Column> columns = {{"step", true, 6}};
    for (std::size_t t = 0; t < rows[0].size(); ++t) columns.push_back({"scale_" + std::to_string(t), true, 12});
    Table table(std::move(columns), print);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::vector<std::string> cells = {std::to_string(i)};
      for (const double s : rows[i]) cells.push_back(ToText(s));
      table.Add(std::move(cells));
    }
    return table.Finish();
  }
  std::string head;
  if (output == PolicyOutput::kJson) {
    head = "{\"policy\": " + ToJsonString(options.keys[0]) + ", \"parameters\": ";
    head += std::visit([](const auto& p) { return FieldsToJson(p); }, policy);
    head += ", \"scales\": [";
  } else {
    head = "step";
    for (std::size_t t = 0; t < rows[0].size(); ++t) head += ",scale_" + std::to_string(t);
    head += "\n";
  }
  print(head);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string line = output != PolicyOutput::kJson ? std::to_string(i) : i == 0 ? "\n  [" : ",\n  [";
    for (std::size_t t = 0; t < rows[i].size(); ++t) {
      const double s = rows[i][t];
      line += output == PolicyOutput::kJson ? (t > 0 ? ", " : "") + ToJsonText(s) : "," + ToText(s);
    }
    print(line + (output == PolicyOutput::kJson ? "]" : "\n"));
  }
  if (output == PolicyOutput::kJson) print("\n]}\n");
}

bool IsTensorPolicy(std::string_view key) { return !WhyNotInRun(key).empty(); }

// What a policy looks at, in words.
std::string LooksAt(const Needs& needs) {
  std::string text;
  const auto add = [&](bool needed, const char* what) {
    if (needed) text += (text.empty() ? "" : "; ") + std::string(what);
  };
  add(needs.unscaled_finite, "every element of the unscaled gradients");
  add(needs.scaled_finite, "every element of the scaled gradients");
  add(needs.sums_finite, "the float32 sum of each scaled tensor");
  add(needs.norm_finite, "the norm of the unscaled gradients");
  add(needs.scaled_norm_finite, "the norm of the scaled gradients");
  add(needs.max_abs, "the largest unscaled |gradient|");
  add(needs.share_above, "the share of large elements");
  return text;
}

std::string ClaimsText(const Claims& claims) {
  std::string text;
  const auto add = [&](bool made, const char* what) {
    if (made) text += (text.empty() ? "" : ", ") + std::string(what);
  };
  add(claims.never_grows_on_overflow, "never grows on an overflow");
  add(claims.keeps_powers_of_two, "keeps powers of two");
  add(claims.stays_within_limits, "stays within its limits");
  add(claims.stays_positive, "stays positive");
  add(claims.stays_finite, "stays finite");
  return text.empty() ? "none" : text;
}

constexpr std::string_view kHoldText[] = {"float32, factors too", "float32, products rounded once", "float64"};

constexpr std::string_view kExampleEvents = "FFFOOFFF";

// The policy on the events of the example, started at 1024 with an interval of 3 where it has those parameters.
struct Example {
  std::string settings;
  std::string scales;
  std::string events;
};
class ExampleValues {
 public:
  template <class T>
  void Value(const Field& field, T& value) {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      const bool scale = field.key == "init_scale";
      if (!scale && field.key != "growth_interval") return;
      value = static_cast<T>(scale ? 1024 : 3);
      settings += (settings.empty() ? "" : ", ") + std::string(field.key) + (scale ? " 1024" : " 3");
    }
  }
  std::string settings;
};
template <class P>
Example ExampleOf() {
  ExampleValues small;
  P policy;
  P::Visit(policy, small);
  Scaler scaler{Policy(policy)};
  Example example;
  example.settings = small.settings.empty() ? "defaults" : small.settings;
  example.scales = ScaleCell(scaler.loss_scale());
  for (const char event : kExampleEvents) {
    const Scaler::Decision decision = scaler.Next(ObservationOf(event));
    example.events += (example.events.empty() ? "" : ", ") +
                      (decision.event == Event::kNone ? "-" : std::string(Name(decision.event)));
    if (decision.raised) break;
    example.scales += " " + ScaleCell(scaler.loss_scale());
  }
  return example;
}

template <class P>
std::string TensorExample() {
  std::vector<std::vector<double>> steps;
  P policy;
  if constexpr (std::is_same_v<P, TeDelayed>) policy.history_length = 4;
  if constexpr (std::is_same_v<P, Adaloss>) {
    steps = {{0, 1e-6, 0, 0.01, 512, 1e-6, 0, 1e-4, 0, 0.01, 512, 1e-4}};
  } else {
    for (const double amax : {2, 4, 1, 1, 1, 1}) steps.push_back({amax});
  }
  std::string text;
  for (const auto& row : TensorScales(policy, steps)) {
    for (const double s : row) text += (text.empty() ? "" : " ") + ToText(s);
  }
  return text;
}

std::string Title(std::string_view project, std::string_view file) {
  return std::string(project) + (file.empty() ? "" : ", " + std::string(file));
}

std::string Indented(std::string_view text, const std::string& indent) {
  std::string out;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    out += indent + std::string(text.substr(start, end - start)) + "\n";
    start = end + 1;
  }
  return out;
}

std::string Summed(const std::vector<Parameter>& parameters) {
  std::string text;
  for (const Parameter& p : parameters) text += (text.empty() ? "" : " ") + std::string(p.key) + "=" + p.value;
  return text.empty() ? "no parameters" : text;
}

std::string ParameterTable(const std::vector<Parameter>& parameters) {
  if (parameters.empty()) return "  none\n";
  std::size_t key = 0, value = 0;
  for (const Parameter& p : parameters) {
    key = std::max(key, p.key.size());
    value = std::max(value, p.value.size());
  }
  std::string text;
  for (const Parameter& p : parameters) {
    text += "  " + Padded(std::string(p.key), key + 2, false) + Padded(p.value, value + 2, false) + p.doc + " (" +
            p.allowed + ")\n";
  }
  return text;
}

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

std::string MarkdownParameters(const std::vector<Parameter>& parameters) {
  if (parameters.empty()) return "No parameters.\n\n";
  std::string text = "| parameter | default | allowed | meaning |\n|---|---|---|---|\n";
  for (const Parameter& p : parameters) {
    text += "| `" + std::string(p.key) + "` | " + Escaped(p.value) + " | " + Escaped(p.allowed) + " | " +
            Escaped(p.doc) + " |\n";
  }
  return text + "\n";
}

}  // namespace

namespace {

// The steps that the options give for policies that scale one loss.
StepList StepsFrom(const PolicyOptions& options, const std::vector<Policy>& policies) {
  const bool has_events = !options.events.empty() || !options.events_file.empty();
  const bool takes_amax =
      std::any_of(policies.begin(), policies.end(), [](const Policy& p) { return Scaler(p).needs().max_abs; });
  if (!options.amax_file.empty() && !takes_amax) {
    std::vector<std::string_view> takers;
    ForEachKind<Policy>([&]<class P>() {
      if (P::kInfo.needs.max_abs) takers.push_back(P::kName);
    });
    for (const std::string_view key : KindNames<TensorPolicy>()) takers.push_back(key);
    Refuse("--amax-file is for policies that look at the largest |gradient|, or that scale tensors: " + Choices(takers));
  }
  if (!options.events.empty() && !options.events_file.empty())
    Refuse("found both --events and --events-file; allowed: one of them");
  if (!has_events && options.amax_file.empty())
    Refuse("found no steps; allowed: one of --events and --events-file" + std::string(takes_amax ? ", or --amax-file" : ""));
  StepList steps;
  if (has_events) {
    steps.runs = options.events.empty() ? ParseEvents(ReadFile(options.events_file, kMaxFileBytes), options.events_file)
                                        : ParseEvents(options.events, "--events");
  }
  if (options.amax_file.empty()) return steps;
  for (const std::vector<double>& numbers : ReadAmax(options.amax_file, 1)) {
    if (numbers.size() != 1)
      throw InputError(InputError::Kind::kData, {options.amax_file, 0, ""},
                       "found " + std::to_string(numbers.size()) + " numbers a line; allowed: one, the largest |gradient|");
    steps.amax.push_back(numbers[0]);
    if (has_events) continue;
    const char event = std::isnan(numbers[0]) ? 'N' : std::isinf(numbers[0]) ? 'O' : 'F';
    if (steps.runs.empty() || steps.runs.back().event != event) steps.runs.push_back({event, 0});
    ++steps.runs.back().count;
  }
  std::int64_t count = 0;
  for (const EventRun& run : steps.runs) count += run.count;
  if (count != static_cast<std::int64_t>(steps.amax.size()))
    throw InputError(InputError::Kind::kData, {options.amax_file, 0, ""},
                     "found " + std::to_string(steps.amax.size()) + " steps; allowed: " + std::to_string(count) +
                         ", as many as there are events");
  return steps;
}

}  // namespace

std::vector<std::string> PrintPolicySteps(const PolicyOptions& options, const Sink& print) {
  if (options.keys.empty()) Refuse("found no policy; allowed: a key that `scaletrace policies` lists");
  for (const std::string& key : options.keys) {
    const auto keys = AllKeys();
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) RefuseKey(key);
  }
  const bool tensors = options.keys.size() == 1 && IsTensorPolicy(options.keys[0]);
  if (tensors) {
    if (options.amax_file.empty() || !options.events.empty() || !options.events_file.empty())
      Refuse(options.keys[0] + " scales tensors: it takes --amax-file, and no events");
    PrintTensorSteps(options, print);
    return {};
  }
  const std::vector<Policy> policies = PoliciesFrom(options);
  const StepList steps = StepsFrom(options, policies);
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    for (const std::string& warning : Warnings(policies[i])) warnings.push_back(options.keys[i] + "." + warning);
  }
  if (policies.size() == 1) {
    PrintSteps(policies[0], steps, options.output, print);
  } else {
    PrintComparison(options.keys, policies, steps, options.output, print);
  }
  return warnings;
}

std::string PoliciesTable() {
  std::string text;
  const auto add = [&](std::string_view key, std::string_view project, std::string_view summary,
                       const std::vector<Parameter>& parameters) {
    text += std::string(key) + "  (" + std::string(project) + ")\n    " + std::string(summary) + "\n    " +
            Summed(parameters) + "\n";
  };
  ForEachKind<Policy>([&]<class P>() { add(P::kName, P::kInfo.project, P::kInfo.summary, ParametersOf(P())); });
  text += "\nPolicies that scale tensors or layers, not one loss; --amax-file drives them:\n\n";
  ForEachKind<TensorPolicy>([&]<class P>() { add(P::kName, P::kInfo.project, P::kInfo.summary, ParametersOf(P())); });
  text += "\nscaletrace policies KEY explains one in full. The values shown are the defaults.\n";
  return text;
}

std::string PolicyText(std::string_view key) {
  std::string text;
  ForEachKind<Policy>([&]<class P>() {
    if (P::kName != key) return;
    const PolicyInfo& i = P::kInfo;
    const Example example = ExampleOf<P>();
    text = std::string(key) + ": " + std::string(i.summary) + "\n\n";
    text += "from      " + Title(i.project, i.file) + "\n";
    text += "S         " + std::string(kHoldText[static_cast<std::size_t>(i.hold)]) + "\n";
    text += "looks at  " + LooksAt(i.needs) + "\n";
    text += "claims    " + ClaimsText(i.claims) + "\n\n";
    text += "Rule (F: a step with finite gradients, O: an overflow)\n" + Indented(i.rule, "  ") + "\n";
    text += "Parameters and their defaults\n" + ParameterTable(ParametersOf(P())) + "\n";
    text += "Example: " + example.settings + ", events " + std::string(kExampleEvents) + "\n";
    text += "  scales  " + example.scales + "\n  events  " + example.events + "\n";
  });
  ForEachKind<TensorPolicy>([&]<class P>() {
    if (P::kName != key) return;
    const TensorPolicyInfo& i = P::kInfo;
    text = std::string(key) + ": " + std::string(i.summary) + "\n\n";
    text += "from      " + std::string(i.project) + "\n";
    text += "takes     for each tensor or layer and step: " + std::string(i.input) + "\n\n";
    text += "Rule\n" + Indented(i.rule, "  ") + "\n";
    text += "Parameters and their defaults\n" + ParameterTable(ParametersOf(P())) + "\n";
    text += std::is_same_v<P, Adaloss> ? "Example: two layers, one step; scales before it, and after it\n"
                                       : "Example: amax 2 4 1 1 1 1 (te-delayed: with history_length 4)\n";
    text += "  scales  " + TensorExample<P>() + "\n";
  });
  if (text.empty()) RefuseKey(key);
  return text;
}

std::string PoliciesMarkdown() {
  std::string text =
      "# Loss-scale policies\n\n"
      "Printed by `scaletrace policies --markdown`; the examples are computed. `S` is the loss scale, `W` the growth "
      "interval, `g` and `b` the growth and\n"
      "backoff factor, `f` one factor for both. F is a step whose gradients are finite, O one that overflowed. `A <- "
      "B` assigns; `f32(x)` rounds to float32.\n"
      "The scale of step i is in force during it; what the policy decides there is in force from step i+1 on. An "
      "overflow skips the step unless something else\n"
      "is said. Rules and parameters of public policies are those of their projects, mistakes included: a key that "
      "ends in `-fixed` is its neighbour without the\n"
      "mistake that its summary names. What a project accepts is accepted, with a warning where it makes little "
      "sense.\n\n"
      "| key | project | what is special |\n|---|---|---|\n";
  const auto link = [&](std::string_view key, std::string_view project, std::string_view summary) {
    text += "| [" + std::string(key) + "](#" + std::string(key) + ") | " + Escaped(project) + " | " + Escaped(summary) +
            " |\n";
  };
  ForEachKind<Policy>([&]<class P>() { link(P::kName, P::kInfo.project, P::kInfo.summary); });
  ForEachKind<TensorPolicy>([&]<class P>() { link(P::kName, P::kInfo.project, P::kInfo.summary); });
  text += "\n";
  ForEachKind<Policy>([&]<class P>() {
    const PolicyInfo& i = P::kInfo;
    const Example example = ExampleOf<P>();
    text += "## " + std::string(i.key) + "\n\n" + std::string(i.summary) + ".\n\n";
    text += "From " + Title(i.project, i.file) + ". S is held as " +
            std::string(kHoldText[static_cast<std::size_t>(i.hold)]) + ".";
    if (const std::string looks = LooksAt(i.needs); !looks.empty()) text += " Looks at: " + looks + ".";
    text += " Claims: " + ClaimsText(i.claims) + ".\n\n```\n" + Indented(i.rule, "") + "```\n\n";
    text += MarkdownParameters(ParametersOf(P()));
    text += "Example (" + example.settings + "; events `" + std::string(kExampleEvents) + "`): " + example.scales +
            "; what it did: " + example.events + ".\n\n";
  });
  ForEachKind<TensorPolicy>([&]<class P>() {
    const TensorPolicyInfo& i = P::kInfo;
    text += "## " + std::string(i.key) + "\n\n" + std::string(i.summary) + ".\n\n";
    text += "From " + std::string(i.project) + ". Not for a run: `scaletrace policy " + std::string(i.key) +
            " --amax-file FILE` drives it, one line a step, in it for each tensor or layer: " + std::string(i.input) +
            ".\n\n```\n" + Indented(i.rule, "") + "```\n\n";
    text += MarkdownParameters(ParametersOf(P()));
    text += std::is_same_v<P, Adaloss> ? "Example (two layers, one step; scales before it, and after it): "
                                       : "Example (amax 2 4 1 1 1 1; te-delayed with `history_length` 4): ";
    text += TensorExample<P>() + ".\n\n";
  });
  text.pop_back();
  return text;
}

}  // namespace scaletrace
