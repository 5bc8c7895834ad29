#include "scaling/scaler.h"

#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/number.h"

namespace scaletrace {
namespace {

constexpr std::size_t kMaxStateBytes = 4096;

// The fields of a state with the policy's key in front.
template <class State>
struct Tagged {
  std::string policy;
  State state;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"policy", "the key of the policy that the state is of"}, self.policy);
    State::Visit(self.state, v);
  }
};

// Everything in a state but its loss_scale.
class CounterNamesReader {
 public:
  template <class T>
  void Value(const Field& field, const T&) {
    if (field.key != "loss_scale") names.push_back(field.key);
  }
  std::vector<std::string_view> names;
};

class CounterCells {
 public:
  template <class T>
  void Value(const Field& field, const T& value) {
    if (field.key == "loss_scale") return;
    if constexpr (std::is_same_v<T, bool>) {
      cells.emplace_back(value ? "1" : "0");
    } else if constexpr (std::is_integral_v<T>) {
      cells.push_back(std::to_string(value));
    } else {
      cells.push_back(ToText(static_cast<double>(value)));
    }
  }
  std::vector<std::string> cells;
};

// No count of a state may be so large that a few more steps overflow it.
class CountsCheck {
 public:
  CountsCheck(const Json& json, const JsonValue& object) : json_(json), object_(object) {}
  template <class T>
  void Value(const Field& field, const T& value) {
    if constexpr (std::is_same_v<T, std::int64_t>) {
      constexpr std::int64_t kLimit = std::int64_t{1} << 60;
      if (value < -kLimit || value > kLimit)
        json_.FailFound(json_.Member(object_, field.key), "an integer from -2^60 to 2^60");
    }
  }

 private:
  const Json& json_;
  const JsonValue& object_;
};

template <class P>
void ValidateOne(const P& policy) {
  if constexpr (requires { policy.Validate(); }) policy.Validate();
}

}  // namespace

Scaler::Scaler(const Policy& policy)
    : driven_(std::visit(
          []<class P>(const P& p) {
            ValidateOne(p);
            return AnyDriven(Driven<P>{p, p.Start()});
          },
          policy)),
      loss_scale_(std::visit([](const auto& d) { return d.policy.LossScale(d.state); }, driven_)) {}

const PolicyInfo& Scaler::info() const {
  return std::visit([]<class P>(const Driven<P>&) -> const PolicyInfo& { return P::kInfo; }, driven_);
}

Needs Scaler::needs() const {
  return std::visit(
      []<class P>(const Driven<P>& d) {
        if constexpr (requires { d.policy.NeedsNow(); }) {
          return d.policy.NeedsNow();
        } else {
          return P::kInfo.needs;
        }
      },
      driven_);
}

Scaler::Decision Scaler::Next(const Observation& observation) {
  return std::visit(
      [this, &observation]<class P>(Driven<P>& d) {
        const Outcome<typename P::State> outcome = d.policy.Next(d.state, observation);
        Decision decision;
        decision.finite = d.policy.Finite(observation);
        decision.apply = outcome.apply && !outcome.raised;
        decision.event = outcome.event;
        decision.raised = outcome.raised;
        const double used = loss_scale_;
        d.state = outcome.next;
        loss_scale_ = d.policy.LossScale(d.state);
        decision.unscale_by = outcome.unscale == Unscale::kOld   ? used
                              : outcome.unscale == Unscale::kNew ? loss_scale_
                                                                 : 1;
        return decision;
      },
      driven_);
}

std::int64_t Scaler::QuietSteps() const {
  return std::visit([](const auto& d) { return d.policy.QuietSteps(d.state); }, driven_);
}

void Scaler::Advance(std::int64_t n) {
  SCALETRACE_CHECK(n >= 0 && n <= QuietSteps());
  std::visit([n](auto& d) { d.state = d.policy.Advance(d.state, n); }, driven_);
}

std::string Scaler::StateJson() const {
  return std::visit(
      []<class P>(const Driven<P>& d) {
        return FieldsToJson(Tagged<typename P::State>{std::string(P::kName), d.state});
      },
      driven_);
}

void Scaler::Restore(std::string_view json, const std::string& file) {
  const Json document = Json::Parse(json, file, kMaxStateBytes);
  Restore(document, document.root());
}

void Scaler::Restore(const Json& json, const JsonValue& value) {
  std::visit(
      [&json, &value, this]<class P>(Driven<P>& d) {
        const JsonValue& key = json.Member(value, "policy");
        if (json.AsString(key) != P::kName) json.FailFound(key, "\"" + std::string(P::kName) + "\"");
        Tagged<typename P::State> tagged{"", d.state};
        FieldsFromJson(json, value, tagged);
        CountsCheck check(json, value);
        P::State::Visit(tagged.state, check);
        d.state = std::move(tagged.state);
        loss_scale_ = d.policy.LossScale(d.state);
      },
      driven_);
}

std::vector<std::string_view> Scaler::CounterNames() const {
  return std::visit(
      []<class P>(const Driven<P>& d) {
        CounterNamesReader reader;
        P::State::Visit(d.state, reader);
        return std::move(reader.names);
      },
      driven_);
}

std::vector<std::string> Scaler::Counters() const {
  return std::visit(
      []<class P>(const Driven<P>& d) {
        CounterCells reader;
        P::State::Visit(d.state, reader);
        return std::move(reader.cells);
      },
      driven_);
}

bool Scaler::operator==(const Scaler& other) const {
  return std::visit(
      [&other]<class P>(const Driven<P>& d) {
        const auto* o = std::get_if<Driven<P>>(&other.driven_);
        return o != nullptr && d.state == o->state;
      },
      driven_);
}

void Validate(const Policy& policy) {
  std::visit([](const auto& p) { ValidateOne(p); }, policy);
}

std::vector<std::string> Warnings(const Policy& policy) {
  return std::visit(
      [](const auto& p) -> std::vector<std::string> {
        if constexpr (requires { p.Warnings(); }) {
          return p.Warnings();
        } else {
          return {};
        }
      },
      policy);
}

}  // namespace scaletrace
