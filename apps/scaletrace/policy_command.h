// The commands `policy` and `policies` without their command line (policy_cli.cc): from options to text.
#ifndef SCALETRACE_APPS_POLICY_COMMAND_H_
#define SCALETRACE_APPS_POLICY_COMMAND_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrace {

using Sink = std::function<void(std::string_view)>;  // takes the text, piece by piece

enum class PolicyOutput { kTable, kCsv, kJson };

struct PolicyOptions {
  // Several keys: the same steps under each, side by side.
  std::vector<std::string> keys;
  // "parameter=VALUE", VALUE as in a config. With several keys: for each policy that has the parameter;
  // "KEY.parameter=VALUE" for one.
  std::vector<std::string> settings;
  // The steps, as events.h reads them: one of the first two. Policies that scale tensors take amax_file instead; those
  // that look at the largest |gradient| take it too, one number a line, by itself (inf is an O, NaN an N) or beside as
  // many events, where it is the largest of each F.
  std::string events;
  std::string events_file;
  std::string amax_file;  // a line a step: for each tensor its numbers, separated by white space or commas
  PolicyOutput output = PolicyOutput::kTable;
};

// Drives one policy or several and prints each step: the scale in force during it, the verdict, what the policy did,
// its counters before it, whether the optimizer took the step; one more row with the scale after the last step, unless the policy raised. Returns warnings
// about the parameters. Errors: InputError (kConfig), IoError.
std::vector<std::string> PrintPolicySteps(const PolicyOptions& options, const Sink& print);

// All policies: defaults, project, what is special.
std::string PoliciesTable();
// One in full: rule, parameters, a computed example. InputError (kConfig) where there is none.
std::string PolicyText(std::string_view key);
// docs/policies.md.
std::string PoliciesMarkdown();

}  // namespace scaletrace

#endif  // SCALETRACE_APPS_POLICY_COMMAND_H_
