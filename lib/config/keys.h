// Single keys of a RunConfig by their path, for those who make many configs of one text without reading it again for each: lib/sweep. Implemented in
// config.cc, with the readers of whole configs.
#ifndef SCALETRACE_CONFIG_KEYS_H_
#define SCALETRACE_CONFIG_KEYS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/yaml.h"
#include "train/run_config.h"

namespace scaletrace {

// A key path with its value, as in "optimizer.lr=0.1", but parsed.
struct KeyValue {
  std::string path;
  YamlNode value;
};

// Every key path of a RunConfig: values, those of every kind included, tags (data.kind) and groups (data).
std::vector<std::string> AllKeyPaths();

// Whether `path` names a group (data, scaler) or the tag of a kind (data.kind, scaler.policy): what a value there changes is which other keys there are.
bool IsStructuralKey(std::string_view path);

// Puts a value into the tree of a config, as --set does: the last one for a path counts, a mapping replaces the whole mapping that was there. `file` stands in
// messages. Throws InputError (kConfig) where the path leads through something that is no mapping.
void PutKey(YamlNode& root, const KeyValue& key_value, const std::string& file);
// The same from "key.path=VALUE", as given to --set.
void PutOverride(YamlNode& root, const std::string& assignment);

// As ParseConfig, from a tree. CheckKeysTogether is left to the caller.
RunConfig ConfigFromTree(const YamlNode& root, const std::string& file, const std::string& folder);

// Sets one value, as if the config's text had said it. The path must not be structural. Throws InputError (kConfig) as ParseConfig does, with the node's
// line: a wrong value, or no such key in this config.
void SetKey(RunConfig& config, const std::string& path, const YamlNode& value, const std::string& file);

// The value at that path as text for a table: numbers, words and lists as YAML has them, text without quotes. nullopt where this config has no such key.
std::optional<std::string> KeyText(const RunConfig& config, std::string_view path);

// What no single key can be blamed for, as ParseConfig checks it at its end. Throws InputError (kConfig).
void CheckKeysTogether(const RunConfig& config, const std::string& file);

}  // namespace scaletrace

#endif  // SCALETRACE_CONFIG_KEYS_H_
