// YAML text → tree: what is taken, lines, and that no text whatever brings anything else than an InputError.
#include "config/yaml.h"

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "config/config.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

YamlNode Parse(std::string_view text) { return ParseYaml(text, {"t.yaml", 1, ""}); }

TEST_CASE("Mappings, lists and scalars come with their lines, in order") {
  const YamlNode root = Parse("# head\nb: 1\na:\n  - x\n  - 'y z'\nc: {d: , e: ~}\r\nf: |\n  two\n  lines\n");
  REQUIRE(root.kind == YamlNode::Kind::kMapping);
  CHECK(root.line == 2);
  REQUIRE(root.entries.size() == 4);
  CHECK(root.entries[0].key == "b");
  CHECK(root.entries[0].value.text == "1");
  CHECK_FALSE(root.entries[0].value.quoted);
  const YamlNode& list = root.Find("a")->value;
  REQUIRE(list.kind == YamlNode::Kind::kList);
  REQUIRE(list.items.size() == 2);
  CHECK(list.items[1].text == "y z");
  CHECK(list.items[1].quoted);
  CHECK(list.items[1].line == 5);
  const YamlNode& inner = root.Find("c")->value;
  CHECK(root.Find("c")->line == 6);
  CHECK(inner.Find("d")->value.kind == YamlNode::Kind::kNull);
  CHECK(inner.Find("d")->value.text.empty());
  CHECK(inner.Find("e")->value.text == "~");
  CHECK(root.Find("f")->value.text == "two\nlines\n");
  CHECK(root.Find("f")->value.quoted);
  CHECK(root.Find("g") == nullptr);
}

TEST_CASE("Quotes inside quotes, escapes and quoted keys are read") {
  const YamlNode root = Parse("'a': 'it''s'\nb: \"say \\\"\\x41\\\" \\\\\"\n");
  CHECK(root.Find("a")->value.text == "it's");
  CHECK(root.Find("b")->value.text == "say \"A\" \\");
}

TEST_CASE("An empty document is a null") {
  CHECK(Parse("").kind == YamlNode::Kind::kNull);
  CHECK(Parse("# only a comment\n").kind == YamlNode::Kind::kNull);
  CHECK(Parse("---\n...\n").kind == YamlNode::Kind::kNull);
}

TEST_CASE("Sixty-four levels are taken and sixty-five are not") {
  CHECK_NOTHROW(Parse(std::string(64, '[') + std::string(64, ']')));
  CHECK_THROWS_AS(Parse(std::string(65, '[') + std::string(65, ']')), InputError);
}

TEST_CASE("A text of the largest size is taken and one byte more is not") {
  const std::string largest(kMaxYamlBytes, '#');
  CHECK_NOTHROW(Parse(largest));
  CHECK_THROWS_WITH(Parse(largest + "#"), "t.yaml:1: found 1048577 bytes; allowed: at most 1048576");
}

TEST_CASE("Broken UTF-8 of every sort is refused") {
  for (const std::string_view bad : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC3", "\xC3(", "\xE0\x80\x80",
                                     "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF",
                                     "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xF0\x9F\x92", "\xFE", "\xFF"}) {
    CHECK_THROWS_WITH(Parse("a: x\nb: x" + std::string(bad)),
                      ContainsSubstring("t.yaml:2: ") && ContainsSubstring("is not UTF-8"));
  }
  CHECK(Parse("a: \xC3\xA9\xE2\x82\xAC\xED\x9F\xBF\xF0\x9F\x92\xA9\xF4\x8F\xBF\xBF\n").Find("a")->value.text ==
        "\xC3\xA9\xE2\x82\xAC\xED\x9F\xBF\xF0\x9F\x92\xA9\xF4\x8F\xBF\xBF");
}

TEST_CASE("Tabs are refused in the indentation only") {
  CHECK_THROWS_WITH(Parse("a:\n \tb: 1\n"), "t.yaml:2: found a tab in the indentation; allowed: spaces");
  CHECK(Parse("a: 1\t# note\n\t\n\t# note\nb: [1,\t2]\n").Find("b")->value.items.size() == 2);
}

const std::string kConfig = R"(# A valid config, to be damaged.
name: quick-start
seed: 7
steps: 2000
stop_when: "stuck"
data: {kind: gaussian, samples: 256, features: 32, outputs: 4, noise: 0.1}
batch:
  kind: permuted
  size: 16
  drop_last: true
model: {init: normal, std: 0.5}
precision: {compute: bfloat16, profile: 'strict'}
optimizer: {kind: sgd, lr: 5e-2}
scaler:
  policy: jax-step
  init_scale: 2^16
  growth_interval: 50
trace:
  every: 1
  columns: [step, loss,
            loss_scale]
)";

// Bytes that mean something to a YAML parser, more likely than others.
char RandomByte(std::uint64_t bits) {
  static constexpr std::string_view kTelling = "{}[]:,-?&*!|>'\"%@`#~<\n\n\n \t\\0.e^_x\r";
  return (bits & 3) != 0 ? kTelling[(bits >> 8) % kTelling.size()] : static_cast<char>(bits >> 8);
}

TEST_CASE("Only an InputError ever comes from random text or a damaged config") {
  REQUIRE_NOTHROW(ParseConfig(kConfig, "c.yaml", "."));
  int accepted = 0;
  int refused = 0;
  for (std::uint64_t round = 0; round < 20000; ++round) {
    std::uint64_t draw = 0;
    const auto next = [&](std::uint64_t bound) { return UniformBelow(round, Stream::kNoise, draw++, bound); };
    std::string text;
    if (round % 4 == 0) {
      text.resize(next(80));
      for (char& c : text) c = RandomByte(next(std::uint64_t{1} << 32));
    } else {
      text = kConfig;
      for (std::uint64_t edits = 1 + next(4); edits > 0 && !text.empty(); --edits) {
        const std::size_t at = next(text.size());
        const std::size_t length = next(std::min<std::size_t>(text.size() - at, 12) + 1);
        switch (next(5)) {
          case 0:
            text[at] = RandomByte(next(std::uint64_t{1} << 32));
            break;
          case 1:
            text.insert(at, 1, RandomByte(next(std::uint64_t{1} << 32)));
            break;
          case 2:
            text.erase(at, length);
            break;
          case 3:
            text.insert(next(text.size()), text.substr(at, length));
            break;
          default:
            text.resize(at);
        }
      }
    }
    try {
      const RunConfig config = ParseConfig(text, "c.yaml", ".");
      ++accepted;
      // What is taken can be written and read again.
      const std::string resolved = ResolvedYaml(config);
      if (ResolvedYaml(ParseConfig(resolved, "r.yaml", ".")) != resolved)
        FAIL("not the same when read again: " << text);
    } catch (const InputError& error) {
      ++refused;
      const std::string message = error.what();
      if (message.find('\n') != std::string::npos || !message.starts_with("c.yaml")) FAIL("a bad message: " << message);
    }
  }
  // Both ways were walked.
  CHECK(accepted > 500);
  CHECK(refused > 10000);
}

}  // namespace
}  // namespace scaletrace
