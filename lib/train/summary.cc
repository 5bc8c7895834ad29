#include "train/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/number.h"

namespace scaletrace {
namespace {

// Keeps the first step of an unbroken row of steps for which something holds.
void Since(std::int64_t& since, bool holds, std::int64_t step) {
  if (!holds) {
    since = -1;
  } else if (since < 0) {
    since = step;
  }
}

std::string Times(std::int64_t n) { return n == 1 ? "once" : n == 2 ? "twice" : std::to_string(n) + " times"; }

// Above this a loss counts as diverged; inf where the first loss sets no limit.
double LossLimit(float first_loss) {
  const double limit = kDivergedFactor * static_cast<double>(first_loss);
  return std::isfinite(limit) && first_loss > 0 ? limit : std::numeric_limits<double>::infinity();
}

bool IsDiverged(float loss, double limit) { return !std::isfinite(loss) || !(static_cast<double>(loss) <= limit); }

}  // namespace

void Summary::Add(const StepRecord& record, double scale_after) {
  if (steps == 0) {
    first_loss = record.loss;
    scale_first = scale_min = scale_max = record.loss_scale;
  }
  const bool skip = record.skipped_in_a_row > 0;
  ++steps;
  updates += skip ? 0 : 1;
  skipped += skip ? 1 : 0;
  if (skip && first_skip < 0) first_skip = record.step;
  last_loss = record.loss;
  scale_min = std::min(scale_min, record.loss_scale);
  scale_max = std::max(scale_max, record.loss_scale);
  scale_last = scale_after;
  growths += record.event == Event::kGrowth || (record.event == Event::kCeiling && scale_after > record.loss_scale) ? 1 : 0;
  backoffs += record.event == Event::kBackoff || (record.event == Event::kFloor && scale_after < record.loss_scale) ? 1 : 0;
  forgiven += record.event == Event::kForgiven ? 1 : 0;
  if (record.event == Event::kRaise) raised_at = record.step;
  loss_nonfinite = !std::isfinite(record.loss);
  Since(inf_since, record.loss_scale == std::numeric_limits<double>::infinity(), record.step);
  Since(zero_since, record.loss_scale == 0, record.step);
  Since(skipping_since, skip, record.step);
  Since(unchanged_since, skip && scale_after == record.loss_scale, record.step);
  Since(diverged_since, IsDiverged(record.loss, LossLimit(first_loss)), record.step);
}

void Summary::AddQuiet(const StepRecord& first, std::span<const float> losses) {
  if (losses.empty()) return;
  Add(first, first.loss_scale);
  const auto count = static_cast<std::int64_t>(losses.size());
  steps += count - 1;
  updates += count - 1;
  last_loss = losses.back();
  loss_nonfinite = !std::isfinite(last_loss);
  // What else Add looks at is the same in every step, but for where the loss is.
  const double limit = LossLimit(first_loss);
  std::int64_t within = count;  // the last step that is
  while (within > 0 && IsDiverged(losses[static_cast<std::size_t>(within - 1)], limit)) --within;
  if (within == count) {
    diverged_since = -1;
  } else if (within > 0) {
    diverged_since = first.step + within;
  }
}

std::string Story(const Summary& s) {
  if (s.steps == 0) return "No steps were taken.";
  std::string story;
  const auto say = [&](const std::string& sentence) { story += (story.empty() ? "" : " ") + sentence; };
  const auto step = [](std::int64_t n) { return "step " + std::to_string(n); };
  const std::int64_t in_a_row = s.skipping_since < 0 ? 0 : s.steps - s.skipping_since;
  const bool never_updated = s.updates == 0;

  if (s.raised_at >= 0) {
    say("The policy raised at " + step(s.raised_at) + ", with the scale at " + ToScaleText(s.scale_last) +
        ": the public implementation stops training there.");
  } else if (s.inf_since >= 0) {
    say((s.inf_since == 0 ? "The scale was inf from the start" : "The scale grew to inf at " + step(s.inf_since)) +
        " and stays there: every step since was skipped, and nothing can bring it back.");
  } else if (s.zero_since >= 0) {
    say((s.zero_since == 0 ? "The scale was 0 from the start" : "The scale fell to 0 at " + step(s.zero_since)) + " and stays there.");
  } else if (in_a_row >= 10) {
    say((never_updated ? "Every step" : "Every step since " + step(s.skipping_since)) + " was skipped" +
        (s.unchanged_since >= 0 ? ", with the scale at " + ToScaleText(s.scale_last) + " since " + step(s.unchanged_since) : "") + ".");
  }
  if (s.diverged_since >= 0) {
    say(s.loss_nonfinite ? "The loss diverged: it is " + ToText(s.last_loss) + " now, and has been far off since " + step(s.diverged_since) + "."
                         : "The loss diverged: it is above " + ToText(kDivergedFactor) + " times the first since " + step(s.diverged_since) + ".");
  }
  if (story.empty() || (s.inf_since < 0 && s.raised_at < 0 && in_a_row < 10)) {
    if (s.growths == 0 && s.backoffs == 0) {
      say("The scale stayed at " + ToScaleText(s.scale_last) + ".");
    } else {
      std::string moves;
      if (s.growths > 0) moves += "grew " + Times(s.growths);
      if (s.backoffs > 0) moves += (moves.empty() ? "" : " and ") + std::string("backed off ") + Times(s.backoffs);
      say("The scale " + moves + ", from " + ToScaleText(s.scale_first) + " to " + ToScaleText(s.scale_last) + ".");
    }
    if (s.skipped == 0) say("No step was skipped.");
  }
  if (s.updates > 0 && s.steps > 1 && s.last_loss == s.first_loss && std::isfinite(s.last_loss)) {
    say("The loss is exactly what it was at the start: the updates changed nothing that shows, as when gradients underflow.");
  }
  if (s.stopped == "stuck" || s.stopped == "diverged") say("The run ended early, since it was " + s.stopped + " (stop_when).");
  return story;
}

}  // namespace scaletrace
