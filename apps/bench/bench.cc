// Times steps inside one process, as tools/bench asks for: one line on standard input starts one measurement, one line with nanoseconds for a step of a run answers it.
//
// usage: scaletrace_bench B D K RUNS STEPS PROFILE [FORMAT [fresh | threads=N]]   N: else as many as it may use processors; RUNS 1: a run with all records; more: a block of runs, `fresh`: each with data of its own that are made within the time
//        scaletrace_bench limits                                       what the processor can do in a nanosecond: fused multiply-adds of f32, multiply-adds in bf16 dots, bytes of a large array
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "base/cpus.h"
#include "kernels/kernels.h"
#include "train/run.h"
#include "train/run_block.h"

namespace scaletrace {
namespace {

double Now() { return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

RunConfig Config(char** sizes, std::int64_t steps, const std::string& profile, const std::string& format) {
  RunConfig config;
  GaussianData data;
  data.samples = std::atoll(sizes[0]);
  data.features = std::atoll(sizes[1]);
  data.outputs = std::atoll(sizes[2]);
  config.data = data;
  config.steps = steps;
  config.precision.profile = profile == "excess" ? Profile::kExcess : Profile::kStrict;
  config.precision.compute = format;
  Sgd sgd;
  sgd.lr = 1e-3f;
  config.optimizer = sgd;
  JaxStep policy;
  policy.growth_interval = 2000;
  config.scaler = policy;
  return config;
}

// The most memory that this process has had; getrusage would count what the process that started it had.
long PeakKilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::atol(line.c_str() + 6);
  }
  return 0;
}

// Runs `measure` once to warm up and then for every line of input.
template <class Measure>
void Serve(const Measure& measure) {
  measure();
  std::puts("ready");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const double ns = measure();
    std::printf("%.4f %ld\n", ns, PeakKilobytes());
    std::fflush(stdout);
  }
}

#if defined(__x86_64__)
// name(): how many of an instruction a nanosecond takes, in fourteen independent chains of it, which its latency does not bound. In assembly, since compilers
// may put the chains through memory.
#define SCALETRACE_CHAIN(instruction, register, n) instruction " %%" register "15, %%" register "14, %%" register #n "\n"
#define SCALETRACE_CHAINS(instruction, register)                                                                                                  \
  SCALETRACE_CHAIN(instruction, register, 0) SCALETRACE_CHAIN(instruction, register, 1) SCALETRACE_CHAIN(instruction, register, 2)                \
  SCALETRACE_CHAIN(instruction, register, 3) SCALETRACE_CHAIN(instruction, register, 4) SCALETRACE_CHAIN(instruction, register, 5)                \
  SCALETRACE_CHAIN(instruction, register, 6) SCALETRACE_CHAIN(instruction, register, 7) SCALETRACE_CHAIN(instruction, register, 8)                \
  SCALETRACE_CHAIN(instruction, register, 9) SCALETRACE_CHAIN(instruction, register, 10) SCALETRACE_CHAIN(instruction, register, 11)              \
  SCALETRACE_CHAIN(instruction, register, 12) SCALETRACE_CHAIN(instruction, register, 13)
