#include "numerics/format_text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "base/number.h"

namespace scaletrace {
namespace {

std::string Hex(std::uint32_t value, int digits) {
  std::string text(static_cast<std::size_t>(digits), '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, value >>= 4) *digit = "0123456789abcdef"[value & 15];
  return "0x" + text;
}

std::string Binary(std::uint32_t value, int digits) {
  std::string text;
  for (int i = digits - 1; i >= 0; --i) text += (value >> i & 1) != 0 ? '1' : '0';
  return text;
}

using Row = std::vector<std::string>;

// Columns as wide as their widest cell, two spaces apart; no space at the end of a line. right[i]: column i is aligned
// to the right.
std::string Table(const std::vector<Row>& rows, const std::vector<bool>& right, const std::string& indent) {
  std::vector<std::size_t> widths(right.size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string fill(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (right[i] ? fill + row[i] : row[i] + fill);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

float Epsilon(const Format& f) { return std::bit_cast<float>(static_cast<std::uint32_t>(127 - f.mantissa_bits) << 23); }

// "6.1035156e-05", and "6.1035156e-05 = 2^-14" where the decimal hides a power of two.
std::string WithPower(float value) {
  int exponent = 0;
  const bool power = std::frexp(value, &exponent) == 0.5f;
  return ToText(value) + (power && value < 1 ? " = 2^" + std::to_string(exponent - 1) : "");
}

std::string FirstNan(const Format& f) { return CodeHex(f, f.has_inf ? f.inf_code() + 1 : f.nan_code()); }

// Without the sign bit, where it doesn't matter.
std::string SpecialCodes(const Format& f) {
  switch (f.specials()) {
    case Specials::kIeee: {
      const std::string last = CodeHex(f, f.sign_bit() - 1);
      return "inf " + CodeHex(f, f.inf_code()) + ", NaN " + FirstNan(f) + (FirstNan(f) == last ? "" : " to " + last);
    }
    case Specials::kFn:
      return "NaN " + FirstNan(f) + ", no inf";
    case Specials::kFnuz:
      return "NaN " + FirstNan(f) + ", no inf, no -0";
    case Specials::kNone:
      break;
  }
  return "none";
}

std::string OverflowText(const Format& f) {
  const std::string largest = ToText(f.max_finite);
  if (!f.has_nan) return largest + ", as there is no inf and no NaN";
  return std::string(f.has_inf ? "inf" : "NaN") + "; saturating " + largest;
}

// "1.75 * 2^15"
std::string MaxAsProduct(const Format& f) {
  int exponent = 0;
  const float significand = std::frexp(f.max_finite, &exponent) * 2;
  return ToText(significand) + " * 2^" + std::to_string(exponent - 1);
}

struct Outcome {
  float value;
  double probability;
};

bool Same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// Every result that rounding may have, with its probability, found by asking Round alone: going up is monotone in
// `random`, whose lowest bit plays no part.
std::vector<Outcome> Outcomes(const Rounding& rounding, float value) {
  constexpr std::uint32_t kDraws = 1u << 31;
  const float low = Round(rounding, value, 0);
  const float high = Round(rounding, value, ~0u);
  if (Same(low, high)) return {{low, 1}};
  std::uint32_t down = 0, up = kDraws - 1;  // draws that give low, high
  while (up - down > 1) {
    const std::uint32_t middle = down + (up - down) / 2;
    (Same(Round(rounding, value, middle << 1), low) ? down : up) = middle;
  }
  return {{low, static_cast<double>(up) / kDraws}, {high, static_cast<double>(kDraws - up) / kDraws}};
}

bool SameOutcomes(const std::vector<Outcome>& a, const std::vector<Outcome>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Outcome& x, const Outcome& y) {
    return Same(x.value, y.value) && x.probability == y.probability;
  });
}

std::string Cell(std::string_view text) { return "| " + std::string(text) + " "; }

}  // namespace

std::string CodeHex(const Format& format, std::uint32_t code) { return Hex(code, (format.bits() + 3) / 4); }

std::string CodeFields(const Format& format, std::uint32_t code) {
  return Binary(code >> (format.bits() - 1), 1) + "|" + Binary(code >> format.mantissa_bits, format.exponent_bits) +
         "|" + Binary(code, format.mantissa_bits);
}

std::string FormatsTable() {
  std::vector<Row> rows = {
      {"name", "bits", "e", "m", "bias", "max", "min normal", "min subnormal", "epsilon", "special codes"}};
  for (const Format& f : Formats()) {
    rows.push_back({std::string(f.name), std::to_string(f.bits()), std::to_string(f.exponent_bits),
                    std::to_string(f.mantissa_bits), std::to_string(f.bias), ToText(f.max_finite),
                    ToText(f.smallest_normal()), ToText(f.smallest_subnormal()), ToText(Epsilon(f)), SpecialCodes(f)});
  }
  return Table(rows, {false, true, true, true, true, false, false, false, false, false}, "") +
         "\ne, m: bits of exponent and mantissa. epsilon: from 1 to the next number. Codes are given without their "
         "sign bit.\n"
         "scaletrace formats NAME: one format in full; scaletrace formats NAME VALUE...: what it makes of values.\n";
}

std::string FormatText(const Format& f) {
  std::vector<Row> facts = {
      {"bits", std::to_string(f.bits()) + ": 1 sign, " + std::to_string(f.exponent_bits) + " exponent (bias " +
                   std::to_string(f.bias) + "), " + std::to_string(f.mantissa_bits) + " mantissa"},
      {"epsilon", WithPower(Epsilon(f)) + ", from 1 to the next number"},
      {"specials", f.has_nan
                       ? std::string(kSpecialsNames[static_cast<std::size_t>(f.specials())]) + ": " + SpecialCodes(f)
                       : "none"},
      {"overflow", "becomes " + OverflowText(f)},
      {"NaN", f.has_nan ? "stays NaN" : "has no code; stays NaN in the float32 that carries it"},
  };
  if (!f.source.empty()) facts.push_back({"source", std::string(f.source)});
  std::vector<Row> codes;
  const auto add = [&](const std::string& name, float value, const std::string& text) {
    const std::uint32_t code = *Encode(f, value);
    codes.push_back({name, text, CodeHex(f, code), CodeFields(f, code)});
  };
  add("largest", f.max_finite, ToText(f.max_finite) + " = " + MaxAsProduct(f));
  add("one", 1, "1");
  add("smallest normal", f.smallest_normal(), WithPower(f.smallest_normal()));
  if (f.mantissa_bits > 0) {
    const float largest_subnormal = Decode(f, (1u << f.mantissa_bits) - 1);
    add("largest subnormal", largest_subnormal, ToText(largest_subnormal));
    add("smallest subnormal", f.smallest_subnormal(), WithPower(f.smallest_subnormal()));
  }
  add("zero", 0, "0");
  if (f.negative_zero) add("negative zero", -0.0f, "-0");
  if (f.has_inf) add("inf", Decode(f, f.inf_code()), "inf");
  if (f.has_nan) add("NaN", Decode(f, f.nan_code()), "NaN");

  std::string text = std::string(f.name) + ": " + std::string(f.doc) + "\n\n" + Table(facts, {false, false}, "  ") +
                     "\n" + Table(codes, {false, false, true, false}, "  ");
  if (f.bits() <= 6) {
    text += "\n  its numbers of positive sign:";
    for (std::uint32_t code = 0; code < f.sign_bit(); ++code) {
      if (std::isfinite(Decode(f, code))) text += " " + ToText(Decode(f, code));
    }
    text += "\n";
  }
  return text;
}

std::string ConversionText(const Format& format, float value, std::string_view typed) {
  const Format& f32 = *FindFormat("float32");
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  std::vector<Row> rows;
  const auto add = [&](std::string label, const std::vector<Outcome>& outcomes) {
    for (const Outcome& outcome : outcomes) {
      const std::optional<std::uint32_t> code = Encode(format, outcome.value);
      rows.push_back({std::exchange(label, ""), ToText(outcome.value), code ? CodeHex(format, *code) : "no code",
                      code ? CodeFields(format, *code) : "",
                      outcomes.size() == 1 ? "" : "with probability " + ToText(outcome.probability)});
    }
  };
  for (std::size_t mode = 0; mode < std::size(kRoundingModeNames); ++mode) {
    const std::string name(kRoundingModeNames[mode]);
    Rounding rounding{format, static_cast<RoundingMode>(mode)};
    const std::vector<Outcome> plain = Outcomes(rounding, value);
    add(name, plain);
    rounding.saturate = true;
    if (const auto saturated = Outcomes(rounding, value); !SameOutcomes(saturated, plain))
      add(name + ", saturating", saturated);
    rounding.saturate = false;
    rounding.flush_subnormals = true;
    if (const auto flushed = Outcomes(rounding, value); !SameOutcomes(flushed, plain))
      add(name + ", subnormals flushed", flushed);
  }
  return std::string(typed) + " as float32: " + ToText(value) + ", " + CodeHex(f32, bits) + ", " +
         CodeFields(f32, bits) + "\n" + Table(rows, {false, false, false, false, false}, "  ");
}

std::string FormatsMarkdown() {
  std::string text =
      "# Number formats\n"
      "\n"
      "Printed by `scaletrace formats --markdown`. `scaletrace formats NAME` prints one format in full, `scaletrace "
      "formats NAME VALUE...` what it makes of\n"
      "values in every rounding mode.\n"
      "\n"
      "| name | bits | exponent | mantissa | bias | largest | smallest normal | smallest subnormal | epsilon | special "
      "codes |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Format& f : Formats()) {
    text += Cell("`" + std::string(f.name) + "`") + Cell(std::to_string(f.bits())) +
            Cell(std::to_string(f.exponent_bits)) + Cell(std::to_string(f.mantissa_bits)) +
            Cell(std::to_string(f.bias)) + Cell(ToText(f.max_finite)) + Cell(WithPower(f.smallest_normal())) +
            Cell(WithPower(f.smallest_subnormal())) + Cell(WithPower(Epsilon(f))) + Cell(SpecialCodes(f)) + "|\n";
  }
  text +=
      "\n"
      "Epsilon is the distance from 1 to the next number. Codes are given without their sign bit; the one NaN of the "
      "fnuz formats is the code that would be -0.\n"
      "A code is, from its highest bit, sign, exponent E, mantissa M of m bits: M * 2^(1 - bias - m) where E = 0, (1 + "
      "M / 2^m) * 2^(E - bias) otherwise.\n"
      "\n"
      "| name | what it is | overflow | source |\n"
      "|---|---|---|---|\n";
  for (const Format& f : Formats()) {
    text += Cell("`" + std::string(f.name) + "`") + Cell(f.doc) + Cell(OverflowText(f)) + Cell(f.source) + "|\n";
  }
  text +=
      "\n"
      "A tfloat32 is stored in 32 bits, of which the lowest 13 are not looked at; its codes are given here as the 19 "
      "bits that count. NVIDIA's own\n"
      "conversion (`cvt.rna.tf32.f32`) rounds ties away from zero, and of a float32 that was not converted the "
      "products ignore those\n"
      "bits (`toward-zero`).\n"
      "\n"
      "## Rounding\n"
      "\n"
      "From float32, once, on the bits. The last place of a value is the distance of the format's numbers around it: "
      "below the smallest normal number that is the\n"
      "smallest subnormal, above the largest number it goes on as if the exponent had no limit. `low` is the multiple "
      "of it towards zero, and f in [0, 1) the part of a\n"
      "last place by which the value is larger than that in magnitude.\n"
      "\n"
      "| mode | result |\n"
      "|---|---|\n"
      "| `nearest-even` | one up where f > 1/2, or f = 1/2 and `low` is odd; else `low` |\n"
      "| `toward-zero` | `low` |\n"
      "| `stochastic` | one up with probability f, else `low` |\n"
      "\n"
      "Stochastic rounding takes 32 random bits r a value and goes up where floor(f * 2^31) + floor(r / 2) >= 2^31. So "
      "the probability is exactly f where f is a\n"
      "multiple of 2^-31, as it always is in the normal range, and too small by less than 2^-31 elsewhere. The sign "
      "plays no part in any mode.\n"
      "\n"
      "**Overflow.** What is above the largest number after rounding becomes inf, NaN where the format has no inf, the "
      "largest number where it has neither (see the\n"
      "table). Toward zero, a finite number never does: it becomes the largest number (IEEE 754-2019, 7.4). "
      "Saturating, all that is above the largest number, inf\n"
      "included, becomes the largest number (OCP OFP8 1.0, conversion with saturation; PTX `cvt.satfinite`; ONNX's "
      "`Cast` differs in one case, inf to a fnuz format, where it\n"
      "gives NaN). NaN stays NaN always; in a format without one it stays NaN in the float32 that carries it.\n"
      "\n"
      "**Subnormals** are kept. Flushing turns what is below the smallest normal number after rounding into zero of "
      "the same sign.\n"
      "\n"
      "**-0** becomes 0 in the fnuz formats, and so does a negative number that rounds to zero.\n"
      "\n"
      "Four values in float8_e4m3fn: between two numbers, between two subnormals, and on both sides of where overflow "
      "begins, half a last place above 448:\n"
      "\n"
      "```\n";
  const Format& e4m3fn = *FindFormat("float8_e4m3fn");
  for (const auto& [value, typed] :
       {std::pair(0.3f, "0.3"), std::pair(0.001f, "0.001"), std::pair(464.0f, "464"), std::pair(465.0f, "465")}) {
    text += ConversionText(e4m3fn, value, typed);
  }
  text +=
      "```\n"
      "\n"
      "## Other formats\n"
      "\n"
      "Any format with 2 to 8 exponent bits, 0 to 23 mantissa bits and one of these kinds of special codes:\n"
      "\n"
      "| specials | inf | NaN | -0 | bias, e exponent bits |\n"
      "|---|---|---|---|---|\n"
      "| `ieee` | all exponent bits set, mantissa 0 | all exponent bits set, any other mantissa | yes | 2^(e-1) - 1 |\n"
      "| `fn` | no | all bits of exponent and mantissa set | yes | 2^(e-1) - 1 |\n"
      "| `fnuz` | no | the code of -0 | no | 2^(e-1) |\n"
      "| `none` | no | no | yes | 2^(e-1) - 1 |\n"
      "\n"
      "`ieee` and `fnuz` need a mantissa bit. With 8 exponent bits only `ieee` is possible: float32, which carries all "
      "numbers, does not hold those of the others. Every\n"
      "format of the table is one of these.\n";
  return text;
}

}  // namespace scaletrace
