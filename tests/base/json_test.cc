// Strict JSON: values, both roundings, places in messages, and structs there and back.
#include "base/json.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/random.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

Json Parse(std::string_view text) { return Json::Parse(text, "d.json", 1 << 20); }

TEST_CASE("Values are read with their kind, order and line") {
  const Json json =
      Parse("{\"b\": [1, -2.5, \"x\"],\n \"a\": {\"t\": true, \"n\": null},\r\n\n\"c\": 18446744073709551615\n}\n");
  const auto& members = json.AsObject(json.root());
  REQUIRE(members.size() == 3);
  CHECK(members[0].key == "b");
  CHECK(members[1].key == "a");
  CHECK(json.root().line() == 1);
  CHECK(members[1].value.line() == 2);
  CHECK(members[2].value.line() == 4);
  const auto& list = json.AsArray(members[0].value);
  CHECK(json.AsInteger(list[0]) == 1);
  CHECK(json.AsF64(list[1]) == -2.5);
  CHECK(json.AsString(list[2]) == "x");
  CHECK(json.AsBool(json.Member(members[1].value, "t")));
  CHECK(json.IsNull(json.Member(members[1].value, "n")));
  CHECK(json.AsUnsigned(members[2].value) == std::numeric_limits<std::uint64_t>::max());
  CHECK(json.Find(json.root(), "z") == nullptr);
}

TEST_CASE("A line that ends with a number counts as the number's line") {
  const Json json = Parse("[1\n,\n2.5\n]");
  CHECK(json.AsArray(json.root())[0].line() == 1);
  CHECK(json.AsArray(json.root())[1].line() == 3);
  const Json late = Json::Parse("{\"a\": 1}", "d.jsonl", 100, 42);
  CHECK(late.Member(late.root(), "a").line() == 42);
}

TEST_CASE("Numbers keep the rounding to float32 and the one to double") {
  const Json json = Parse("[1.00000005960464477540, -0, -0.0, 0, 16777217, 1e-46, 9007199254740993, 1e39]");
  const auto& list = json.AsArray(json.root());
  CHECK(json.AsF32(list[0]) == std::nextafterf(1.0f, 2.0f));  // by way of the double it would be 1
  CHECK(static_cast<float>(json.AsF64(list[0])) == 1.0f);
  CHECK(std::signbit(json.AsF32(list[1])));
  CHECK(std::signbit(json.AsF64(list[1])));
  CHECK(std::signbit(json.AsF32(list[2])));
  CHECK_FALSE(std::signbit(json.AsF32(list[3])));
  CHECK(json.AsF32(list[4]) == 16777216.0f);
  CHECK(json.AsF32(list[5]) == 0.0f);
  CHECK(json.AsInteger(list[6]) == 9007199254740993);
  CHECK(json.AsF64(list[7]) == 1e39);
  CHECK_THROWS_WITH(json.AsF32(list[7]),
                    ContainsSubstring("d.json:1: [7]: found 1e+39; allowed: a number that float32 holds"));
}

TEST_CASE("Non-finite numbers are strings") {
  const Json json = Parse("[\"inf\", \"-inf\", \"nan\", \"NaN\"]");
  const auto& list = json.AsArray(json.root());
  CHECK(json.AsF32(list[0]) == std::numeric_limits<float>::infinity());
  CHECK(json.AsF64(list[1]) == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(json.AsF32(list[2])));
  CHECK_THROWS_WITH(json.AsF32(list[3]),
                    "d.json:1: [3]: found \"NaN\"; allowed: a number, \"inf\", \"-inf\" or \"nan\"");
}

