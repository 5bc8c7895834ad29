// Parts: what is whole counts, what overlaps counts once, and the rows come out in order.
#include "sweep/parts.h"

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "sweep/summarize.h"
#include "tests/catch.h"
#include "tests/data/temporary_folder.h"

namespace scaletrace {
namespace {

std::string Rows(std::uint64_t first, std::uint64_t end, std::uint64_t dropped = 1'000'000) {
  std::string rows;
  for (std::uint64_t run = first; run < end; ++run) {
    if (run != dropped) rows += std::to_string(run) + ",x" + std::to_string(run) + "\n";
  }
  return rows;
}

struct Folder {
  TemporaryFolder temporary;
  SweepFolder folder{temporary.path()};
  PlanFacts facts;
  Folder() {
    std::filesystem::create_directories(folder.parts);
    facts.hash = std::string(64, 'a');
    facts.runs = 20;
    facts.header = "run,x";
  }
};

TEST_CASE("Overlapping records of several parts make each row once, in order") {
  Folder f;
  PartWriter one(f.folder, f.facts.hash, {1, 2}), two(f.folder, f.facts.hash, {2, 2}), three(f.folder, f.facts.hash, {1, 1});
  one.Append(5, 10, 1, Rows(5, 10));
  two.Append(15, 20, 0, Rows(15, 20));
  one.Append(0, 6, 0, Rows(0, 6));
  const DoneRuns some = ReadParts(f.folder, f.facts);
  CHECK(some.Count() == 15);
  CHECK(some.Failed() == 1);
  CHECK(some.Missing(0, 20) == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{10, 15}});
  CHECK(some.Missing(12, 13) == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{12, 13}});
  CHECK(some.Missing(0, 10).empty());
  CHECK_THROWS_AS(WriteResults(f.folder, f.facts, some), InternalError);
  three.Append(8, 17, 0, Rows(8, 17));
  const DoneRuns all = ReadParts(f.folder, f.facts);
  CHECK(all.Count() == 20);
  CHECK(all.parts.size() == 3);
  WriteResults(f.folder, f.facts, all);
  CHECK(ReadFile(f.folder.results, 10000) == "run,x\n" + Rows(0, 20));
  std::string rows;
  ForEachRow(all, [&](std::string_view row) { rows += std::string(row) + "\n"; });
  CHECK(rows == Rows(0, 20));
}

TEST_CASE("Runs that a condition dropped are done without a row, alone and in overlaps") {
  Folder f;
  PartWriter part(f.folder, f.facts.hash, {1, 1});
  part.Append(0, 8, 0, Rows(0, 8, 7));
  part.Append(5, 12, 0, Rows(5, 12, 7));
  part.Append(12, 14, 0, "");
  part.Append(13, 20, 0, Rows(13, 20, 13));
  const DoneRuns done = ReadParts(f.folder, f.facts);
  CHECK(done.Missing(0, 20).empty());
  WriteResults(f.folder, f.facts, done);
  CHECK(ReadFile(f.folder.results, 10000) == "run,x\n" + Rows(0, 7) + Rows(8, 12) + Rows(14, 20));
}

TEST_CASE("Any cut and any changed byte of a part leaves the records before it, and no others") {
  Folder f;
  std::string path;
  {
    PartWriter part(f.folder, f.facts.hash, {3, 7});
    for (std::uint64_t run = 0; run < 4; ++run) part.Append(run, run + 1, 0, Rows(run, run + 1));
    path = part.path();
  }
  const std::string good = ReadFile(path, 10000);
  const auto count_of = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    const DoneRuns done = ReadParts(f.folder, f.facts);
    std::uint64_t next = 0;
    for (const DoneRange& range : done.ranges) CHECK(range.first == next++);  // a prefix
    return done.Count();
  };
  CHECK(count_of(good) == 4);
  const std::size_t head = good.find('\n') + 1, record = (good.size() - head) / 4;
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    CHECK(count_of(good.substr(0, cut)) == (cut < head ? 0 : (cut - head) / record));
    if (cut < head) continue;
    std::string changed = good;
    changed[cut] ^= 4;
    CHECK(count_of(changed) == (cut - head) / record);
  }
}

TEST_CASE("Parts of two sweeps are not mixed") {
  Folder f;
  PartWriter part(f.folder, std::string(64, 'b'), {1, 1});
  part.Append(0, 1, 0, Rows(0, 1));
  CHECK_THROWS_AS(ReadParts(f.folder, f.facts), InputError);
}

TEST_CASE("Cells with commas, quotes and nothing survive a round trip") {
  const std::vector<std::string> cells = {"", "a,b", "say \"x\"", "[1, 2]", "plain", ""};
  std::string line;
  for (const std::string& cell : cells) {
    if (&cell != &cells.front()) line += ',';
    AppendCsvCell(cell, line);
  }
  std::vector<std::string> read;
  SplitCsv(line, read);
  CHECK(read == cells);
}

}  // namespace
}  // namespace scaletrace
