#include "sweep/condition.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/math.h"
#include "base/number.h"
#include "sweep/spec.h"

namespace scaletrace {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::size_t kMostNodes = 2000;  // evaluated recursively

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

// Recursive descent, one function a level of binding.
class Condition::Parser {
 public:
  Parser(Condition& condition, std::string_view text, const std::function<std::string(std::string_view)>& resolve,
         const std::function<void(const std::string&)>& fail)
      : condition_(condition), text_(text), resolve_(resolve), fail_(fail) {
    Next();
  }

  int All() {
    const int node = Or();
    if (!token_.empty()) Fail("found " + Shown() + " after its end; allowed: and, or, an operator");
    return NeedBool(node);
  }

 private:
  [[noreturn]] void Fail(const std::string& message) const {
    fail_(message);
    SCALETRACE_CHECK(false);
  }
  std::string Shown() const { return token_.empty() ? "its end" : "'" + Printable(token_) + "'"; }

  void Next() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\t' || text_[0] == '\n')) text_.remove_prefix(1);
    std::size_t n = text_.empty() ? 0 : 1;
    if (!text_.empty() && IsLetter(text_[0])) {
      while (n < text_.size() && (IsLetter(text_[n]) || IsDigit(text_[n]) || text_[n] == '.')) ++n;
    } else if (!text_.empty() && IsDigit(text_[0])) {
      while (n < text_.size() && (IsLetter(text_[n]) || IsDigit(text_[n]) || text_[n] == '.' || text_[n] == '^' ||
                                  ((text_[n] == '-' || text_[n] == '+') && (text_[n - 1] == 'e' || text_[n - 1] == '^')))) {
        ++n;
      }
    } else if (text_.starts_with('\'') || text_.starts_with('"')) {
      n = text_.find(text_[0], 1);
      if (n == std::string_view::npos) Fail("found a quote that is never closed");
      ++n;
    } else {
      for (const std::string_view two : {"<=", ">=", "==", "!="}) {
        if (text_.starts_with(two)) n = 2;
      }
    }
    token_ = text_.substr(0, n);
    text_.remove_prefix(n);
  }
  bool Take(std::string_view token) {
    if (token_ != token) return false;
    Next();
    return true;
  }

  int Add(Node node) {
    if (condition_.nodes_.size() >= kMostNodes) Fail("is too long");
    condition_.nodes_.push_back(std::move(node));
    return static_cast<int>(condition_.nodes_.size()) - 1;
  }
  Op OpOf(int node) const { return condition_.nodes_[static_cast<std::size_t>(node)].op; }
  int NeedBool(int node) const {
    if (!IsBool(OpOf(node))) Fail("found a value where a comparison belongs; allowed: <, <=, >, >=, ==, != between two values");
    return node;
  }
  int NeedValue(int node) const {
    if (IsBool(OpOf(node))) Fail("found a comparison where a value belongs");
    return node;
  }

  int Or() {
    int left = And();
    while (Take("or")) {
      NeedBool(left);
      left = Add({.op = Op::kOr, .left = left, .right = NeedBool(And())});
    }
    return left;
  }
  int And() {
    int left = Not();
    while (Take("and")) {
      NeedBool(left);
      left = Add({.op = Op::kAnd, .left = left, .right = NeedBool(Not())});
    }
    return left;
  }
  int Not() {
    const Level level(*this);
    if (Take("not")) return Add({.op = Op::kNot, .left = NeedBool(Not())});
    return Comparison();
  }
  int Comparison() {
    const int left = Sum();
    const std::string_view op = token_;
    if (op == "=") Fail("found '='; allowed: == for equality");
    if (op != "<" && op != "<=" && op != ">" && op != ">=" && op != "==" && op != "!=") return left;
    Next();
    NeedValue(left);
    const int right = NeedValue(Sum());
    if (token_ == "<" || token_ == "<=" || token_ == ">" || token_ == ">=" || token_ == "==" || token_ == "!=") {
      Fail("found a comparison of a comparison; allowed: 'a < b and b < c'");
    }
    if (op == "==") return Add({.op = Op::kEqual, .left = left, .right = right});
    if (op == "!=") return Add({.op = Op::kNotEqual, .left = left, .right = right});
    if (op == "<") return Add({.op = Op::kLess, .left = left, .right = right});
    if (op == "<=") return Add({.op = Op::kLessEqual, .left = left, .right = right});
    return Add({.op = op == ">" ? Op::kLess : Op::kLessEqual, .left = right, .right = left});
  }
  int Sum() {
    int left = Product();
    while (token_ == "+" || token_ == "-") {
      const Op op = token_ == "+" ? Op::kAdd : Op::kSubtract;
      Next();
      NeedValue(left);
      left = Add({.op = op, .left = left, .right = NeedValue(Product())});
    }
    return left;
  }
  int Product() {
    int left = Unary();
    while (token_ == "*" || token_ == "/") {
      const Op op = token_ == "*" ? Op::kMultiply : Op::kDivide;
      Next();
      NeedValue(left);
      left = Add({.op = op, .left = left, .right = NeedValue(Unary())});
    }
    return left;
  }
  int Unary() {
    const Level level(*this);
    if (Take("-")) return Add({.op = Op::kNegate, .left = NeedValue(Unary())});
    return Primary();
  }
  int Primary() {
    if (Take("(")) {
      const int inner = Or();
      if (!Take(")")) Fail("found " + Shown() + "; allowed: )");
      return inner;
    }
    const std::string_view token = token_;
    if (token.empty()) Fail("ends where a value belongs");
    Next();
    if (token[0] == '\'' || token[0] == '"') return Add({.op = Op::kText, .text = std::string(token.substr(1, token.size() - 2))});
    if (IsDigit(token[0])) {
      const auto number = ReadNumber(token);
      if (!number) Fail("found '" + Printable(token) + "'; allowed: a number or 2^k");
      return Add({.op = Op::kNumber, .number = *number});
    }
    if (!IsLetter(token[0])) Fail("found '" + Printable(token) + "' where a value belongs");
    if (token == "inf") return Add({.op = Op::kNumber, .number = std::numeric_limits<double>::infinity()});
    if (token == "true" || token == "false") return Add({.op = Op::kText, .text = std::string(token)});
    if ((token == "log2" || token == "abs") && Take("(")) {
      const int inner = NeedValue(Sum());
      if (!Take(")")) Fail("found " + Shown() + "; allowed: )");
      return Add({.op = token == "abs" ? Op::kAbs : Op::kLog2, .left = inner});
    }
    if (token == "and" || token == "or" || token == "not") Fail("found '" + std::string(token) + "' where a value belongs");
    const std::string path = resolve_(token);
    std::vector<std::string>& keys = condition_.keys_;
    const auto known = std::find(keys.begin(), keys.end(), path);
    const auto key = static_cast<std::size_t>(known - keys.begin());
    if (known == keys.end()) keys.push_back(path);
    return Add({.op = Op::kKey, .key = key});
  }

