#include "sweep/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/random.h"
#include "base/sha256.h"
#include "config/config.h"
#include "config/field_text.h"
#include "sweep/spec.h"
#include "sweep/verdict.h"

namespace scaletrace {
namespace {

constexpr std::uint64_t kMostCombinations = std::uint64_t{1} << 62;
constexpr std::uint64_t kMostStructuresChecked = 4096;
constexpr std::size_t kMostCached = 4096;
constexpr std::uint64_t kMostRepeats = 1'000'000'000;
constexpr std::uint64_t kLargestBlock = 1024, kBlocksAtLeast = 256;

constexpr std::string_view kSummaryColumns =
    "steps,updates,skipped,growths,backoffs,scale_first,scale_min,scale_max,scale_last,scale_median,steps_at_ceiling,first_loss,final_loss,verdict";
constexpr int kEmptyCells = 13;  // of a run that could not be made: all of these but the verdict

// The whole tree as one line, for the hash.
void AppendTree(const YamlNode& node, std::string& out) {
  switch (node.kind) {
    case YamlNode::Kind::kNull: out += "null"; return;
    case YamlNode::Kind::kScalar: out += (node.quoted ? "" : "=") + ToJsonString(node.text); return;
    case YamlNode::Kind::kList:
      out += '[';
      for (const YamlNode& item : node.items) {
        AppendTree(item, out);
        out += ',';
      }
      out += ']';
      return;
    case YamlNode::Kind::kMapping:
      out += '{';
      for (const YamlEntry& entry : node.entries) {
        out += ToJsonString(entry.key) + ':';
        AppendTree(entry.value, out);
        out += ',';
      }
      out += '}';
      return;
  }
}

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (path == "-" || slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

template <class T>
void AppendNumber(T value, std::string& out) {
  char text[kMaxNumberLength];
  out.append(text, static_cast<std::size_t>(WriteNumber(text, value) - text));
}

// value * share / of, without overflow.
std::uint64_t Scaled(std::uint64_t value, std::uint64_t share, std::uint64_t of) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(value) * share / of);
}

// One of the numbers of the j-th of n equal parts of 0 ... total - 1.
std::uint64_t Drawn(std::uint64_t total, std::uint64_t j, std::uint64_t n) {
  const std::uint64_t low = Scaled(total, j, n), high = Scaled(total, j + 1, n);
  return low + UniformBelow(0, Stream::kSweep, j, high - low);
}

}  // namespace

void AppendCsvCell(std::string_view text, std::string& out) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

SweepPlan SweepPlan::Read(const std::string& path, const std::vector<std::string>& overrides) {
  return SweepPlan(ReadFile(path, kMaxYamlBytes), path, FolderOf(path), overrides);
}

SweepPlan::SweepPlan(std::string_view text, const std::string& file, const std::string& folder, const std::vector<std::string>& overrides)
    : text_(text), file_(file), folder_(folder), root_(ParseYaml(text, {file, 1, ""})) {
  if (root_.kind == YamlNode::Kind::kMapping) {
    for (const std::string& assignment : overrides) PutOverride(root_, assignment);
  }
  YamlNode sweep;
  for (auto it = root_.entries.begin(); it != root_.entries.end(); ++it) {
    if (it->key != "sweep") continue;
    sweep = std::move(it->value);
    root_.entries.erase(it);
    break;
  }
  if (sweep.kind == YamlNode::Kind::kNull) {
    throw InputError(InputError::Kind::kConfig, {file, 0, "sweep"},
                     "is missing: a sweep is a config with a key sweep, as in sweep: {axes: {optimizer.lr: [0.1, 0.2]}, repeat: 3}");
  }
  ReadSweep(sweep, file);
}

