// scaletrace policy, policies: their command lines. What they print: policy_command.h.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "scaletrace/commands.h"
#include "scaletrace/messages.h"
#include "scaletrace/policy_command.h"

namespace scaletrace {
namespace {

// "pytorch, flax" in parts, without the blanks around them. InputError (kConfig) where one is empty.
std::vector<std::string> KeysOf(const std::string& list) {
  std::vector<std::string> keys;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    std::string key = list.substr(start, end - start);
    key.erase(0, std::min(key.find_first_not_of(" \t"), key.size()));
    key.erase(key.find_last_not_of(" \t") + 1);
    if (key.empty())
      throw InputError(InputError::Kind::kConfig, {.file = "--compare"},
                       "found '" + Printable(list) + "'; allowed: keys that `scaletrace policies` lists, with one comma between two");
    keys.push_back(std::move(key));
    start = end + 1;
  }
  return keys;
}

}  // namespace

Action AddPolicy(CLI::App& command) {
  auto options = std::make_shared<PolicyOptions>();
  auto key = std::make_shared<std::string>();
  auto compare = std::make_shared<std::string>();
  auto csv = std::make_shared<bool>(false);
  auto json = std::make_shared<bool>(false);
  CLI::Option* one = command.add_option("KEY", *key, "The policy; scaletrace policies lists them");
  CLI::Option* several =
      command.add_option("--compare", *compare, "Several policies side by side, the first difference marked")
          ->type_name("KEY,KEY,...");
  one->excludes(several);
  command
      .add_option("--set", options->settings,
                  "A parameter, as in --set init_scale=2^20; with --compare also KEY.parameter=VALUE")
      ->type_name("parameter=VALUE")
      ->allow_extra_args(false);
  CLI::Option* events =
      command.add_option("--events", options->events, "The steps: F finite, O an inf, N a NaN; runs as in '100F 1O'");
  CLI::Option* file =
      command.add_option("--events-file", options->events_file, "The same from a file; - is standard input")
          ->type_name("FILE");
  events->excludes(file);
  command
      .add_option("--amax-file", options->amax_file,
                  "A line a step: the largest |gradient|, for policies that look at it; of each tensor, for those that "
                  "scale tensors")
      ->type_name("FILE");
  CLI::Option* as_csv = command.add_flag("--csv", *csv, "Print CSV, as in a trace");
  command.add_flag("--json", *json, "Print JSON")->excludes(as_csv);
  command.footer(
      "Columns: the step; the scale in force during it; whether the policy found the gradients finite; what it did to the\n"
      "scale; its counters before the step; applied, whether the optimizer took the step. The last row is what comes after.\n\n"
      "Examples:\n"
      "  scaletrace policy deepspeed --set init_scale=1024 --set growth_interval=3 --events FFFOOFFF\n"
      "  scaletrace policy --compare pytorch,deepspeed,megatron --set growth_interval=10 --events '30F 3O 30F'");
  return [options, key, compare, several, csv, json] {
    options->keys = several->count() > 0 ? KeysOf(*compare) : std::vector<std::string>(1, *key);
    if (several->count() == 0 && key->empty()) options->keys.clear();
    options->output = *csv ? PolicyOutput::kCsv : *json ? PolicyOutput::kJson : PolicyOutput::kTable;
    for (const std::string& warning : PrintPolicySteps(*options, Print)) Warn(warning);
    return 0;
  };
}

Action AddPolicies(CLI::App& command) {
  auto key = std::make_shared<std::string>();
  auto markdown = std::make_shared<bool>(false);
  CLI::Option* one = command.add_option("KEY", *key, "Explain this one in full");
  command.add_flag("--markdown", *markdown, "Print docs/policies.md")->excludes(one);
  command.footer("Examples:\n"
                 "  scaletrace policies                             all of them, a few lines each\n"
                 "  scaletrace policies megatron                    one in full: rule, parameters, a worked example");
  return [key, markdown] {
    Print(*markdown ? PoliciesMarkdown() : key->empty() ? PoliciesTable() : PolicyText(*key));
    return 0;
  };
}

}  // namespace scaletrace