  struct Level {
    explicit Level(Parser& p) : parser(p) {
      if (++parser.depth_ > kMaxDepth) parser.Fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    ~Level() { --parser.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Parser& parser;
  };

  Condition& condition_;
  std::string_view text_, token_;
  const std::function<std::string(std::string_view)>& resolve_;
  const std::function<void(const std::string&)>& fail_;
  int depth_ = 0;
};

Condition::Condition(std::string_view text, const std::function<std::string(std::string_view)>& resolve,
                     const std::function<void(const std::string&)>& fail) {
  root_ = Parser(*this, text, resolve, fail).All();
}

Condition::Value Condition::ValueOf(int at, const std::vector<std::optional<std::string>>& texts) const {
  const Node& node = nodes_[static_cast<std::size_t>(at)];
  const auto number = [](double value) { return Value{Value::Type::kNumber, value}; };
  if (node.op == Op::kNumber) return number(node.number);
  if (node.op == Op::kText) return {Value::Type::kText, 0, node.text};
  if (node.op == Op::kKey) {
    const std::optional<std::string>& text = texts[node.key];
    if (!text) return {};
    if (const auto read = ReadCsvDouble(*text)) return number(*read);
    return {Value::Type::kText, 0, *text};
  }
  const Value left = ValueOf(node.left, texts);
  const Value right = node.right < 0 ? number(0) : ValueOf(node.right, texts);
  // Arithmetic with what is no number has no value.
  if (left.type != Value::Type::kNumber || right.type != Value::Type::kNumber) return {};
  switch (node.op) {
    case Op::kAdd: return number(left.number + right.number);
    case Op::kSubtract: return number(left.number - right.number);
    case Op::kMultiply: return number(left.number * right.number);
    case Op::kDivide: return number(left.number / right.number);
    case Op::kNegate: return number(-left.number);
    case Op::kLog2: return number(Log2(left.number));
    case Op::kAbs: return number(std::fabs(left.number));
    default: SCALETRACE_CHECK(false);
  }
}

bool Condition::Truth(int at, const std::vector<std::optional<std::string>>& texts) const {
  const Node& node = nodes_[static_cast<std::size_t>(at)];
  if (node.op == Op::kAnd) return Truth(node.left, texts) && Truth(node.right, texts);
  if (node.op == Op::kOr) return Truth(node.left, texts) || Truth(node.right, texts);
  if (node.op == Op::kNot) return !Truth(node.left, texts);
  const Value left = ValueOf(node.left, texts), right = ValueOf(node.right, texts);
  if (left.type == Value::Type::kAbsent || right.type == Value::Type::kAbsent) return false;
  const bool numbers = left.type == Value::Type::kNumber && right.type == Value::Type::kNumber;
  if (numbers && (std::isnan(left.number) || std::isnan(right.number))) return false;
  const bool equal = left.type == right.type && (numbers ? left.number == right.number : left.text == right.text);
  if (node.op == Op::kEqual) return equal;
  if (node.op == Op::kNotEqual) return !equal;
  if (node.op == Op::kLess) return numbers && left.number < right.number;
  return numbers && left.number <= right.number;
}

bool Condition::Holds(const std::vector<std::optional<std::string>>& texts) const { return Truth(root_, texts); }

}  // namespace scaletrace
