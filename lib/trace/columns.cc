#include "trace/columns.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <type_traits>

#include "base/number.h"

namespace scaletrace {
namespace {

char* WriteText(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

template <class T>
bool Assign(std::optional<T> value, T& to) {
  if (value) to = *value;
  return value.has_value();
}

// Cells of a plain member, by its type.
template <auto kMember>
char* WriteMember(char* out, const StepRecord& record) {
  const auto& value = record.*kMember;
  if constexpr (std::is_same_v<decltype(value), const bool&>) {
    *out = value ? '1' : '0';
    return out + 1;
  } else {
    return WriteNumber(out, value);
  }
}

template <class T>
std::uint64_t BitsOf(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

// Whole cells are copied, whatever their length: that is two instructions, and a cell has room for them.
char* CopyLast(char* out, const LastCell& last) {
  std::memcpy(out, last.text, kMaxNumberLength);
  return out + last.length;
}

// The cell of a value with these bits. Written where it belongs and copied from there, so that nobody waits for it.
template <auto kWrite>
char* WriteOrRepeat(char* out, const StepRecord& record, std::uint64_t bits, LastCell& last) {
  if (last.known && last.bits == bits) return CopyLast(out, last);
  char* const end = kWrite(out, record);
  std::memcpy(last.text, out, kMaxNumberLength);
  last.bits = bits;
  last.length = static_cast<std::uint32_t>(end - out);
  last.known = true;
  return end;
}

template <auto kMember>
char* WriteNextMember(char* out, const StepRecord& record, LastCell& last) {
  const auto& value = record.*kMember;
  if constexpr (std::is_same_v<decltype(value), const std::int64_t&>) {
    // One more than a positive number whose last digit is no 9.
    const auto above = static_cast<std::int64_t>(last.bits);
    if (last.known && above > 0 && value - 1 == above && last.text[last.length - 1] != '9') {
      ++last.text[last.length - 1];
      ++last.bits;
      return CopyLast(out, last);
    }
  }
  return WriteOrRepeat<&WriteMember<kMember>>(out, record, BitsOf(value), last);
}

template <auto kMember>
bool ReadMember(std::string_view cell, StepRecord& record) {
  auto& value = record.*kMember;
  using T = std::remove_reference_t<decltype(value)>;
  if constexpr (std::is_same_v<T, bool>) {
    value = cell == "1";
    return cell == "0" || cell == "1";
  } else if constexpr (std::is_same_v<T, float>) {
    return Assign(ReadCsvFloat(cell), value);
  } else if constexpr (std::is_same_v<T, double>) {
    return Assign(ReadCsvDouble(cell), value);
  } else {
    return Assign(ReadInteger(cell), value);
  }
}

char* WriteEvent(char* out, const StepRecord& record) { return WriteText(out, Name(record.event)); }

char* WriteNextEvent(char* out, const StepRecord& record, LastCell& last) {
  return WriteOrRepeat<&WriteEvent>(out, record, BitsOf(record.event), last);
}

bool ReadEvent(std::string_view cell, StepRecord& record) {
  const auto* found = std::find(std::begin(kEventNames), std::end(kEventNames), cell);
  if (found == std::end(kEventNames)) return false;
  record.event = static_cast<Event>(found - std::begin(kEventNames));
  return true;
}

char* WriteTensor(char* out, const StepRecord& record) {
  return record.nonfinite_tensor == 0 ? out : WriteText(out, {&record.nonfinite_tensor, 1});
}

char* WriteNextTensor(char* out, const StepRecord& record, LastCell&) { return WriteTensor(out, record); }

bool ReadTensor(std::string_view cell, StepRecord& record) {
  record.nonfinite_tensor = cell.empty() ? '\0' : cell[0];
  return cell.empty() || cell == "w" || cell == "b";
}

char* WriteIndex(char* out, const StepRecord& record) {
  return record.nonfinite_tensor == 0 ? out : WriteNumber(out, record.nonfinite_index);
}

char* WriteNextIndex(char* out, const StepRecord& record, LastCell&) { return WriteIndex(out, record); }

bool ReadIndex(std::string_view cell, StepRecord& record) {
  record.nonfinite_index = 0;
  return cell.empty() || Assign(ReadInteger(cell), record.nonfinite_index);
}

template <class T>
constexpr CellType TypeOf(T StepRecord::*) {
  if constexpr (std::is_same_v<T, bool>) return CellType::kFlag;
  if constexpr (std::is_same_v<T, float>) return CellType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return CellType::kFloat64;
  return CellType::kInteger;
}

// Fractions may differ in their last bits from one implementation to another; counts and flags may not.
template <auto kMember>
constexpr Column Plain(std::string_view name, std::string_view doc, std::uint32_t needs = kNeedsNothing, bool in_default = false) {
  constexpr CellType kType = TypeOf(kMember);
  constexpr bool kFraction = kType == CellType::kFloat32 || kType == CellType::kFloat64;
  return {name, doc, needs, in_default, kType, kFraction ? CellRule::kUlps : CellRule::kExact, &WriteMember<kMember>, &WriteNextMember<kMember>,
          &ReadMember<kMember>};
}

// A number of which every bit is a decision, not a sum.
template <auto kMember>
constexpr Column Exact(std::string_view name, std::string_view doc, std::uint32_t needs = kNeedsNothing, bool in_default = false) {
  Column column = Plain<kMember>(name, doc, needs, in_default);
  column.rule = CellRule::kExact;
  return column;
}

// Columns of the statistics of tensor number kTensor.
template <std::size_t kTensor, auto kMember>
char* WriteStatistic(char* out, const StepRecord& record) {
  return WriteNumber(out, record.tensors[kTensor].*kMember);
}

template <std::size_t kTensor, auto kMember>
char* WriteNextStatistic(char* out, const StepRecord& record, LastCell& last) {
  return WriteOrRepeat<&WriteStatistic<kTensor, kMember>>(out, record, BitsOf(record.tensors[kTensor].*kMember), last);
}

template <std::size_t kTensor, auto kMember>
bool ReadStatistic(std::string_view cell, StepRecord& record) {
  return Assign(ReadCsvFloat(cell), record.tensors[kTensor].*kMember);
}

template <std::size_t kTensor, auto kMember>
constexpr Column Statistic(std::string_view name, std::string_view doc) {
  return {name, doc, static_cast<std::uint32_t>(kNeedsFirstTensor) << kTensor, false, CellType::kFloat32, CellRule::kUlps, &WriteStatistic<kTensor, kMember>,
          &WriteNextStatistic<kTensor, kMember>, &ReadStatistic<kTensor, kMember>};
}

using R = StepRecord;
using T = TensorStatistics;

constexpr Column kColumns[] = {
    Plain<&R::step>("step", "number of the attempt, from 0; skipped ones count", kNeedsNothing, true),
    Plain<&R::epoch>("epoch", "whole epochs before this step"),
    Plain<&R::loss>("loss", "mean squared error of the batch before the update, unscaled", kNeedsNothing, true),
    Exact<&R::loss_scale>("loss_scale", "scale in force during this step", kNeedsNothing, true),
    Plain<&R::good_steps>("good_steps", "finite steps since the last overflow or change of the scale, before this step", kNeedsNothing,
                          true),
    Plain<&R::grads_finite>("grads_finite", "1 where the policy took the gradients for finite, else 0", kNeedsNothing, true),
    {"event", "what the policy did: raise, floor, forgiven, backoff, overflow, ceiling, growth, or nothing", kNeedsNothing, true,
     CellType::kWord, CellRule::kExact, &WriteEvent, &WriteNextEvent, &ReadEvent},
    Plain<&R::lr>("lr", "learning rate of this step"),
    Plain<&R::grad_norm>("grad_norm", "Euclidean norm of the unscaled gradients of w and b, summed in double", kNeedsGradNorm),
    Plain<&R::grad_max_abs>("grad_max_abs", "largest magnitude of an unscaled gradient entry", kNeedsGradMax),
    Plain<&R::underflow>("underflow", "share of the entries of the scaled output gradient that are 0 where the error is not", kNeedsUnderflow),
    Plain<&R::weight_norm>("weight_norm", "Euclidean norm of w and b before the update, summed in double", kNeedsWeightNorm),
    Plain<&R::skipped_total>("skipped_total", "steps skipped so far, this one included"),
    Plain<&R::skipped_in_a_row>("skipped_in_a_row", "steps skipped in an unbroken row that ends here; 0 where this one was applied"),
    {"nonfinite_tensor", "w or b: where the first non-finite gradient entry sits; empty where all are finite", kNeedsNonfinitePlace, false,
     CellType::kWord, CellRule::kExact, &WriteTensor, &WriteNextTensor, &ReadTensor},
    {"nonfinite_index", "its row-major index in that tensor", kNeedsNonfinitePlace, false, CellType::kInteger, CellRule::kExact,
     &WriteIndex, &WriteNextIndex, &ReadIndex},
    Statistic<0, &T::underflow>("input_underflow", "share of the entries of x' (the batch) that rounding made 0"),
    Statistic<0, &T::subnormal>("input_subnormal", "share that is subnormal in the format, after rounding"),
    Statistic<0, &T::saturated>("input_saturated", "share that rounding brought down to the largest finite number"),
    Statistic<0, &T::overflow>("input_overflow", "share that was finite and is inf or NaN after rounding"),
    Statistic<0, &T::max_abs>("input_max_abs", "largest magnitude in x' (the batch), before rounding"),
    Statistic<0, &T::min_abs>("input_min_abs", "smallest magnitude that is not 0, before rounding; 0 where all are"),
    Statistic<1, &T::underflow>("weight_underflow", "share of the entries of w' and b' that rounding made 0"),
    Statistic<1, &T::subnormal>("weight_subnormal", "share that is subnormal in the format, after rounding"),
    Statistic<1, &T::saturated>("weight_saturated", "share that rounding brought down to the largest finite number"),
    Statistic<1, &T::overflow>("weight_overflow", "share that was finite and is inf or NaN after rounding"),
    Statistic<1, &T::max_abs>("weight_max_abs", "largest magnitude in w' and b', before rounding"),
    Statistic<1, &T::min_abs>("weight_min_abs", "smallest magnitude that is not 0, before rounding; 0 where all are"),
    Statistic<2, &T::underflow>("activation_underflow", "share of the entries of h + b' that rounding made 0"),
    Statistic<2, &T::subnormal>("activation_subnormal", "share that is subnormal in the format, after rounding"),
    Statistic<2, &T::saturated>("activation_saturated", "share that rounding brought down to the largest finite number"),
    Statistic<2, &T::overflow>("activation_overflow", "share that was finite and is inf or NaN after rounding"),
    Statistic<2, &T::max_abs>("activation_max_abs", "largest magnitude in h + b', before rounding"),
    Statistic<2, &T::min_abs>("activation_min_abs", "smallest magnitude that is not 0, before rounding; 0 where all are"),
    Statistic<3, &T::underflow>("output_gradient_underflow", "share of the entries of g that rounding made 0"),
    Statistic<3, &T::subnormal>("output_gradient_subnormal", "share that is subnormal in the format, after rounding"),
    Statistic<3, &T::saturated>("output_gradient_saturated", "share that rounding brought down to the largest finite number"),
    Statistic<3, &T::overflow>("output_gradient_overflow", "share that was finite and is inf or NaN after rounding"),
    Statistic<3, &T::max_abs>("output_gradient_max_abs", "largest magnitude in g, before rounding"),
    Statistic<3, &T::min_abs>("output_gradient_min_abs", "smallest magnitude that is not 0, before rounding; 0 where all are"),
    Statistic<4, &T::underflow>("gradient_underflow", "share of the entries of the scaled gradients of w and b that rounding made 0"),
    Statistic<4, &T::subnormal>("gradient_subnormal", "share that is subnormal in the format, after rounding"),
    Statistic<4, &T::saturated>("gradient_saturated", "share that rounding brought down to the largest finite number"),
    Statistic<4, &T::overflow>("gradient_overflow", "share that was finite and is inf or NaN after rounding"),
    Statistic<4, &T::max_abs>("gradient_max_abs", "largest magnitude in the scaled gradients of w and b, before rounding"),
    Statistic<4, &T::min_abs>("gradient_min_abs", "smallest magnitude that is not 0, before rounding; 0 where all are"),
};

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kColumns)> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kColumns[i].name;
  return names;
}();

}  // namespace

std::span<const Column> Columns() { return kColumns; }
std::span<const std::string_view> ColumnNames() { return kNames; }

std::vector<std::string> DefaultColumns() {
  std::vector<std::string> names;
  for (const Column& column : kColumns) {
    if (column.in_default) names.emplace_back(column.name);
  }
  return names;
}

const Column* FindColumn(std::string_view name) {
  const auto* found = std::find_if(std::begin(kColumns), std::end(kColumns), [&](const Column& c) { return c.name == name; });
  return found == std::end(kColumns) ? nullptr : found;
}

std::uint32_t NeedsOf(std::span<const std::string> columns) {
  std::uint32_t needs = kNeedsNothing;
  for (const std::string& name : columns) {
    if (const Column* column = FindColumn(name)) needs |= column->needs;
  }
  return needs;
}

}  // namespace scaletrace
