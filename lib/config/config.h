// YAML text ↔ RunConfig: the strict reader with its overrides, the resolved config, the run's hash. All of it follows
// the structs' Visit (base/fields.h), so that a new key is one line there. The schema and the reference table:
// schema.h. Which YAML is taken: yaml.h.
#ifndef SCALETRACE_CONFIG_CONFIG_H_
#define SCALETRACE_CONFIG_CONFIG_H_

#include <string>
#include <string_view>
#include <vector>

#include "train/run_config.h"

namespace scaletrace {

// Reads a config. `overrides` are "key.path=VALUE" as given to --set, VALUE being YAML: a scalar, a list in [], or a
// mapping in {} (which replaces the whole mapping that was there). They are applied in order, a later one over an
// earlier one. Keys that are given nowhere have their defaults.
//
// Every error in the text is an InputError (kConfig), "FILE:LINE: key.path: found X; allowed: Y"; for an override FILE
// is "--set" and there is no line. Unreadable, a directory, larger than 1 MiB: IoError. "-" is standard input.
RunConfig ReadConfig(const std::string& path, const std::vector<std::string>& overrides = {});

// The same from text. `file` stands in messages; relative paths in the config start at `folder`.
RunConfig ParseConfig(std::string_view text, const std::string& file, const std::string& folder,
                      const std::vector<std::string>& overrides = {});

// What is allowed but hardly meant, one sentence each.
std::vector<std::string> ConfigWarnings(const RunConfig& config);

// The whole config, every default written out. Reads back to the same config (from the same folder), and to the same
// text.
std::string ResolvedYaml(const RunConfig& config);

// 64 hexadecimal digits: SHA-256 over every key and value except `name`, over the content of the data files that the
// config names, and over the version of the generators. Two runs with the same hash have the same trace. Errors: as
// DataFileHash (data/generators.h).
std::string ConfigHash(const RunConfig& config);

}  // namespace scaletrace

#endif  // SCALETRACE_CONFIG_CONFIG_H_
