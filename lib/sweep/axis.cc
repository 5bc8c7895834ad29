#include "sweep/axis.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/math.h"
#include "base/number.h"
#include "base/random.h"
#include "base/sha256.h"
#include "sweep/spec.h"

namespace scaletrace {
namespace {

constexpr std::int64_t kMostValues = 1'000'000'000'000;
constexpr std::int64_t kLowExponent = -1074, kHighExponent = 1023;
// Integers of a range stay where a double has them all, so that no sum overflows.
constexpr std::int64_t kLargestInteger = std::int64_t{1} << 53;

constexpr char kSeriesText[] =
    "a list of values, or a mapping with grid, range, logrange, log2range or random (of one key), zip or list (of several)";

// Fifteen digits: the decimal that is meant where the sum of binary fractions is a bit off it.
std::string Decimal(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.15g", value);
  const auto rounded = ReadDouble(text);
  return ToText(rounded ? *rounded : value);
}

std::string PowerText(std::int64_t exponent) {
  if (exponent >= 0 && exponent <= 62) return std::to_string(std::int64_t{1} << exponent);
  return ToText(std::ldexp(1.0, static_cast<int>(exponent)));
}

// Random numbers of different keys are independent although both have the seed 0.
std::uint64_t SeedFor(const std::string& key, std::uint64_t seed) {
  const std::string digits = Sha256(key).substr(0, 16);
  return seed ^ std::stoull(digits, nullptr, 16);
}

void AddKeys(const std::string& path, const YamlNode& value, std::vector<std::string>& keys) {
  if (value.kind == YamlNode::Kind::kMapping) {
    for (const YamlEntry& entry : value.entries) AddKeys(path + "." + entry.key, entry.value, keys);
  } else if (std::find(keys.begin(), keys.end(), path) == keys.end()) {
    keys.push_back(path);
  }
}

void CheckKey(const Spec& spec, const std::string& key) {
  const std::vector<std::string> paths = AllKeyPaths();
  if (std::find(paths.begin(), paths.end(), key) != paths.end()) return;
  for (const std::string& path : paths) {
    if (path.ends_with("." + key)) spec.Fail("unknown key (did you mean '" + path + "'?); allowed: the path of a key of a config");
  }
  spec.Fail("unknown key" + DidYouMean(key, {paths.begin(), paths.end()}) + "; allowed: the path of a key of a config");
}

}  // namespace

Series::Series(const std::string& key, const YamlNode& node, const std::string& file, const std::string& path) : key_(key), line_(node.line) {
  const Spec spec{node, file, path};
  CheckKey(spec, key);
  const auto give = [this](const Spec& list) {
    list.NeedList("a list of at least one value");
    values_ = list.node.items;
    count_ = values_.size();
  };
  if (node.kind == YamlNode::Kind::kList) {
    give(spec);
  } else if (node.kind != YamlNode::Kind::kMapping) {
    spec.FailFound(kSeriesText);
  } else if (spec.Has("grid")) {
    spec.AllowKeys({"grid"});
    give(spec.At("grid"));
  } else if (spec.Has("random")) {
    ReadRandom(node, file, path);
  } else {
    ReadRange(node, file, path);
  }
}

void Series::ReadRange(const YamlNode& node, const std::string& file, const std::string& path) {
  const Spec spec{node, file, path};
  std::string_view kind;
  for (const std::string_view candidate : {"range", "logrange", "log2range"}) {
    if (spec.Has(candidate)) kind = candidate;
  }
  if (kind.empty()) spec.Fail(std::string("allowed: ") + kSeriesText);
  const Spec ends = spec.At(kind);
  if (ends.node.kind != YamlNode::Kind::kList || ends.node.items.size() != 2) ends.FailFound("[FIRST, LAST]");
  const Spec first = ends.At(std::size_t{0}), last = ends.At(std::size_t{1});
  if (kind == "log2range") {
    spec.AllowKeys({"log2range", "step"});
    rule_ = Rule::kPowers;
    first_ = first.Integer(kLowExponent, kHighExponent);
    const std::int64_t end = last.Integer(first_, kHighExponent);
    stride_ = spec.Has("step") ? spec.At("step").Integer(1, kHighExponent) : 1;
    count_ = static_cast<std::uint64_t>((end - first_) / stride_ + 1);
    return;
  }
  low_ = first.Number();
  high_ = last.Number();
  if (!(low_ <= high_)) ends.Fail("found a first value above the last; allowed: [FIRST, LAST] in ascending order");
  if (kind == "logrange") {
    spec.AllowKeys({"logrange", "count"});
    rule_ = Rule::kLogarithmic;
    if (!(low_ > 0)) first.FailFound("a number > 0");
    count_ = static_cast<std::uint64_t>(spec.At("count").Integer(1, kMostValues));
    return;
  }
  spec.AllowKeys({"range", "step", "count"});
  if (spec.Has("step") && spec.Has("count")) spec.Fail("found step and count; allowed: one of them");
  const bool integers = first.IsInteger() && last.IsInteger() && (!spec.Has("step") || spec.At("step").IsInteger());
  if (spec.Has("count")) {
    rule_ = Rule::kNumbers;
    count_ = static_cast<std::uint64_t>(spec.At("count").Integer(1, kMostValues));
    step_ = count_ > 1 ? (high_ - low_) / static_cast<double>(count_ - 1) : 0;
    // Whole steps between integers make integers.
    if (integers && step_ == std::floor(step_) && std::fabs(low_) <= static_cast<double>(kLargestInteger) &&
        std::fabs(high_) <= static_cast<double>(kLargestInteger)) {
      rule_ = Rule::kIntegers;
      first_ = static_cast<std::int64_t>(low_);
      stride_ = static_cast<std::int64_t>(step_);
    }
  } else if (integers) {
    rule_ = Rule::kIntegers;
    first_ = first.Integer(-kLargestInteger, kLargestInteger);
    const std::int64_t end = last.Integer(first_, kLargestInteger);
    stride_ = spec.Has("step") ? spec.At("step").Integer(1, kLargestInteger) : 1;
    count_ = static_cast<std::uint64_t>((end - first_) / stride_ + 1);
  } else {
    rule_ = Rule::kNumbers;
    step_ = spec.Has("step") ? spec.At("step").Number() : 1;
    if (!(step_ > 0)) spec.At("step").FailFound("a number > 0");
    // A last value that the steps meet but for rounding belongs to the range.
    const double steps = (high_ - low_) / step_ * (1 + 1e-12);
    if (!(steps < static_cast<double>(kMostValues))) spec.Fail("more than " + std::to_string(kMostValues) + " values");
    count_ = static_cast<std::uint64_t>(steps) + 1;
  }
  if (count_ > static_cast<std::uint64_t>(kMostValues)) spec.Fail("more than " + std::to_string(kMostValues) + " values");
}

void Series::ReadRandom(const YamlNode& node, const std::string& file, const std::string& path) {
  const Spec spec{node, file, path};
  const std::string kinds = "uniform, log-uniform, normal, integer, power-of-two";
  const Spec kind = spec.At("random");
  const std::string& name = kind.Word(kinds);
  if (name == "normal") {
    spec.AllowKeys({"random", "mean", "std", "count", "seed"});
    rule_ = Rule::kNormal;
    low_ = spec.At("mean").Number();
    high_ = spec.At("std").Number();
    if (!(high_ >= 0)) spec.At("std").FailFound("a number >= 0");
  } else {
    if (name != "uniform" && name != "log-uniform" && name != "integer" && name != "power-of-two") kind.FailFound(kinds);
    spec.AllowKeys({"random", "low", "high", "count", "seed"});
    const Spec low = spec.At("low"), high = spec.At("high");
    if (name == "integer" || name == "power-of-two") {
      rule_ = name == "integer" ? Rule::kInteger : Rule::kPowerOfTwo;
      const bool power = rule_ == Rule::kPowerOfTwo;
      const std::int64_t end = high.Integer(power ? kLowExponent : -kLargestInteger, power ? kHighExponent : kLargestInteger);
      first_ = low.Integer(power ? kLowExponent : -kLargestInteger, end);
      span_ = static_cast<std::uint64_t>(end - first_) + 1;
    } else {
      rule_ = name == "uniform" ? Rule::kUniform : Rule::kLogUniform;
      low_ = low.Number();
      high_ = high.Number();
      if (!(low_ <= high_)) high.FailFound("a number of at least low, " + ToText(low_));
      if (rule_ == Rule::kLogUniform && !(low_ > 0)) low.FailFound("a number > 0");
    }
  }
  count_ = static_cast<std::uint64_t>(spec.At("count").Integer(1, kMostValues));
  seed_ = SeedFor(key_, spec.Has("seed") ? spec.At("seed").Unsigned() : 0);
}

std::string Series::Text(std::uint64_t i) const {
  const auto offset = static_cast<double>(i);
  const auto between = [&](double share) {  // in the logarithm; the ends exactly
    const double log = Log2(low_) + share * (Log2(high_) - Log2(low_));
    return share == 0 ? low_ : share == 1 ? high_ : std::clamp(Exp2(log), low_, high_);
  };
  switch (rule_) {
    case Rule::kGiven: break;
    case Rule::kIntegers: return std::to_string(first_ + static_cast<std::int64_t>(i) * stride_);
    case Rule::kNumbers: return Decimal(i + 1 == count_ && count_ > 1 ? std::min(low_ + offset * step_, high_) : low_ + offset * step_);
    case Rule::kLogarithmic: return Decimal(between(count_ > 1 ? offset / static_cast<double>(count_ - 1) : 0));
    case Rule::kPowers: return PowerText(first_ + static_cast<std::int64_t>(i) * stride_);
    case Rule::kUniform: return ToText(low_ + Uniform(seed_, Stream::kSweep, i) * (high_ - low_));
    case Rule::kLogUniform: return ToText(between(Uniform(seed_, Stream::kSweep, i)));
    case Rule::kNormal: return ToText(low_ + high_ * Normal(seed_, Stream::kSweep, i));
    case Rule::kInteger: return std::to_string(first_ + static_cast<std::int64_t>(UniformBelow(seed_, Stream::kSweep, i, span_)));
    case Rule::kPowerOfTwo: return PowerText(first_ + static_cast<std::int64_t>(UniformBelow(seed_, Stream::kSweep, i, span_)));
  }
  SCALETRACE_CHECK(false);
}

const YamlNode& Series::At(std::uint64_t i, YamlNode& scratch) const {
  if (rule_ == Rule::kGiven) return values_[i];
  scratch.kind = YamlNode::Kind::kScalar;
  scratch.line = line_;
  scratch.text = Text(i);
  return scratch;
}

std::vector<YamlNode> Series::Samples() const {
  if (rule_ == Rule::kGiven) return values_;
  std::vector<std::string> texts;
  if (rule_ == Rule::kUniform || rule_ == Rule::kLogUniform) {
    texts = {ToText(low_), ToText(high_)};
  } else if (rule_ == Rule::kNormal) {
    texts = {Text(0)};
  } else if (rule_ == Rule::kInteger) {
    texts = {std::to_string(first_), std::to_string(first_ + static_cast<std::int64_t>(span_ - 1))};
  } else if (rule_ == Rule::kPowerOfTwo) {
    texts = {PowerText(first_), PowerText(first_ + static_cast<std::int64_t>(span_ - 1))};
  } else {
    texts = {Text(0), Text(count_ - 1)};
  }
  std::vector<YamlNode> samples;
  for (const std::string& text : texts) {
    YamlNode& node = samples.emplace_back();
    node.kind = YamlNode::Kind::kScalar;
    node.line = line_;
    node.text = text;
  }
  return samples;
}

Axis::Axis(const std::string& name, const YamlNode& node, const std::string& file) : name_(name), line_(node.line) {
  const Spec spec{node, file, "sweep.axes." + name};
  if (node.kind == YamlNode::Kind::kMapping && spec.Has("zip")) {
    spec.AllowKeys({"zip"});
    const Spec zip = spec.At("zip");
    if (zip.node.kind != YamlNode::Kind::kMapping || zip.node.entries.empty()) zip.FailFound("a mapping of keys to series of the same length");
    for (const YamlEntry& entry : zip.node.entries) {
      const Spec inner = zip.At(entry.key);
      series_.emplace_back(entry.key, entry.value, file, inner.path);
      if (series_.back().count() != series_.front().count()) {
        inner.Fail("found " + std::to_string(series_.back().count()) + " values; allowed: as many as " + series_.front().key() + " has, " +
                   std::to_string(series_.front().count()));
      }
    }
    count_ = series_.front().count();
  } else if (node.kind == YamlNode::Kind::kMapping && spec.Has("list")) {
    spec.AllowKeys({"list"});
    const Spec list = spec.At("list");
    list.NeedList("a list of mappings of keys to values");
    for (std::size_t i = 0; i < list.node.items.size(); ++i) {
      const Spec item = list.At(i);
      if (item.node.kind != YamlNode::Kind::kMapping) item.FailFound("a mapping of keys to values");
      std::vector<KeyValue>& settings = items_.emplace_back();
      for (const YamlEntry& entry : item.node.entries) {
        CheckKey(item.At(entry.key), entry.key);
        settings.push_back({entry.key, entry.value});
      }
    }
    count_ = items_.size();
  } else {
    series_.emplace_back(name, node, file, spec.path);
    count_ = series_.front().count();
  }
  for (const KeyValue& sample : Samples()) {
    AddKeys(sample.path, sample.value, keys_);
    structural_ = structural_ || sample.value.kind == YamlNode::Kind::kMapping || IsStructuralKey(sample.path);
  }
}

std::string Axis::Describe() const { return name_ + ": " + std::to_string(count_) + (count_ == 1 ? " value" : " values"); }

void Axis::Settings(std::uint64_t i, std::vector<KeyValue>& out) const {
  YamlNode scratch;
  ForEach(i, scratch, [&](const std::string& key, const YamlNode& value) { out.push_back({key, value}); });
}

std::vector<KeyValue> Axis::Samples() const {
  std::vector<KeyValue> samples;
  for (const Series& series : series_) {
    for (YamlNode& node : series.Samples()) samples.push_back({series.key(), std::move(node)});
  }
  for (const std::vector<KeyValue>& item : items_) samples.insert(samples.end(), item.begin(), item.end());
  return samples;
}

}  // namespace scaletrace
