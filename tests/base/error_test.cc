// Messages of errors, nearest words, and text made fit for a line.
#include "base/error.h"

#include <cerrno>
#include <string>

#include "tests/catch.h"

namespace scaletrace {
namespace {

TEST_CASE("An input error is one line of place, key and message") {
  const auto what = [](const Place& place) {
    return std::string(InputError(InputError::Kind::kData, place, "message").what());
  };
  CHECK(what({"file", 3, "a.b"}) == "file:3: a.b: message");
  CHECK(what({"file", 0, "a.b"}) == "file: a.b: message");
  CHECK(what({"file", 3, ""}) == "file:3: message");
  CHECK(what({"", 0, "a"}) == "a: message");
  CHECK(what({"", 0, ""}) == "message");
  CHECK(what({"a\nb", 0, "c\x1b[31m"}) == "a\\x0ab: c\\x1b[31m: message");
  CHECK(InputError(InputError::Kind::kConfig, {}, "").kind() == InputError::Kind::kConfig);
}

TEST_CASE("An IO error says what could not be done and why") {
  CHECK(std::string(IoError("a/b", "cannot open", ENOENT).what()) == "a/b: cannot open: No such file or directory");
  CHECK(std::string(IoError("a/b", "is odd").what()) == "a/b: is odd");
}

TEST_CASE("A failed check names its file, line and condition") {
  const auto fail = [] { SCALETRACE_CHECK(1 + 1 == 3); };
  CHECK_THROWS_AS(fail(), InternalError);
  CHECK_THROWS_WITH(fail(), ContainsSubstring("error_test.cc:") && ContainsSubstring("check failed: 1 + 1 == 3"));
  const auto pass = [] { SCALETRACE_CHECK(1 + 1 == 2); };
  CHECK_NOTHROW(pass());
}

TEST_CASE("The nearest word is found within a third of the letters") {
  CHECK(NearestWord("growth_intervall", {"good_steps", "growth_interval"}) == "growth_interval");
  CHECK(NearestWord("sede", {"name", "seed"}) == "seed");  // two letters swapped are one slip
  CHECK(NearestWord("lr", {"l", "lrs"}) == "l");           // the first of equals
  CHECK(NearestWord("abcdef", {"abxyef"}) == "abxyef");
  CHECK(NearestWord("abcdef", {"axyzef"}).empty());
  CHECK(NearestWord("y", {"a", "b"}).empty());
  CHECK(NearestWord("", {"a"}).empty());
  CHECK(NearestWord("a", {}).empty());
  CHECK(NearestWord(std::string(101, 'a'), {std::string_view("a")}).empty());
  CHECK(DidYouMean("sedd", {"seed"}) == " (did you mean 'seed'?)");
  CHECK(DidYouMean("scale", {"name"}).empty());
}

TEST_CASE("Text is made printable and cut at a whole character") {
  CHECK(Printable("plain text") == "plain text");
  CHECK(Printable(std::string("a\0b\tc\x7f", 6)) == "a\\x00b\\x09c\\x7f");
  CHECK(Printable("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x92\xa9") == "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x92\xa9");
  CHECK(Printable("caf\xe9!") == "caf\\xe9!");
  CHECK(Printable("\xe2\x82") == "\\xe2\\x82");
  CHECK(Printable(std::string(60, 'x')) == std::string(60, 'x'));
  CHECK(Printable(std::string(61, 'x')) == std::string(60, 'x') + "...");
  CHECK(Printable("ab\xc3\xa9z", 3) == "ab\xc3\xa9...");
}

}  // namespace
}  // namespace scaletrace
