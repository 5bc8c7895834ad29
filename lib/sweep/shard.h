// Which share of a sweep a process has: as given, or from what schedulers and launchers put into the environment.
#ifndef SCALETRACE_SWEEP_SHARD_H_
#define SCALETRACE_SWEEP_SHARD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/parts.h"

namespace scaletrace {

struct ShardChoice {
  Shard shard;
  std::string reason;  // "Slurm: SLURM_ARRAY_TASK_ID=3 of 0-9", for a person; empty where it was given as K/N
};

// The name of a variable of the environment; nullopt where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// `text` is "K/N", "auto", or the name of one source (ShardSources) where several speak. `count` is N for the sources that only say which one a process is, not of
// how many (Kubernetes, PBS, GNU parallel). Throws InputError (kConfig): bad text; no source or a broken one; sources that disagree; a count that is missing or
// that contradicts the source.
ShardChoice ChooseShard(std::string_view text, std::optional<std::uint64_t> count, const Environment& environment);

// The names that ChooseShard takes, in the order in which they are asked.
std::vector<std::string_view> ShardSources();

}  // namespace scaletrace

#endif  // SCALETRACE_SWEEP_SHARD_H_
