// Trajectories of a loss scaler as regression tests in a C++ project of one's own, with Catch2, GoogleTest or none.
//
//   #include <scaletrace/testing.h>                        // CMake: find_package(scaletrace) and link scaletrace::testing
//   namespace st = scaletrace::testing;
//
//   st::Trajectory mine({"step", "loss_scale", "grads_finite"});
//   for (int step = 0; step < 1000; ++step) {
//     const float scale = my_scaler.scale();               // in force during the step
//     mine.Add({step, scale, my_scaler.Step(...)});
//   }
//   EXPECT_TRUE(st::Expect(mine, "expected.csv"));         // GoogleTest; the message is the report
//   const auto r = st::Expect(mine, "expected.csv");       // Catch2
//   INFO(r.message);
//   CHECK(r.ok);
//
// With SCALETRACE_UPDATE=1 in the environment, files that differ are written anew. Only the standard library is needed to include this.
#ifndef SCALETRACE_TESTING_H_
#define SCALETRACE_TESTING_H_

#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace scaletrace::testing {

// The answer of a comparison, with the report where it is no.
struct Result {
  bool ok = true;
  std::string message;
  explicit operator bool() const { return ok; }
};
inline std::ostream& operator<<(std::ostream& out, const Result& result) { return out << (result.ok ? "equal" : result.message); }

// One cell: a number, a flag or a word. A float is compared as float, a double as double.
class Value {
 public:
  Value(bool flag) : value_(flag) {}
  Value(float number) : value_(number) {}
  Value(double number) : value_(number) {}
  Value(const char* word) : value_(std::string(word)) {}
  Value(std::string_view word) : value_(std::string(word)) {}
  template <std::integral T>
  Value(T number) : value_(static_cast<std::int64_t>(number)) {}

  // As a cell of a CSV file: the shortest decimal that reads back to the same bits, NaN, inf, -inf; a flag as 0 or 1.
  std::string Text() const;

 private:
  std::variant<bool, std::int64_t, float, double, std::string> value_;
};

// Rows of steps, in order.
class Trajectory {
 public:
  // One of the columns is "step". Those that scaletrace knows (loss, loss_scale, good_steps, grads_finite, event, ...) have its types and rules; others are compared as
  // integers, doubles or words. std::invalid_argument where there is no step.
  explicit Trajectory(const std::vector<std::string>& columns);
  // One value for each column; std::invalid_argument otherwise.
  void Add(std::initializer_list<Value> row);
  // CSV with a header.
  const std::string& csv() const { return csv_; }

 private:
  friend Trajectory Simulate(const std::string& folder, const std::vector<std::string>& columns);
  std::size_t columns_;
  std::string csv_;
};

inline bool UpdateWanted() {
  const char* value = std::getenv("SCALETRACE_UPDATE");
  return value != nullptr && std::string_view(value) != "" && std::string_view(value) != "0";
}

struct Options {
  std::string tolerance_file = {};       // a tolerance.yaml; empty: 4 units in the last place for floats, all else exact
  bool update = UpdateWanted();          // write the expected file anew where it differs or is not there; the result is then ok
  std::int64_t rows_around = 3;          // of the first difference, in the report
};

// `got` against a CSV file. A column of the file that `got` lacks is a difference, one that only `got` has is not.
// A file that can't be read is a result that is not ok, as is everything that is wrong with the tolerance file.
Result Expect(const Trajectory& got, const std::string& expected_csv, const Options& options = {});

// `got` against the expected.csv of a case's folder, with its tolerance.yaml if it has one.
Result ExpectCase(const Trajectory& got, const std::string& folder, Options options = {});

// `got` against another trajectory.
Result Compare(const Trajectory& expected, const Trajectory& got, const Options& options = {});

// As `scaletrace check FOLDER`: what scaletrace computes for a case against its expected.csv.
Result CheckCase(const std::string& folder, const Options& options = {});

// What scaletrace computes for the config.yaml, and the events.txt if there is one, of a folder. std::runtime_error, its message one line, where they are wrong.
Trajectory Simulate(const std::string& folder, const std::vector<std::string>& columns);

}  // namespace scaletrace::testing

#endif  // SCALETRACE_TESTING_H_
