// Which share a process has, from made-up environments of every scheduler.
#include "sweep/shard.h"

#include <map>
#include <set>

#include "base/error.h"
#include "sweep/sweep.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

using Variables = std::map<std::string, std::string>;

ShardChoice Choose(const std::string& text, const Variables& variables, std::optional<std::uint64_t> count = std::nullopt) {
  return ChooseShard(text, count, [&](const std::string& name) {
    const auto it = variables.find(name);
    return it == variables.end() ? std::nullopt : std::optional(it->second);
  });
}

std::string MessageOf(const std::string& text, const Variables& variables, std::optional<std::uint64_t> count = std::nullopt) {
  try {
    return "no error: " + Choose(text, variables, count).shard.Text();
  } catch (const InputError& e) {
    return e.what();
  }
}

const Variables kArray = {{"SLURM_ARRAY_TASK_ID", "7"}, {"SLURM_ARRAY_TASK_MIN", "3"}, {"SLURM_ARRAY_TASK_MAX", "11"}, {"SLURM_ARRAY_TASK_STEP", "4"}, {"SLURM_ARRAY_TASK_COUNT", "3"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "8"}};

Variables With(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

TEST_CASE("Each scheduler's variables give the share that they mean") {
  const struct {
    Variables variables;
    std::optional<std::uint64_t> count;
    const char* shard;
  } kCases[] = {
      {kArray, std::nullopt, "2/3"},
      {With(kArray, {{"SLURM_STEP_NUM_TASKS", "5"}, {"SLURM_PROCID", "4"}}), std::nullopt, "10/15"},
      {{{"SLURM_STEP_NUM_TASKS", "5"}, {"SLURM_PROCID", "0"}}, std::nullopt, "1/5"},
      {With(kArray, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), std::nullopt, "2/3"},
      {kOpenMpi, std::nullopt, "4/8"},
      {{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, std::nullopt, "1/2"},
      {{{"JSM_NAMESPACE_RANK", "1"}, {"JSM_NAMESPACE_SIZE", "2"}}, std::nullopt, "2/2"},
      {{{"JOB_COMPLETION_INDEX", "0"}}, 3, "1/3"},
      {{{"AWS_BATCH_JOB_ARRAY_INDEX", "9"}, {"AWS_BATCH_JOB_ARRAY_SIZE", "10"}}, std::nullopt, "10/10"},
      {{{"LSB_JOBINDEX", "3"}, {"LSB_JOBINDEX_END", "5"}, {"LSB_JOBINDEX_STEP", "2"}}, std::nullopt, "2/3"},
      {{{"LSB_JOBINDEX", "0"}, {"PBS_ARRAY_INDEX", "4"}}, 4, "4/4"},
      {{{"PBS_ARRAYID", "1"}}, 4, "1/4"},
      {{{"SGE_TASK_ID", "5"}, {"SGE_TASK_FIRST", "1"}, {"SGE_TASK_LAST", "9"}, {"SGE_TASK_STEPSIZE", "4"}}, std::nullopt, "2/3"},
      {{{"SGE_TASK_ID", "undefined"}, {"PARALLEL_SEQ", "2"}}, 2, "2/2"},
      // Two that agree, and a launcher of one process within an array.
      {With(kOpenMpi, {{"PMI_RANK", "3"}, {"PMI_SIZE", "8"}}), std::nullopt, "4/8"},
      {With(kArray, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}), std::nullopt, "2/3"},
      {{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}, std::nullopt, "1/1"},
  };
  for (const auto& c : kCases) {
    INFO(c.shard);
    const ShardChoice choice = Choose("auto", c.variables, c.count);
    CHECK(choice.shard.Text() == c.shard);
    CHECK_FALSE(choice.reason.empty());
  }
  CHECK(Choose("3/8", kArray).shard == Shard{3, 8});
  CHECK(Choose("3/8", {}).reason.empty());
}

TEST_CASE("What is missing, contradictory or broken is refused in a sentence") {
  CHECK(MessageOf("auto", {}).find("found no scheduler") != std::string::npos);
  CHECK(MessageOf("auto", {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).find("found no scheduler") != std::string::npos);
  CHECK(MessageOf("auto", With(kArray, kOpenMpi)).find("Slurm says 2/3 (SLURM_ARRAY_TASK_ID=7 of 3-11 by 4), but Open MPI says 4/8 (OMPI_COMM_WORLD_RANK=3 of 8); say which one") !=
        std::string::npos);
  CHECK(Choose("openmpi", With(kArray, kOpenMpi)).shard.Text() == "4/8");
  CHECK(MessageOf("sge", kOpenMpi).find("found nothing of sge") != std::string::npos);
  CHECK(MessageOf("auto", {{"JOB_COMPLETION_INDEX", "0"}}).find("add --shards N") != std::string::npos);
  CHECK(MessageOf("auto", {{"JOB_COMPLETION_INDEX", "3"}}, 3).find("out of range") != std::string::npos);
  CHECK(MessageOf("auto", {{"PBS_ARRAY_INDEX", "0"}}, 3).find("number the array from 1") != std::string::npos);
  CHECK(MessageOf("auto", kOpenMpi, 9).find("but --shards says 9") != std::string::npos);
  CHECK(MessageOf("auto", With(kArray, {{"SLURM_ARRAY_TASK_COUNT", "2"}})).find("not evenly apart") != std::string::npos);
  CHECK(MessageOf("auto", {{"OMPI_COMM_WORLD_RANK", "0"}}).find("OMPI_COMM_WORLD_SIZE is not") != std::string::npos);
  CHECK(MessageOf("auto", {{"OMPI_COMM_WORLD_RANK", "x"}}).find("allowed: a whole number") != std::string::npos);
  CHECK(MessageOf("auto", {{"AWS_BATCH_JOB_ARRAY_INDEX", "2"}, {"AWS_BATCH_JOB_ARRAY_SIZE", "2"}}).find("out of range") != std::string::npos);
  for (const char* text : {"", "0/2", "3/2", "1/0", "1/", "/2", "1/2/3", "-1/2", "1.0/2", "Auto", "slurm,sge", "1/99999999999"}) CHECK(MessageOf(text, {}).find("no error") == std::string::npos);
  CHECK(MessageOf("1/2", {}, 3).find("the same number of shards") != std::string::npos);
}

TEST_CASE("Every run belongs to one shard, whatever the block and however many there are") {
  for (const std::uint64_t runs : {1u, 7u, 64u, 1000u, 1023u}) {
    for (const std::uint64_t block : {1u, 2u, 8u, 64u}) {
      for (const std::uint64_t count : {1u, 2u, 3u, 7u, 100u, 2000u}) {
        PlanFacts facts;
        facts.runs = runs;
        facts.block = block;
        std::uint64_t sum = 0;
        for (std::uint64_t number = 1; number <= count; ++number) {
          const Shard shard{number, count};
          std::uint64_t own = 0;
          for (std::uint64_t run = 0; run < runs; ++run) own += shard.Has(run / block) ? 1 : 0;
          CHECK(RunsOfShard(facts, shard) == own);
          sum += own;
        }
        CHECK(sum == runs);
      }
    }
  }
}

}  // namespace
}  // namespace scaletrace
