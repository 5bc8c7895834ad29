// A run, step by step: a function of its RunConfig. Nothing here touches a file but the data files that the config names; folders: run_folder.h.
#ifndef SCALETRACE_TRAIN_RUN_H_
#define SCALETRACE_TRAIN_RUN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "data/batches.h"
#include "data/dataset.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "scaling/scaler.h"
#include "trace/record.h"
#include "train/run_config.h"
#include "train/summary.h"

namespace scaletrace {

class Run {
 public:
  // Makes the data and the starting state. Errors: those of MakeDataset and Scaler; InputError (kConfig) where the data brings parameters and model.init is not auto.
  // threads: as LinearModel's; the records don't depend on it.
  Run(const RunConfig& config, const KernelTable& kernels, int threads = 1);

  // All steps taken, or ended early (summary().stopped).
  bool done() const { return summary_.steps >= config_.steps || !summary_.stopped.empty(); }
  // Takes up to records.size() steps, fills one record for each, and returns how many. Members that have to be computed and that no column asks for stay as they are.
  std::size_t Steps(std::span<StepRecord> records);
  const Summary& summary() const { return summary_; }
  // The histograms of the steps since the last call, as whole lines of histograms.csv; trace.histograms says of which steps.
  std::string TakeHistograms() { return std::exchange(histograms_, {}); }
  const LinearModel& model() const { return model_; }

  // The members of final.json that hold the run's state, without the braces around them; and back. Restore throws InputError (kData) where the
  // members are not those of a run of this config.
  std::string StateMembers() const;
  void Restore(const Json& json, const JsonValue& object);

 private:
  Run(const RunConfig& config, const KernelTable& kernels, Dataset dataset, int threads);
  void Load(std::int64_t step);
  // Valid until the next call.
  std::span<const float> TargetsAt(std::int64_t step, std::span<const std::uint32_t> rows);
  // Puts micro-batch `piece` of the step, of config_.micro_batches, into the model.
  void LoadPiece(std::int64_t step, std::int64_t piece);
  // All that comes before the policy: gradients of all pieces, clipping of scaled ones, statistics.
  LinearModel::Backward ComputeGradients(double loss_scale);
  void ObserveTensors();
  // Random bits of a step's first piece; the other pieces' follow it.
  std::uint64_t Draw(std::int64_t step) const { return static_cast<std::uint64_t>(step * config_.micro_batches); }
  bool HistogramDue(std::int64_t step) const { return config_.trace.histograms > 0 && step % config_.trace.histograms == 0; }
  void WriteHistograms(double loss_scale);
  // Fills the record of the step to come, as far as it is known before its gradients are.
  void Begin(StepRecord& record) const;
  // The rest of a step whose gradients the model holds: policy, update, counters.
  void Finish(LinearModel::Backward backward, StepRecord& record);
  // How many steps from here, up to `most`, may be taken in one go: nothing but the parameters and the count of good steps changes in them, as long as gradients are finite.
  std::size_t QuietSteps(std::size_t most) const;
  std::size_t TakeQuietSteps(std::span<StepRecord> records);
  Observation Observe(const LinearModel::Backward& backward) const;

  RunConfig config_;
  Dataset dataset_;  // of a full batch in one piece without x, once the model has it, and without y where that never moves
  Batches batches_;
  LinearModel model_;
  Scaler scaler_;
  Needs needs_;              // of the policy
  std::uint32_t columns_;    // ColumnNeeds of the trace
  bool plain_update_;        // sgd with a constant learning rate, nothing clipped, one piece
  OptimizerState optimizer_;
  std::int64_t good_steps_ = 0;
  std::int64_t skipped_in_a_row_ = 0;
  bool features_loaded_ = false, targets_loaded_ = false;  // whether the model holds those of the step before
  // Whether the next step's gradients are those that the model holds: the last step was skipped and left everything that they depend on as it was.
  bool repeats_ = false;
  LinearModel::Backward last_;  // of the last step that Finish saw
  std::array<TensorCounts, kObservedCount> counts_;       // of the step whose gradients the model holds, where columns ask for them
  bool input_counted_ = false;  // whether counts_ holds those of the features that the model holds
  std::array<ExponentCounts, kObservedCount> exponents_;  // likewise, where a histogram is due
  std::string histograms_;
  bool repeatable_;              // whether equal steps have equal gradients, and nothing has to be observed anew
  std::vector<float> targets_;  // of one batch
  std::vector<std::uint32_t> all_rows_;  // 0, 1, ...; of a full batch in pieces
  std::vector<float> losses_;   // of a stretch of steps
  Summary summary_;
};

}  // namespace scaletrace

#endif  // SCALETRACE_TRAIN_RUN_H_
