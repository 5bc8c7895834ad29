#include "scaling/scaler.h"

#include <algorithm>
#include <cmath>
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

// Judges parameters by their names, which are the same in all policies.
class OddValues {
 public:
  template <class P>
  explicit OddValues(const P& policy) : floor_(P::kInfo.floor), ceiling_(P::kInfo.ceiling) {
    Limits limits;
    P::Visit(policy, limits);
    inverts_factor_ = requires { P::kInvertsFactor; };
    if (limits.min_scale) floor_ = *limits.min_scale;
    if (limits.max_scale) ceiling_ = *limits.max_scale;
    P::Visit(policy, *this);
  }

  template <class T>
  void Value(const Field& field, const T& value) {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      const auto x = static_cast<double>(value);
      const std::string_view key = field.key;
      if (key == "init_scale") {
        if (!(x > 0))
          Warn(key, x, "no scale that works");
        else if (!std::isfinite(x))
          Warn(key, x, "no loss times it is finite");
        else if (x < floor_)
          Warn(key, x, "below the floor of " + ToText(floor_));
        else if (x > ceiling_)
          Warn(key, x, "above the cap of " + ToText(ceiling_));
      } else if ((key == "growth_factor" || key == "factor") && !(x > 1 || (inverts_factor_ && x > 0 && x < 1))) {
        Warn(key, x, "growth by it does not grow");
      } else if (key == "backoff_factor" && !(x > 0 && x < 1)) {
        Warn(key, x, "a backoff by it does not shrink the scale as it should");
      } else if (key == "growth_interval" && (!(x >= 1) || x != std::floor(x))) {
        Warn(key, x, "the project's rule then never grows, grows on every step, or fails");
      } else if ((key == "hysteresis" || key == "decr_every_n") && !(x >= 1)) {
        Warn(key, x, "the project's rule then backs off at once or never");
      } else if (key == "min_scale" && !(x > 0)) {
        Warn(key, x, "no floor");
      }
    }
  }

  std::vector<std::string> warnings;

 private:
  struct Limits {
    template <class T>
    void Value(const Field& field, const T& value) {
      if constexpr (kIsOptional<T>) {
        if (value) Value(field, *value);
      } else if constexpr (std::is_floating_point_v<T>) {
        if (field.key == "min_scale" || field.key == "threshold")
          min_scale = std::max(static_cast<double>(value), min_scale.value_or(0));
        if (field.key == "max_scale" && value != 0) max_scale = static_cast<double>(value);
      }
    }
    std::optional<double> min_scale;
    std::optional<double> max_scale;
  };

  void Warn(std::string_view key, double value, const std::string& why) {
    warnings.push_back(std::string(key) + ": " + ToText(value) + ": " + why);
  }

  double floor_;
  double ceiling_;
  bool inverts_factor_ = false;
};

}  // namespace

Scaler::Scaler(const Policy& policy)
    : driven_(std::visit(
          []<class P>(const P& p) {
            if constexpr (requires { p.Problem(); }) {
              if (const auto problem = p.Problem())
                throw InputError(InputError::Kind::kConfig, {"", 0, std::string(problem->key)}, problem->message);
            }
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

std::int64_t Scaler::initial_good_steps() const {
  return std::visit(
      []<class P>(const Driven<P>& d) -> std::int64_t {
        if constexpr (requires { d.policy.good_steps; }) {
          return d.policy.good_steps;
        } else {
          return 0;
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

std::optional<ParameterProblem> FindProblem(const Policy& policy) {
  return std::visit(
      [](const auto& p) -> std::optional<ParameterProblem> {
        if constexpr (requires { p.Problem(); }) {
          return p.Problem();
        } else {
          return std::nullopt;
        }
      },
      policy);
}

std::vector<std::string> Warnings(const Policy& policy) {
  return std::visit([](const auto& p) { return OddValues(p).warnings; }, policy);
}

}  // namespace scaletrace
