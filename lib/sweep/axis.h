// One axis of a sweep: which keys it sets and what the i-th setting is. Values are computed from their index, never listed, so that an axis of a billion
// values costs nothing. How axes are crossed, and what a setting does to a config: plan.h.
#ifndef SCALETRACE_SWEEP_AXIS_H_
#define SCALETRACE_SWEEP_AXIS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "config/keys.h"

namespace scaletrace {

// The values of one key: given one by one, or a rule.
class Series {
 public:
  // Reads
  //   [5, 20, 100]  or  {grid: [5, 20, 100]}                     these values
  //   {range: [FIRST, LAST], step: S}  or  count: N              evenly apart; step 1 where neither is given
  //   {logrange: [FIRST, LAST], count: N}                        evenly apart in the logarithm
  //   {log2range: [FIRST, LAST], step: S}                        2^FIRST to 2^LAST
  //   {random: DISTRIBUTION, ..., count: N, seed: S}             uniform, log-uniform (low, high), normal (mean, std), integer (low, high), and
  //                                                              power-of-two (low, high: exponents); value i depends on seed, key and i alone
  // from `node`, which stands in `file` at the key path `path` (of messages). Throws InputError (kConfig).
  Series(const std::string& key, const YamlNode& node, const std::string& file, const std::string& path);

  const std::string& key() const { return key_; }
  std::uint64_t count() const { return count_; }
  // Value i < count; a reference to `scratch` or to a value of this object.
  const YamlNode& At(std::uint64_t i, YamlNode& scratch) const;
  // Values that show whether every value is allowed: all that are given, else the least and the largest (of `normal`: one).
  std::vector<YamlNode> Samples() const;

 private:
  enum class Rule : std::uint8_t { kGiven, kIntegers, kNumbers, kLogarithmic, kPowers, kUniform, kLogUniform, kNormal, kInteger, kPowerOfTwo };

  void ReadRange(const YamlNode& node, const std::string& file, const std::string& path);
  void ReadRandom(const YamlNode& node, const std::string& file, const std::string& path);
  std::string Text(std::uint64_t i) const;

  std::string key_;
  std::uint64_t count_ = 0;
  Rule rule_ = Rule::kGiven;
  std::vector<YamlNode> values_;
  std::size_t line_ = 0;
  double low_ = 0, high_ = 0, step_ = 0;  // of `normal`: mean and standard deviation
  std::int64_t first_ = 0, stride_ = 1;   // of integers and exponents
  std::uint64_t span_ = 0;                // of random integers: how many there are
  std::uint64_t seed_ = 0;
};

class Axis {
 public:
  // A series as above, of the key `name`; or, under a name of its own,
  //   {zip: {KEY: SERIES, ...}}                                  the i-th values of all of them together
  //   {list: [{KEY: VALUE, ...}, ...]}                           any keys, setting by setting
  Axis(const std::string& name, const YamlNode& node, const std::string& file);

  const std::string& name() const { return name_; }
  std::size_t line() const { return line_; }
  std::uint64_t count() const { return count_; }
  // "scaler.init_scale: 25 values" and so on.
  std::string Describe() const;
  // Whether a setting changes which keys there are: then it goes into the tree before the config is read. Other settings are single values.
  bool structural() const { return structural_; }
  // The keys that it sets, those inside a mapping one by one.
  const std::vector<std::string>& keys() const { return keys_; }

  // Setting i < count as keys and values, appended.
  void Settings(std::uint64_t i, std::vector<KeyValue>& out) const;
  // For an axis that is not structural: calls set(key, value) for each.
  template <class Set>
  void ForEach(std::uint64_t i, YamlNode& scratch, const Set& set) const {
    for (const Series& series : series_) set(series.key(), series.At(i, scratch));
    if (!items_.empty()) {
      for (const KeyValue& item : items_[i]) set(item.path, item.value);
    }
  }
  // As Series::Samples, of every key.
  std::vector<KeyValue> Samples() const;

 private:
  std::string name_;
  std::size_t line_ = 0;
  std::uint64_t count_ = 0;
  bool structural_ = false;
  std::vector<Series> series_;                // one, or those of a zip
  std::vector<std::vector<KeyValue>> items_;  // of a list
  std::vector<std::string> keys_;
};

}  // namespace scaletrace

#endif  // SCALETRACE_SWEEP_AXIS_H_