void SweepPlan::ReadSweep(const YamlNode& sweep, const std::string& file) {
  const Spec spec{sweep, file, "sweep"};
  spec.AllowKeys({"axes", "repeat", "where", "cap", "keep_traces"});
  if (spec.Has("axes")) {
    const Spec axes = spec.At("axes");
    if (axes.node.kind != YamlNode::Kind::kMapping) axes.FailFound("a mapping of key paths to series of values");
    for (const YamlEntry& entry : axes.node.entries) {
      const Axis& axis = axes_.emplace_back(entry.key, entry.value, file);
      for (const std::string& key : axis.keys()) {
        if (std::find(columns_.begin(), columns_.end(), key) != columns_.end()) {
          axes.At(entry.key).Fail("sets " + key + ", which an axis before it sets too; allowed: one axis a key");
        }
        columns_.push_back(key);
      }
      if (axis.count() > kMostCombinations / combinations_) {
        axes.At(entry.key).Fail("makes more than 2^62 combinations; allowed: fewer values");
      }
      combinations_ *= axis.count();
      if (axis.structural()) structures_ *= axis.count();
    }
  }
  if (spec.Has("repeat")) repeat_ = static_cast<std::uint64_t>(spec.At("repeat").Integer(1, static_cast<std::int64_t>(kMostRepeats)));
  if (repeat_ > 1 && std::find(columns_.begin(), columns_.end(), "seed") != columns_.end()) {
    spec.At("repeat").Fail("found repeat beside an axis over seed; allowed: one of them");
  }
  if (axes_.empty() && repeat_ == 1) spec.Fail("has neither axes nor repeat; allowed: axes over keys, repeat: N seeds, or both");

  kept_combinations_ = combinations_;
  if (spec.Has("cap")) {
    const Spec cap = spec.At("cap");
    const auto most = static_cast<std::uint64_t>(cap.Integer(1, std::numeric_limits<std::int64_t>::max()));
    if (most < repeat_) cap.FailFound("at least repeat, " + std::to_string(repeat_));
    kept_combinations_ = std::min(combinations_, most / repeat_);
  } else if (combinations_ > kMostRunsWithoutCap / repeat_) {
    spec.Fail("makes " + std::to_string(combinations_) + " combinations" + (repeat_ > 1 ? " of " + std::to_string(repeat_) + " seeds" : "") +
              "; above " + std::to_string(kMostRunsWithoutCap) +
              " runs say how many you mean: cap: N keeps N of them, spread evenly (or all, where N is large enough)");
  }
  if (kept_combinations_ > kMostCombinations / repeat_) spec.Fail("makes more than 2^62 runs; allowed: a smaller cap or repeat");
  facts_.runs = kept_combinations_ * repeat_;

  if (spec.Has("keep_traces")) {
    const Spec keep = spec.At("keep_traces");
    const char* allowed = "none, all, diverged, trouble, sample N";
    const std::string& word = keep.Word(allowed);
    if (word == "all") {
      keep_traces_ = KeepTraces::kAll;
    } else if (word == "diverged") {
      keep_traces_ = KeepTraces::kDiverged;
    } else if (word == "trouble") {
      keep_traces_ = KeepTraces::kTrouble;
    } else if (word.starts_with("sample ")) {
      const auto n = ReadInteger(std::string_view(word).substr(7));
      if (!n || *n < 1) keep.FailFound(allowed);
      keep_traces_ = KeepTraces::kSample;
      sample_ = static_cast<std::uint64_t>(*n);
    } else if (word != "none") {
      keep.FailFound(std::string(allowed) + DidYouMean(word, {"none", "all", "diverged", "trouble", "sample"}));
    }
  }

  CheckValues();

  if (spec.Has("where")) {
    const Spec where = spec.At("where");
    where_text_ = where.Word("a condition in quotes, as in 'optimizer.lr < 0.1'");
    const std::vector<std::string> paths = AllKeyPaths();
    const auto fail = [&](const std::string& message) { where.Fail(message); };
    const auto resolve = [&](std::string_view name) {
      std::vector<std::string> found;
      for (const std::string& column : columns_) {
        if (column == name) return column;
        if (column.ends_with("." + std::string(name))) found.push_back(column);
      }
      if (found.size() == 1) return found[0];
      if (found.size() > 1) where.Fail("found '" + Printable(name) + "', which may be " + Choices(found) + "; allowed: the whole path of a key");
      if (std::find(paths.begin(), paths.end(), name) != paths.end()) return std::string(name);
      std::vector<std::string_view> words(columns_.begin(), columns_.end());
      words.insert(words.end(), paths.begin(), paths.end());
      where.Fail("unknown key '" + Printable(name) + "'" + DidYouMean(name, words) + "; allowed: a key's path, or its last word where an axis has it; words in quotes");
    };
    where_.emplace(where_text_, resolve, fail);
    facts_.filtered = true;
  }

  const std::shared_ptr<const Base> first = BaseOf(0);
  facts_.name = first->config.name;
  facts_.block = BlockSize();
  facts_.hash = Hash(sweep);
  facts_.header = "run";
  for (const std::string& column : columns_) {
    facts_.header += ',';
    AppendCsvCell(column, facts_.header);
  }
  if (repeat_ > 1) facts_.header += ",seed";
  facts_.header += ',';
  facts_.header += kSummaryColumns;
}

