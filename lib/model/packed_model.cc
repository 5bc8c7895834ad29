#include "model/packed_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "kernels/flush_scope.h"

namespace scaletrace {
namespace {

// Outputs of a part of the backward product: four tiles, so that the panel is read from the second cache for some of them.
constexpr std::size_t kPartOutputs = 4 * kTileOutputs;

std::uint32_t* WordsOf(AlignedFloats& floats) { return reinterpret_cast<std::uint32_t*>(floats.data()); }

// Whether 1/S and g/S have no rounding to differ in: S is a power of two from 1 to 2^126.
bool IsPlain(float scale) {
  std::uint32_t bits;
  std::memcpy(&bits, &scale, sizeof(bits));
  return (bits & 0x7FFFFF) == 0 && bits >= 0x3F800000 && bits <= 0x7E800000;
}

}  // namespace

bool CanPack(const StepRounding& rounding, std::size_t rows, std::size_t features) {
  const Rounding& input = rounding[Role::kInput];
  const Format& format = rounding[Role::kDot].format;
  return rows >= 2 && features >= 2 && IsUniform(rounding) && format.bias == 127 && format.mantissa_bits == 7 && input.is_plain() &&
         SameNumbers(input.format, format) && rounding[Role::kMaster].is_nothing();
}

PackedModel::PackedModel(const PackedTable& table, const Shape& shape, bool round_activations, const Threads& threads, float* parameters, float* gradients)
    : table_(table),
      max_rows_(shape.max_rows),
      load_stride_((shape.features + 2 * kPad - 1) / (2 * kPad) * (2 * kPad)),
      wanted_(threads),
      by_rows_(Words(shape.features) * Padded(shape.max_rows)),
      by_features_(Words(shape.max_rows) * Padded(shape.features)),
      weights_(shape.outputs * Words(shape.features)),
      bias_(Padded(shape.outputs)),
      rows_(std::min(kPanel, Padded(shape.max_rows)) * load_stride_),
      pack_scratch_(kPanel * load_stride_ / 2) {
  args_ = {.tile = table.tile,
           .round_activations = round_activations,
           .rows = shape.max_rows,
           .features = shape.features,
           .outputs = shape.outputs,
           .by_rows = WordsOf(by_rows_),
           .by_features = WordsOf(by_features_),
           .parameters = parameters,
           .weights = WordsOf(weights_),
           .bias = bias_.data(),
           .gradients = gradients};
  signals_ = AlignedFloats(shape.outputs * args_.signal_stride());
  args_.signals = WordsOf(signals_);
  scratch_stride_ = Padded(PackedScratch(args_)) + Padded(shape.outputs * kPanel);
  scratch_ = AlignedFloats(scratch_stride_);
}

void PackedModel::StartTeam() {
  const std::size_t work = args_.rows * args_.features * args_.outputs;
  if (team_ || wanted_.most == 1 || work < 2 * wanted_.least_work) return;
  const auto useful = static_cast<int>(std::min<std::size_t>(work / wanted_.least_work, static_cast<std::size_t>(wanted_.most)));
  team_ = std::make_unique<Team>(useful);
  scratch_ = AlignedFloats(scratch_stride_ * static_cast<std::size_t>(team_->size()));
}

void PackedModel::Begin(std::size_t rows) {
  SCALETRACE_CHECK(rows >= 2 && rows <= max_rows_);
  args_.rows = rows;
}

void PackedModel::Load(std::size_t first, std::size_t count) {
  table_.pack(args_, rows_.data(), load_stride_, first, count, pack_scratch_.data());
}

void PackedModel::KeepSignals(float* errors, float* signals) {
  args_.errors_out = errors;
  args_.signals_out = signals;
}

void PackedModel::Shared::Clear() {
  next_part.store(0, std::memory_order_relaxed);
  next_panel.store(0, std::memory_order_relaxed);
  finite.store(true, std::memory_order_relaxed);
  std::fill(std::begin(lanes), std::end(lanes), 0.0f);
}

void PackedModel::Forward(int thread, Shared& shared) {
  float* const scratch = scratch_.data() + static_cast<std::size_t>(thread) * scratch_stride_;
  float* const squares = scratch + Padded(PackedScratch(args_));
  const auto size = static_cast<std::size_t>(threads());
  for (auto panel = static_cast<std::size_t>(thread); panel < Panels(args_.rows); panel += size) {
    const std::size_t count = table_.forward(args_, panel, scratch, squares);
    // The loss adds them row by row. Panels take about the same time, so a turn is mostly there when it is asked for.
    for (int i = 0; shared.next_panel.load(std::memory_order_acquire) != panel; ++i) {
      if (i < 2000) Relax(); else std::this_thread::yield();
    }
    table_.add_squares(squares, count, shared.lanes);
    shared.next_panel.store(panel + 1, std::memory_order_release);
  }
}

void PackedModel::Backward(int thread, Shared& shared) {
  float* const scratch = scratch_.data() + static_cast<std::size_t>(thread) * scratch_stride_;
  const std::size_t K = args_.outputs;
  // The sum of g is one part; alone, a thread takes all outputs of a panel as one.
  const std::size_t part = threads() == 1 ? K : std::min(K, kPartOutputs), parts = (K + part - 1) / part, all = 1 + Panels(args_.features) * parts;
  bool finite = true;
  for (;;) {
    const std::size_t i = shared.next_part.fetch_add(1, std::memory_order_relaxed);
    if (i >= all) break;
    if (i == 0) {
      finite &= table_.sum_signals(args_, scratch);
    } else {
      const std::size_t panel = (i - 1) / parts, begin = (i - 1) % parts * part;
      finite &= table_.backward(args_, panel, begin, std::min(K, begin + part), scratch);
    }
  }
  if (!finite) shared.finite.store(false, std::memory_order_relaxed);
}

void PackedModel::Steps(int thread, bool apply, float lr, std::span<float> losses) {
  const FlushScope flush;
  const auto t = static_cast<std::size_t>(thread), size = static_cast<std::size_t>(threads());
  const std::size_t K = args_.outputs, begin = K * t / size, end = K * (t + 1) / size;
  const bool plain = IsPlain(args_.loss_scale);
  if (stale_) {
    table_.round_parameters(args_, begin, end);
    Barrier();
  }
  for (std::size_t step = 0;; ++step) {
    Shared& shared = shared_[step % 2];
    Forward(thread, shared);
    Barrier();
    // Nobody is in the step before any more.
    if (thread == 0) shared_[(step + 1) % 2].Clear();
    Backward(thread, shared);
    Barrier();
    const bool finite = shared.finite.load(std::memory_order_relaxed);
    if (thread == 0) {
      losses[step] = table_.loss(shared.lanes, args_.rows * K);
      applied_ = step + (apply && finite ? 1 : 0);
    }
    if (!apply || !finite) return;
    table_.update(args_, lr, plain, begin, end);
    if (step + 1 == losses.size()) return;
    Barrier();
  }
}

std::size_t PackedModel::Take(bool apply, float lr, std::span<float> losses, bool& finite) {
  StartTeam();
  shared_[0].Clear();
  const auto steps = [&](int thread) { Steps(thread, apply, lr, losses); };
  if (team_) {
    team_->Run(steps);
  } else {
    steps(0);
  }
  stale_ = false;
  finite = applied_ == losses.size() || (!apply && shared_[0].finite.load());
  return applied_;
}

float PackedModel::ComputeGradients(float loss_scale, float share, bool& finite) {
  args_.loss_scale = loss_scale;
  args_.share = share;
  float loss = 0;
  Take(false, 0, {&loss, 1}, finite);
  return loss;
}

std::size_t PackedModel::TakeSteps(float loss_scale, float lr, std::span<float> losses) {
  args_.loss_scale = loss_scale;
  args_.share = 1;
  bool finite = true;
  return Take(true, lr, losses, finite);
}

}  // namespace scaletrace