#define SCALETRACE_PER_NANOSECOND(name, isa, instruction, register)                                                                               \
  __attribute__((target(isa))) double name() {                                                                                                    \
    constexpr long kTurns = 1000000;                                                                                                              \
    long turns = kTurns;                                                                                                                          \
    const double start = Now();                                                                                                                   \
    asm volatile("vzeroall\n1:\n" SCALETRACE_CHAINS(instruction, register) "dec %0\njnz 1b\n"                                                    \
                 : "+r"(turns)                                                                                                                    \
                 :                                                                                                                                \
                 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",      \
                   "xmm14", "xmm15");                                                                                                             \
    return 14.0 * kTurns / (Now() - start);                                                                                                       \
  }
SCALETRACE_PER_NANOSECOND(Fused8, "avx2,fma", "vfmadd213ps", "ymm")
SCALETRACE_PER_NANOSECOND(Fused16, "avx512f", "vfmadd213ps", "zmm")
SCALETRACE_PER_NANOSECOND(Dots16, "avx512f", "vdpbf16ps", "zmm")

// Multiply-adds of f32 in a nanosecond.
double FusedPerNanosecond() { return __builtin_cpu_supports("avx512f") ? 16 * Fused16() : 8 * Fused8(); }
// Those of bfloat16 in dots; 0 without the instruction.
double DotsPerNanosecond() { return __builtin_cpu_supports("avx512bf16") ? 32 * Dots16() : 0; }
#else
double FusedPerNanosecond() { return 0; }
double DotsPerNanosecond() { return 0; }
#endif

double BytesPerNanosecond() {
  std::vector<double> large(std::size_t{1} << 24, 1.0);  // 128 MB
  const double start = Now();
  double sums[8] = {};
  for (std::size_t i = 0; i < large.size(); i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += large[i + lane];
  }
  const double ns = Now() - start;
  volatile double sink = sums[0];
  (void)sink;
  return static_cast<double>(large.size() * sizeof(double)) / ns;
}

int Main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "limits") == 0) {
    double fused = 0, dots = 0, bytes = 0;
    for (int i = 0; i < 10; ++i) fused = std::max(fused, FusedPerNanosecond());
    for (int i = 0; i < 10; ++i) dots = std::max(dots, DotsPerNanosecond());
    for (int i = 0; i < 5; ++i) bytes = std::max(bytes, BytesPerNanosecond());
    std::printf("%.2f %.2f %.2f\n", fused, dots, bytes);
    return 0;
  }
  if (argc < 7) {
    std::fputs("usage: scaletrace_bench B D K RUNS STEPS PROFILE [FORMAT [fresh | threads=N]] | limits\n", stderr);
    return 2;
  }
  const auto runs = static_cast<std::size_t>(std::atoll(argv[4]));
  const std::int64_t steps = std::atoll(argv[5]);
  const std::string format = argc > 7 ? argv[7] : "bfloat16";
  const bool fresh = argc > 8 && std::strcmp(argv[8], "fresh") == 0;
  const int threads = argc > 8 && std::strncmp(argv[8], "threads=", 8) == 0 ? std::max(std::atoi(argv[8] + 8), 1) : UsableCpus();
  const KernelTable& kernels = CompiledKernels().front();
  if (runs == 1) {
    // From the start each time; the data are made and packed outside of the measured time.
    const RunConfig config = Config(argv + 1, steps, argv[6], format);
    std::vector<StepRecord> records(static_cast<std::size_t>(steps));
    Serve([&] {
      Run run(config, kernels, threads);
      const double start = Now();
      run.Steps(records);
      const double ns = Now() - start;
      if (run.summary().skipped > 0) {
        std::fputs("scaletrace_bench: this run skips steps, which cost less than others\n", stderr);
        std::exit(1);
      }
      return ns / static_cast<double>(steps);
    });
    return 0;
  }
  std::vector<RunConfig> configs(runs, Config(argv + 1, steps, argv[6], format));
  for (std::size_t i = 0; i < runs; ++i) configs[i].seed = fresh ? i : i % 16;
  Serve([&] {
    std::size_t together = 0;
    const double start = Now();
    const std::vector<RunOutcome> outcomes = RunBlock(configs, kernels, [] { return true; }, &together);
    const double ns = Now() - start;
    if (outcomes.size() != runs || together != runs) {
      std::fputs("scaletrace_bench: these runs do not share lanes\n", stderr);
      std::exit(1);
    }
    return ns / static_cast<double>(steps) / static_cast<double>(runs);
  });
  return 0;
}

}  // namespace
}  // namespace scaletrace

int main(int argc, char** argv) { return scaletrace::Main(argc, argv); }