void SweepPlan::CheckValues() const {
  for (std::uint64_t structure = 0; structure < std::min(structures_, kMostStructuresChecked); ++structure) {
    RunConfig config = MakeBase(structure).config;
    // Without axes that change the structure, what the base config alone has wrong is the same for all runs, unless an axis sets it right.
    if (axes_.empty()) CheckKeysTogether(config, file_);
    for (const Axis& axis : axes_) {
      if (axis.structural()) continue;
      for (const KeyValue& sample : axis.Samples()) SetKey(config, sample.path, sample.value, file_);
    }
  }
}

SweepPlan::Base SweepPlan::MakeBase(std::uint64_t structure) const {
  YamlNode tree = root_;
  std::vector<KeyValue> settings;
  // The last structural axis is the fastest, as in combinations.
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    if (!axis->structural()) continue;
    std::vector<KeyValue> these;
    axis->Settings(structure % axis->count(), these);
    settings.insert(settings.begin(), these.begin(), these.end());
    structure /= axis->count();
  }
  if (tree.kind == YamlNode::Kind::kNull) tree.kind = YamlNode::Kind::kMapping;
  for (const KeyValue& setting : settings) PutKey(tree, setting, file_);
  return {ConfigFromTree(tree, file_, folder_), ""};
}

std::shared_ptr<const SweepPlan::Base> SweepPlan::BaseOf(std::uint64_t structure) const {
  {
    const std::lock_guard lock(cache_->mutex);
    if (const auto it = cache_->bases.find(structure); it != cache_->bases.end()) return it->second;
  }
  auto base = std::make_shared<Base>();
  try {
    *base = MakeBase(structure);
  } catch (const InputError& e) {
    base->error = e.what();
  }
  const std::lock_guard lock(cache_->mutex);
  if (cache_->bases.size() >= kMostCached) cache_->bases.clear();
  return cache_->bases.emplace(structure, std::move(base)).first->second;
}

void SweepPlan::Digits(std::uint64_t combination, std::vector<std::uint64_t>& digits) const {
  digits.resize(axes_.size());
  for (std::size_t a = axes_.size(); a-- > 0;) {
    digits[a] = combination % axes_[a].count();
    combination /= axes_[a].count();
  }
}

std::uint64_t SweepPlan::StructureOf(const std::vector<std::uint64_t>& digits) const {
  std::uint64_t structure = 0;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    if (axes_[a].structural()) structure = structure * axes_[a].count() + digits[a];
  }
  return structure;
}

std::uint64_t SweepPlan::CombinationOf(std::uint64_t run) const {
  const std::uint64_t place = run / repeat_;
  return capped() ? Drawn(combinations_, place, kept_combinations_) : place;
}

SweepPlan::Made SweepPlan::Make(std::uint64_t run, RunConfig& config) const {
  std::vector<std::uint64_t> digits;
  Digits(CombinationOf(run), digits);
  const std::shared_ptr<const Base> base = BaseOf(StructureOf(digits));
  config = base->config;
  Made made;
  made.error = base->error;
  try {
    YamlNode scratch;
    for (std::size_t a = 0; made.error.empty() && a < axes_.size(); ++a) {
      if (axes_[a].structural()) continue;
      axes_[a].ForEach(digits[a], scratch, [&](const std::string& key, const YamlNode& value) { SetKey(config, key, value, file_); });
    }
    if (repeat_ > 1) config.seed += run % repeat_;
    if (where_ && made.error.empty()) {
      std::vector<std::optional<std::string>> texts;
      for (const std::string& key : where_->keys()) texts.push_back(KeyText(config, key));
      made.dropped = !where_->Holds(texts);
    }
    if (made.error.empty() && !made.dropped) CheckKeysTogether(config, file_);
  } catch (const InputError& e) {
    made.error = e.what();
  }
  return made;
}

