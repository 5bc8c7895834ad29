// Steps over a packed batch: the arrays of kernels/packed.h, and their parts in order on one thread or several. The bits do not depend on the number of threads.
#ifndef SCALETRACE_MODEL_PACKED_MODEL_H_
#define SCALETRACE_MODEL_PACKED_MODEL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/team.h"
#include "kernels/aligned.h"
#include "kernels/packed.h"
#include "kernels/step_rounding.h"

namespace scaletrace {

// Whether the kernels of packed.h compute steps of this rounding and this many rows: all is rounded to bfloat16 to nearest, the masters to nothing.
bool CanPack(const StepRounding& rounding, std::size_t rows, std::size_t features);

class PackedModel {
 public:
  struct Shape {
    std::size_t max_rows = 0, features = 0, outputs = 0;
  };
  // At most `most` threads, each with at least so many products of a step: below the default they would wait for each other longer than they work.
  struct Threads {
    int most = 1;
    std::size_t least_work = std::size_t{1} << 20;
  };
  // parameters and gradients: the owner's, K*D + K each; they outlive this.
  PackedModel(const PackedTable& table, const Shape& shape, bool round_activations, const Threads& threads, float* parameters, float* gradients);

  // The batch to come has that many rows; Load gives them, kPanel at a time: x' of rows first ..., count x load_stride() floats in load_buffer().
  void Begin(std::size_t rows);
  float* load_buffer() { return rows_.data(); }
  std::size_t load_stride() const { return load_stride_; }
  void Load(std::size_t first, std::size_t count);
  // y: K x Padded(rows), the owner's.
  void SetTargets(const float* y) { args_.y = y; }
  // Where e and g are kept from now on: K x Padded(rows), the owner's.
  void KeepSignals(float* errors, float* signals);
  // The parameters have changed.
  void ParametersChanged() { stale_ = true; }

  // Gradients at S. `finite`: whether all of them are.
  float ComputeGradients(float loss_scale, float share, bool& finite);
  // As LinearModel::TakeSteps, for S >= 1 and finite: then quotients are finite where gradients are. Returns how many steps were applied; the one behind them was computed only.
  std::size_t TakeSteps(float loss_scale, float lr, std::span<float> losses);

  int threads() const { return team_ ? team_->size() : 1; }
  const PackedTable& table() const { return table_; }

 private:
  // Of one step; two of them take turns, so that one can be cleared while the other is in use.
  struct Shared {
    std::atomic<std::size_t> next_part{0};
    std::atomic<std::size_t> next_panel{0};  // whose squares are due
    std::atomic<bool> finite{true};
    alignas(64) float lanes[kPad] = {};
    void Clear();
  };
  void Forward(int thread, Shared& shared);
  void Backward(int thread, Shared& shared);
  // Steps until one isn't finite or losses are full; `apply`: whether they are applied.
  void Steps(int thread, bool apply, float lr, std::span<float> losses);
  std::size_t Take(bool apply, float lr, std::span<float> losses, bool& finite);
  void StartTeam();
  void Barrier() {
    if (team_) team_->Barrier();
  }

  const PackedTable& table_;
  PackedArgs args_;
  std::size_t max_rows_, load_stride_;
  Threads wanted_;
  std::unique_ptr<Team> team_;
  bool stale_ = true;
  AlignedFloats by_rows_, by_features_, weights_, signals_;  // words
  AlignedFloats bias_, rows_, pack_scratch_;
  std::size_t scratch_stride_ = 0;
  AlignedFloats scratch_;  // of each thread: the kernels', and squares
  Shared shared_[2];
  std::size_t applied_ = 0;  // of the last Steps
};

}  // namespace scaletrace

#endif  // SCALETRACE_MODEL_PACKED_MODEL_H_
