#include "sweep/shard.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/number.h"
#include "config/field_text.h"

namespace scaletrace {
namespace {

[[noreturn]] void Fail(const std::string& message) { throw InputError(InputError::Kind::kConfig, {.file = "--shard"}, message); }

// What one source says; count 0: it does not say of how many.
struct Said {
  std::uint64_t rank = 0;  // from 0
  std::uint64_t count = 0;
  std::string reason;
};

// A whole number from the environment; nullopt where the variable is not set, an error where it is something else.
std::optional<std::uint64_t> Read(const Environment& environment, const std::string& name) {
  const auto text = environment(name);
  if (!text || text->empty()) return std::nullopt;
  const auto number = ReadUnsigned(*text);
  if (!number || *number > (std::uint64_t{1} << 32)) Fail("found " + name + "=" + Printable(*text) + " in the environment; allowed: a whole number");
  return number;
}

std::uint64_t Need(const Environment& environment, const std::string& name, const std::string& because) {
  const auto number = Read(environment, name);
  if (!number) Fail(because + " is set, but " + name + " is not; give --shard K/N");
  return *number;
}

std::string Setting(const std::string& name, std::uint64_t value) { return name + "=" + std::to_string(value); }

// An array of tasks first, first + step, ..., last.
Said ArrayTask(const std::string& name, std::uint64_t id, std::uint64_t first, std::uint64_t last, std::uint64_t step) {
  if (step == 0 || id < first || id > last || (id - first) % step != 0) {
    Fail(Setting(name, id) + " is no task of " + std::to_string(first) + "-" + std::to_string(last) + " by " + std::to_string(step));
  }
  return {(id - first) / step, (last - first) / step + 1, Setting(name, id) + " of " + std::to_string(first) + "-" + std::to_string(last) +
                                                               (step > 1 ? " by " + std::to_string(step) : "")};
}

std::optional<Said> RankOf(const Environment& environment, const std::string& rank_name, const std::string& size_name) {
  const auto rank = Read(environment, rank_name);
  if (!rank) return std::nullopt;
  return Said{*rank, Need(environment, size_name, rank_name), Setting(rank_name, *rank) + " of " + environment(size_name).value_or("")};
}

// A job array, tasks of srun, or both: array task a of A, srun's task t of T is a T + t of A T. Inside the batch script itself SLURM_PROCID is 0 whatever the job
// has, so that only a step (SLURM_STEP_NUM_TASKS, which srun sets) counts.
std::optional<Said> FromSlurm(const Environment& environment) {
  std::optional<Said> said;
  if (const auto id = Read(environment, "SLURM_ARRAY_TASK_ID")) {
    const std::string because = "SLURM_ARRAY_TASK_ID";
    const std::uint64_t first = Need(environment, "SLURM_ARRAY_TASK_MIN", because), last = Need(environment, "SLURM_ARRAY_TASK_MAX", because);
    const std::uint64_t step = Read(environment, "SLURM_ARRAY_TASK_STEP").value_or(1);
    const std::uint64_t count = Need(environment, "SLURM_ARRAY_TASK_COUNT", because);
    if (step > 0 && last >= first && (last - first) / step + 1 != count) {
      Fail("the tasks of this Slurm array are not evenly apart (" + std::to_string(count) + " of " + std::to_string(first) + "-" + std::to_string(last) +
           "); give --shard K/N, or number them without holes");
    }
    said = ArrayTask(because, *id, first, last, step);
  }
  if (const auto tasks = Read(environment, "SLURM_STEP_NUM_TASKS"); tasks && *tasks > 1) {
    const std::uint64_t task = Need(environment, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
    const std::string reason = Setting("SLURM_PROCID", task) + " of " + std::to_string(*tasks);
    if (!said) return Said{task, *tasks, reason};
    return Said{said->rank * *tasks + task, said->count * *tasks, said->reason + ", " + reason};
  }
  return said;
}

std::optional<Said> FromOpenMpi(const Environment& e) { return RankOf(e, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"); }
std::optional<Said> FromMpich(const Environment& e) { return RankOf(e, "PMI_RANK", "PMI_SIZE"); }
std::optional<Said> FromJsrun(const Environment& e) { return RankOf(e, "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"); }

std::optional<Said> FromKubernetes(const Environment& environment) {
  const auto index = Read(environment, "JOB_COMPLETION_INDEX");
  if (!index) return std::nullopt;
  return Said{*index, 0, Setting("JOB_COMPLETION_INDEX", *index)};
}

std::optional<Said> FromAwsBatch(const Environment& environment) {
  return RankOf(environment, "AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE");
}

// 0 outside of an array. Indices are taken to begin at 1, since nothing says where they do.
std::optional<Said> FromLsf(const Environment& environment) {
  const auto index = Read(environment, "LSB_JOBINDEX");
  if (!index || *index == 0) return std::nullopt;
  return ArrayTask("LSB_JOBINDEX", *index, 1, Need(environment, "LSB_JOBINDEX_END", "LSB_JOBINDEX"), Read(environment, "LSB_JOBINDEX_STEP").value_or(1));
}

// PBS Professional and OpenPBS, then Torque: neither says how many there are, nor where they begin.
std::optional<Said> FromPbs(const Environment& environment) {
  for (const char* name : {"PBS_ARRAY_INDEX", "PBS_ARRAYID"}) {
    const auto index = Read(environment, name);
    if (!index) continue;
    if (*index == 0) Fail(Setting(name, 0) + ": number the array from 1, as in qsub -J 1-N");
    return Said{*index - 1, 0, Setting(name, *index)};
  }
  return std::nullopt;
}

std::optional<Said> FromSge(const Environment& environment) {
  const auto id = environment("SGE_TASK_ID");
  if (!id || *id == "undefined" || id->empty()) return std::nullopt;
  return ArrayTask("SGE_TASK_ID", *Read(environment, "SGE_TASK_ID"), Need(environment, "SGE_TASK_FIRST", "SGE_TASK_ID"),
                   Need(environment, "SGE_TASK_LAST", "SGE_TASK_ID"), Read(environment, "SGE_TASK_STEPSIZE").value_or(1));
}

std::optional<Said> FromParallel(const Environment& environment) {
  const auto sequence = Read(environment, "PARALLEL_SEQ");
  if (!sequence || *sequence == 0) return std::nullopt;
  return Said{*sequence - 1, 0, Setting("PARALLEL_SEQ", *sequence)};
}

struct Source {
  std::string_view name, title;
  std::optional<Said> (*ask)(const Environment&);
};

constexpr Source kSources[] = {
    {"slurm", "Slurm", &FromSlurm},          {"openmpi", "Open MPI", &FromOpenMpi},       {"mpich", "MPICH (PMI)", &FromMpich},
    {"jsrun", "jsrun", &FromJsrun},          {"kubernetes", "Kubernetes", &FromKubernetes}, {"aws-batch", "AWS Batch", &FromAwsBatch},
    {"lsf", "LSF", &FromLsf},                {"pbs", "PBS", &FromPbs},                    {"sge", "SGE", &FromSge},
    {"parallel", "GNU parallel", &FromParallel},
};

std::optional<Shard> ReadShard(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto number = ReadUnsigned(text.substr(0, slash)), count = ReadUnsigned(text.substr(slash + 1));
  if (!number || !count || *number < 1 || *number > *count || *count > (std::uint64_t{1} << 32)) return std::nullopt;
  return Shard{*number, *count};
}

}  // namespace

std::vector<std::string_view> ShardSources() {
  std::vector<std::string_view> names;
  for (const Source& source : kSources) names.push_back(source.name);
  return names;
}

ShardChoice ChooseShard(std::string_view text, std::optional<std::uint64_t> count, const Environment& environment) {
  const std::string allowed = "K/N with K from 1 to N, auto, or one of " + Choices(ShardSources());
  if (const auto shard = ReadShard(text)) {
    if (count && *count != shard->count) Fail("found " + std::string(text) + " and --shards " + std::to_string(*count) + "; allowed: the same number of shards");
    return {*shard, ""};
  }
  struct Answer {
    const Source* source;
    Said said;
  };
  std::vector<Answer> answers;
  bool known = text == "auto";
  for (const Source& source : kSources) {
    if (text != "auto" && text != source.name) continue;
    known = true;
    auto said = source.ask(environment);
    if (!said) continue;
    if (said->count == 0) {
      if (!count) Fail(std::string(source.title) + " (" + said->reason + ") says which one this process is, but not of how many: add --shards N");
      said->count = *count;
      said->reason += " of " + std::to_string(*count);
    }
    if (said->rank >= said->count) Fail(std::string(source.title) + " (" + said->reason + ") is out of range");
    answers.push_back({&source, *said});
  }
  if (!known) Fail("found '" + Printable(text) + "'; allowed: " + allowed);
  // A launcher of one process says nothing where another source speaks of several.
  const bool several = std::any_of(answers.begin(), answers.end(), [](const Answer& a) { return a.said.count > 1; });
  if (several) std::erase_if(answers, [](const Answer& a) { return a.said.count == 1; });
  if (answers.empty()) {
    std::string titles;
    for (const Source& source : kSources) titles += (titles.empty() ? "" : ", ") + std::string(source.title);
    if (text != "auto") Fail("found nothing of " + std::string(text) + " in the environment; allowed: K/N");
    Fail("found no scheduler in the environment (" + titles + "); allowed: K/N");
  }
  const auto show = [](const Answer& a) { return std::string(a.source->title) + " says " + std::to_string(a.said.rank + 1) + "/" + std::to_string(a.said.count) + " (" + a.said.reason + ")"; };
  const Answer& chosen = answers.front();
  for (const Answer& other : answers) {
    if (other.said.rank == chosen.said.rank && other.said.count == chosen.said.count) continue;
    Fail(show(chosen) + ", but " + show(other) + "; say which one counts, as in --shard " + std::string(chosen.source->name));
  }
  if (count && *count != chosen.said.count) Fail(show(chosen) + ", but --shards says " + std::to_string(*count));
  return {{chosen.said.rank + 1, chosen.said.count}, std::string(chosen.source->title) + ": " + chosen.said.reason};
}

}  // namespace scaletrace