TEST_CASE("A wrong kind of value is told with its key path and what was found") {
  const Json json = Parse(
      "{\"p\": {\"w\": [[1, 2], [3, \"4\"]]},\n\"s\": \"\\u0007\", \"f\": 5.0, \"n\": null, \"e\": [], \"o\": {}, "
      "\"t\": true, \"m\": -1}");
  const auto at = [&](std::string_view key) -> const JsonValue& { return json.Member(json.root(), key); };
  CHECK_THROWS_WITH(json.AsF32Matrix(json.Member(at("p"), "w")),
                    "d.json:1: p.w[1][1]: found \"4\"; allowed: a number, \"inf\", \"-inf\" or \"nan\"");
  CHECK_THROWS_WITH(json.AsInteger(at("f")),
                    "d.json:2: f: found 5.0; allowed: an integer of 64 bits, written without point and exponent");
  CHECK_THROWS_WITH(json.AsBool(at("s")), "d.json:2: s: found \"\\x07\"; allowed: true or false");
  CHECK_THROWS_WITH(json.AsString(at("n")), "d.json:2: n: found null; allowed: a string");
  CHECK_THROWS_WITH(json.AsObject(at("e")), "d.json:2: e: found an empty list; allowed: an object");
  CHECK_THROWS_WITH(json.AsArray(at("o")), "d.json:2: o: found an object; allowed: a list");
  CHECK_THROWS_WITH(json.AsString(at("t")), "d.json:2: t: found true; allowed: a string");
  CHECK_THROWS_WITH(json.AsUnsigned(at("m")), ContainsSubstring("d.json:2: m: found -1; allowed: an integer from 0"));
  CHECK_THROWS_WITH(json.Member(at("p"), "b"), "d.json:1: p: the key \"b\" is missing");
  CHECK_THROWS_WITH(json.AllowKeys(at("p"), {"v", "ww"}), "d.json:1: p: found the key \"w\"; allowed: v, ww");
}

TEST_CASE("Matrices have rows of one length") {
  const Json json = Parse("[[[1, 2], [3, 4], [5, 6]], [[1], []], [[]], [], [[1], 2]]");
  const auto& list = json.AsArray(json.root());
  const Json::Matrix matrix = json.AsF32Matrix(list[0]);
  CHECK(matrix.rows == 3);
  CHECK(matrix.columns == 2);
  CHECK(matrix.entries == std::vector<float>{1, 2, 3, 4, 5, 6});
  for (std::size_t i = 1; i < list.size(); ++i) CHECK_THROWS_AS(json.AsF32Matrix(list[i]), InputError);
}

TEST_CASE("Size and depth are limited while reading") {
  CHECK_NOTHROW(Json::Parse("[1]", "d.json", 3));
  CHECK_THROWS_WITH(Json::Parse("[12]", "d.json", 3), "d.json:1: found 4 bytes of JSON; allowed: at most 3");
  CHECK_NOTHROW(Parse(std::string(64, '[') + std::string(64, ']')));
  CHECK_THROWS_WITH(Parse("[\n" + std::string(64, '[') + std::string(65, ']')),
                    "d.json:2: nested deeper than 64 levels");
}

TEST_CASE("A moved document keeps its values in place") {
  Json first = Parse("{\"a\": [1]}");
  const JsonValue* value = first.Find(first.root(), "a");
  const Json second = std::move(first);
  CHECK(second.Find(second.root(), "a") == value);
}

enum class Mood : std::uint8_t { kCalm, kWild };
constexpr std::string_view kMoodNames[] = {"calm", "wild"};
constexpr std::span<const std::string_view> EnumNames(Mood) { return kMoodNames; }

struct Leaf {
  static constexpr std::string_view kName = "leaf";
  float size = 1;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"size", ""}, self.size);
  }
  bool operator==(const Leaf&) const = default;
};
struct Root {
  static constexpr std::string_view kName = "root";
  std::int64_t depth = 2;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"depth", ""}, self.depth);
  }
  bool operator==(const Root&) const = default;
};

struct Everything {
  bool flag = false;
  std::int64_t integer = 0;
  std::uint64_t large = 0;
  float single = 0;
  double real = 0;
  std::string text;
  Mood mood = Mood::kCalm;
  std::optional<double> bound;
  std::vector<float> numbers;
  std::vector<std::string> words;
  Leaf leaf;
  std::variant<Leaf, Root> part;
  std::variant<Leaf, Root> grouped;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"flag", ""}, self.flag);
    v.Value({"integer", ""}, self.integer);
    v.Value({"large", ""}, self.large);
    v.Value({"single", ""}, self.single);
    v.Value({"real", ""}, self.real);
    v.Value({"text", ""}, self.text);
    v.Value({"mood", ""}, self.mood);
    v.Value({"bound", ""}, self.bound);
    v.Value({"numbers", ""}, self.numbers);
    v.Value({"words", ""}, self.words);
    v.Group({"leaf", ""}, self.leaf);
    v.Kind({"part", ""}, self.part);
    v.KindGroup({"grouped", ""}, "kind", self.grouped);
  }
  bool operator==(const Everything&) const = default;
};

Everything Read(std::string_view text) {
  const Json json = Parse(text);
  Everything everything;
  FieldsFromJson(json, json.root(), everything);
  return everything;
}

