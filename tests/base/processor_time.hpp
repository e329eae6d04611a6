// Durations for tests, in processor time, which other programs do not lengthen.
#pragma once

#include <ctime>

namespace loom::core::test {

// Seconds that `work` takes, of all threads of this process.
template <class Work>
double processor_seconds(Work&& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace loom::core::test
