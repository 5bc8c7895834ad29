// The condition of `where`: which combinations of a sweep are kept.
#ifndef SCALETRACE_SWEEP_CONDITION_H_
#define SCALETRACE_SWEEP_CONDITION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrace {

//   scaler.init_scale * optimizer.lr < 2^10 and not (scaler.policy == 'pytorch' or steps > 100)
// Words: and or not; < <= > >= == !=; + - * /; log2(x), abs(x); numbers, 2^k, inf; text in quotes, true, false; key paths. Numbers are doubles. A comparison is
// false where it has NaN, where one side is text and the other a number (but != is then true), and where the config has no such key.
class Condition {
 public:
  // resolve(name) gives the key path that a name stands for, or throws. Throws InputError (kConfig) through fail(message), which must throw.
  Condition(std::string_view text, const std::function<std::string(std::string_view name)>& resolve,
            const std::function<void(const std::string& message)>& fail);

  // The key paths it asks for.
  const std::vector<std::string>& keys() const { return keys_; }
  // texts[i] is that of keys()[i] in a config (KeyText).
  bool Holds(const std::vector<std::optional<std::string>>& texts) const;

 private:
  enum class Op : std::uint8_t { kNumber, kText, kKey, kAdd, kSubtract, kMultiply, kDivide, kNegate, kLog2, kAbs, kLess, kLessEqual, kEqual, kNotEqual, kAnd, kOr, kNot };
  struct Node {
    Op op;
    double number = 0;
    std::string text;
    std::size_t key = 0;
    int left = -1, right = -1;  // places in nodes_
  };
  struct Value {
    enum class Type : std::uint8_t { kAbsent, kNumber, kText } type = Type::kAbsent;
    double number = 0;
    std::string_view text = {};
  };
  class Parser;

  static bool IsBool(Op op) { return op >= Op::kLess; }
  Value ValueOf(int node, const std::vector<std::optional<std::string>>& texts) const;
  bool Truth(int node, const std::vector<std::optional<std::string>>& texts) const;

  std::vector<Node> nodes_;
  std::vector<std::string> keys_;
  int root_ = -1;
};

}  // namespace scaletrace

#endif  // SCALETRACE_SWEEP_CONDITION_H_