void SweepPlan::AppendRow(std::uint64_t run, const RunConfig& config, const std::string& error, const RunOutcome& outcome, std::string& out) const {
  out += std::to_string(run);
  for (const std::string& column : columns_) {
    out += ',';
    if (const auto text = KeyText(config, column)) AppendCsvCell(*text, out);
  }
  if (repeat_ > 1) out += ',' + std::to_string(config.seed);
  if (!error.empty()) {
    out.append(kEmptyCells + 1, ',');
    out += kInvalidVerdict;
    out += '\n';
    return;
  }
  const Summary& s = outcome.summary;
  for (const std::int64_t count : {s.steps, s.updates, s.skipped, s.growths, s.backoffs}) {
    out += ',';
    AppendNumber(count, out);
  }
  for (const double scale : {s.scale_first, s.scale_min, s.scale_max, s.scale_last, outcome.scale_median}) {
    out += ',';
    AppendNumber(scale, out);
  }
  out += ',';
  AppendNumber(outcome.steps_at_ceiling, out);
  for (const float loss : {s.first_loss, s.last_loss}) {
    out += ',';
    AppendNumber(loss, out);
  }
  out += ',';
  out += Verdict(s);
  out += '\n';
}

bool SweepPlan::InSample(std::uint64_t run) const {
  if (keep_traces_ == KeepTraces::kAll) return true;
  if (keep_traces_ != KeepTraces::kSample) return false;
  if (sample_ >= runs()) return true;
  // The part that `run` lies in is this one or, by rounding, the next.
  const std::uint64_t part = Scaled(run, sample_, runs());
  for (std::uint64_t j = part; j <= std::min(part + 1, sample_ - 1); ++j) {
    if (Drawn(runs(), j, sample_) == run) return true;
  }
  return false;
}

std::vector<std::string> SweepPlan::Warnings() const {
  std::vector<std::string> warnings;
  for (std::uint64_t structure = 0; structure < std::min<std::uint64_t>(structures_, 64); ++structure) {
    const std::shared_ptr<const Base> base = BaseOf(structure);
    if (!base->error.empty()) continue;
    for (const std::string& warning : ConfigWarnings(base->config)) {
      if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) warnings.push_back(warning);
    }
  }
  return warnings;
}

std::string SweepPlan::Hash(const YamlNode& sweep) const {
  std::string text = "scaletrace sweep 1\n";
  AppendTree(sweep, text);
  text += '\n';
  YamlNode nameless = root_;
  std::erase_if(nameless.entries, [](const YamlEntry& entry) { return entry.key == "name"; });
  AppendTree(nameless, text);
  // Defaults, the version of the generators, and what the data files hold.
  std::vector<const Axis*> data_axes;
  for (const Axis& axis : axes_) {
    const bool data = std::any_of(axis.keys().begin(), axis.keys().end(), [](const std::string& key) { return key.starts_with("data."); });
    if (data && !axis.structural() && axis.count() <= kMostStructuresChecked) data_axes.push_back(&axis);
  }
  for (std::uint64_t structure = 0; structure < std::min(structures_, kMostStructuresChecked); ++structure) {
    const std::shared_ptr<const Base> base = BaseOf(structure);
    if (!base->error.empty()) continue;
    if (data_axes.empty()) text += '\n' + ConfigHash(base->config);
    for (const Axis* axis : data_axes) {
      for (std::uint64_t i = 0; i < axis->count(); ++i) {
        RunConfig config = base->config;
        YamlNode scratch;
        axis->ForEach(i, scratch, [&](const std::string& key, const YamlNode& value) { SetKey(config, key, value, file_); });
        text += '\n' + ConfigHash(config);
      }
    }
  }
  return Sha256(text);
}

// Small enough that shards get equal shares, large enough that the bookkeeping does not show.
std::uint64_t SweepPlan::BlockSize() const {
  std::uint64_t block = 1;
  while (block < kLargestBlock && facts_.runs / (block * 2) >= kBlocksAtLeast) block *= 2;
  return block;
}

}  // namespace scaletrace
