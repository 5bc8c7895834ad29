// A scaler of one's own, held to the trajectory of a public one: `outside CASE_FOLDER SCRATCH_FOLDER`. Prints what it found, one line a check.
#include <scaletrace/testing.h>

#include <iostream>

namespace st = scaletrace::testing;

// PyTorch's rule, or with late = 1 one that grows a step late.
st::Trajectory MyScaler(int late) {
  st::Trajectory mine({"step", "loss_scale", "grads_finite"});
  float scale = 1024;
  int good = 0;
  for (int step = 0; step < 60; ++step) {
    const bool finite = step % 20 != 13;
    mine.Add({step, scale, finite});
    good = finite ? good + 1 : 0;
    if (!finite) scale /= 2;
    if (good == 5 + late) scale *= 2, good = 0;
  }
  return mine;
}

int main(int, char** argv) {
  const std::string folder = argv[1], scratch = argv[2];
  st::Options write;
  write.update = true;
  std::cout << "simulated " << st::Compare(st::Simulate(folder, {"step", "loss_scale", "grads_finite"}), MyScaler(0)) << "\n";
  std::cout << "late " << st::Compare(st::Simulate(folder, {"step", "loss_scale"}), MyScaler(1)) << "\n";
  std::cout << "written " << st::Expect(MyScaler(0), scratch + "/mine.csv", write) << "\n";
  std::cout << "again " << st::Expect(MyScaler(0), scratch + "/mine.csv") << "\n";
  std::cout << "case " << st::CheckCase(folder, write) << " and " << st::CheckCase(folder) << " and " << st::ExpectCase(MyScaler(0), folder) << "\n";
  std::cout << "missing " << st::Expect(MyScaler(0), scratch + "/none.csv") << "\n";
}
