// How a struct lists its fields, once, for every use: reading, writing, --set, JSON Schema, reference tables, state
// files.
//
// A struct with fields has
//     template <class Self, class V> static void Visit(Self& self, V& v) {
//       v.Value({"growth_interval", "good steps before growth", AtLeast(1)}, self.growth_interval);
//       v.Group({"precision", "where rounding happens"}, self.precision);       // a nested struct with Visit
//       v.Kind({"init", "what a run starts from"}, self.init);                  // a std::variant of structs with Visit
//       v.KindGroup({"data", "features and targets"}, "kind", self.data);       // the same, in a mapping of its own
//     }
// and works on a const and on a mutable struct. Value takes bool, int64_t, uint64_t, float, double, std::string, an
// enum that has EnumNames, std::optional of a number (absent is written `none`) and std::vector of those. Kind writes
// the tag key and, beside it in the same mapping, the fields of the alternative in use; an alternative has kName and
// kDoc.
#ifndef SCALETRACE_BASE_FIELDS_H_
#define SCALETRACE_BASE_FIELDS_H_

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace scaletrace {

// What a number may be. Applies to every entry of a list.
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;   // `low` itself is not allowed
  bool high_open = false;  // `high` itself is not allowed
  bool infinity = false;   // `inf` is allowed besides
  bool power = false;      // a scale: 2^k is accepted as a spelling

  constexpr Limits OrInfinity() const {
    Limits l = *this;
    l.infinity = true;
    return l;
  }
  constexpr Limits OrPower() const {
    Limits l = *this;
    l.power = true;
    return l;
  }
  // NaN is never allowed.
  constexpr bool Allows(double value) const {
    if (value == std::numeric_limits<double>::infinity()) return infinity;
    if (!(value > -std::numeric_limits<double>::infinity())) return false;
    return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
  }
};

constexpr Limits AnyNumber() { return {}; }
constexpr Limits AtLeast(double low) {
  Limits l;
  l.low = low;
  return l;
}
constexpr Limits MoreThan(double low) {
  Limits l = AtLeast(low);
  l.low_open = true;
  return l;
}
constexpr Limits Between(double low, double high) {
  Limits l = AtLeast(low);
  l.high = high;
  return l;
}

// "a number >= 1", "a number > 0, 2^k, or inf" and so on, for messages and tables. `integer`: "an integer ..." instead.
std::string Describe(const Limits& limits, bool integer);

struct Field {
  std::string_view key;
  std::string_view doc;  // half a sentence, lower case, no full stop: it stands in tables and in the JSON Schema
  Limits limits = {};
  std::span<const std::string_view> names =
      {};  // of a string or a list of strings: the only values allowed, if not empty
};

// An enum used as a field has, found by argument-dependent lookup,
//     constexpr std::span<const std::string_view> EnumNames(E);   // in the order of the enumerators, which count from
//     0

// The rest is for those who write a visitor (V above): lib/base/json.h and lib/config.

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;

// Calls f.template operator()<Alternative>() for each alternative of a variant, in order.
template <class Variant, class F>
constexpr void ForEachKind(F&& f) {
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    (f.template operator()<std::variant_alternative_t<kIndex, Variant>>(), ...);
  }
  (std::make_index_sequence<std::variant_size_v<Variant>>());
}

template <class Variant>
constexpr std::array<std::string_view, std::variant_size_v<Variant>> KindNames() {
  std::array<std::string_view, std::variant_size_v<Variant>> names = {};
  std::size_t i = 0;
  ForEachKind<Variant>([&]<class Alternative>() { names[i++] = Alternative::kName; });
  return names;
}

template <class Variant>
constexpr std::string_view KindName(const Variant& variant) {
  return std::visit([]<class Alternative>(const Alternative&) -> std::string_view { return Alternative::kName; },
                    variant);
}

// Makes `variant` hold the alternative called `name`, with its defaults. False, and no change, where there is none.
template <class Variant>
bool SetKind(Variant& variant, std::string_view name) {
  bool found = false;
  ForEachKind<Variant>([&]<class Alternative>() {
    if (!found && Alternative::kName == name) {
      variant.template emplace<Alternative>();
      found = true;
    }
  });
  return found;
}

}  // namespace scaletrace

#endif  // SCALETRACE_BASE_FIELDS_H_