TEST_CASE("A struct of every kind of field is written as one line and read back") {
  Everything full;
  full.flag = true;
  full.integer = std::numeric_limits<std::int64_t>::min();
  full.large = std::numeric_limits<std::uint64_t>::max();
  full.single = -0.1f;
  full.real = 1e-320;
  full.text = "a \"quoted\"\nline \xc3\xa9";
  full.mood = Mood::kWild;
  full.bound = 0.1;
  full.numbers = {1, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), 1e-45f};
  full.words = {"", "x"};
  full.leaf.size = 3;
  full.part = Root{7};
  full.grouped = Root{8};
  const std::string text = FieldsToJson(full);
  CHECK(text ==
        "{\"flag\": true, \"integer\": -9223372036854775808, \"large\": 18446744073709551615, \"single\": -0.1, "
        "\"real\": 1e-320, "
        "\"text\": \"a \\\"quoted\\\"\\nline \xc3\xa9\", \"mood\": \"wild\", \"bound\": 0.1, \"numbers\": [1, \"inf\", "
        "\"-inf\", 1e-45], "
        "\"words\": [\"\", \"x\"], \"leaf\": {\"size\": 3}, \"part\": \"root\", \"depth\": 7, \"grouped\": {\"kind\": "
        "\"root\", \"depth\": 8}}");
  CHECK(Read(text) == full);
  const Everything empty;
  CHECK(Read(FieldsToJson(empty)) == empty);
  full.single = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(Read(FieldsToJson(full)).single));
}

TEST_CASE("Unknown, missing and wrong members of a struct are errors") {
  const std::string text = FieldsToJson(Everything());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    return changed.replace(at, from.size(), to);
  };
  CHECK_THROWS_WITH(Read(with("\"flag\": false, ", "")), "d.json:1: the key \"flag\" is missing");
  CHECK_THROWS_WITH(
      Read(with("\"flag\"", "\"flags\": 1, \"flag\"")),
      ContainsSubstring("d.json:1: found the key \"flags\" (did you mean 'flag'?); allowed: flag, integer, "));
  CHECK_THROWS_WITH(Read(with("\"calm\"", "\"angry\"")), "d.json:1: mood: found \"angry\"; allowed: calm, wild");
  CHECK_THROWS_WITH(Read(with("\"part\": \"leaf\"", "\"part\": \"stem\"")),
                    "d.json:1: part: found \"stem\"; allowed: leaf, root");
  CHECK_THROWS_WITH(Read(with("\"leaf\": {", "\"leaf\": {\"x\": 0, ")),
                    "d.json:1: leaf: found the key \"x\"; allowed: size");
  CHECK_THROWS_WITH(Read(with("\"kind\": \"leaf\"", "\"kind\": \"root\"")),
                    "d.json:1: grouped: the key \"depth\" is missing");
  CHECK_THROWS_WITH(Read(with("\"integer\": 0", "\"integer\": 0.5")),
                    ContainsSubstring("integer: found 0.5; allowed: an integer"));
}

TEST_CASE("Only an InputError ever comes from random text or damaged JSON") {
  const std::string valid =
      "{\"params\": {\"w\": [[1.5, -2e3]], \"b\": [0]}, \"x\": \"in\\u0066\", \"t\": [true, null]}\n";
  int accepted = 0;
  for (std::uint64_t round = 0; round < 20000; ++round) {
    std::uint64_t draw = 0;
    const auto next = [&](std::uint64_t bound) { return UniformBelow(round, Stream::kNoise, draw++, bound); };
    std::string text = valid;
    for (std::uint64_t edits = 1 + next(4); edits > 0 && !text.empty(); --edits) {
      const std::size_t at = next(text.size());
      const std::size_t length = next(8);
      switch (next(4)) {
        case 0:
          text[at] = static_cast<char>(next(256));
          break;
        case 1:
          text.insert(at, 1, "{}[]:,\"\\0-.eE+\n tn"[next(19)]);
          break;
        case 2:
          text.erase(at, length);
          break;
        default:
          text.insert(next(text.size()), text.substr(at, length));
      }
    }
    try {
      Parse(text);
      ++accepted;
    } catch (const InputError& error) {
      const std::string message = error.what();
      if (message.find('\n') != std::string::npos || !message.starts_with("d.json:"))
        FAIL("a bad message: " << message);
    }
  }
  CHECK(accepted > 500);
}

}  // namespace
}  // namespace scaletrace
