// scaletrace policy, policies: their command lines. What they print: policy_command.h.
#include <memory>

#include "scaletrace/commands.h"
#include "scaletrace/messages.h"
#include "scaletrace/policy_command.h"

namespace scaletrace {

Action AddPolicy(CLI::App& command) {
  auto options = std::make_shared<PolicyOptions>();
  auto key = std::make_shared<std::string>();
  auto csv = std::make_shared<bool>(false);
  auto json = std::make_shared<bool>(false);
  CLI::Option* one = command.add_option("KEY", *key, "The policy; scaletrace policies lists them");
  CLI::Option* several =
      command.add_option("--compare", options->keys, "Several policies side by side, the first difference marked")
          ->delimiter(',')
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
                  "For policies that scale tensors: a line a step, the amax of each tensor")
      ->type_name("FILE");
  CLI::Option* as_csv = command.add_flag("--csv", *csv, "Print CSV, as in a trace");
  command.add_flag("--json", *json, "Print JSON")->excludes(as_csv);
  command.footer(
      "Examples:\n"
      "  scaletrace policy deepspeed --set init_scale=1024 --set growth_interval=3 --events FFFOOFFF\n"
      "  scaletrace policy --compare pytorch,deepspeed,megatron --set growth_interval=10 --events '30F 3O 30F'");
  return [options, key, csv, json] {
    if (!key->empty()) options->keys = {*key};
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
  return [key, markdown] {
    Print(*markdown ? PoliciesMarkdown() : key->empty() ? PoliciesTable() : PolicyText(*key));
    return 0;
  };
}

}  // namespace scaletrace
