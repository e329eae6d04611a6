// The cases that run for a change. LOOM_GPU_TOUCHED="WORD..." names the ops and suites whose cases
// all run (touched.py prints them). Every other list runs a tenth, at least one case, chosen by
// LOOM_SAMPLE_SEED. All cases run if it is unset or has the word "everything". Reads the
// environment once; prints the number of cases at the end. Not thread-safe.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers/rng.hpp"

namespace loom::core::test {

struct Sample {
  bool asked = false;
  std::string touched;  // words, each between spaces
  uint64_t seed = 0;
  size_t ran = 0, offered = 0;

  Sample() {
    const char* words = std::getenv("LOOM_GPU_TOUCHED");
    const char* number = std::getenv("LOOM_SAMPLE_SEED");
    if (words == nullptr) return;
    touched = " " + std::string(words) + " ";
    asked = touched.find(" everything ") == std::string::npos;
    if (number != nullptr) seed = std::strtoull(number, nullptr, 10);
  }
  void count(size_t run, size_t of) {
    ran += run;
    offered += of;
  }
};

class PrintsSample : public testing::Environment {
 public:
  explicit PrintsSample(const Sample& sample) : sample_(sample) {}
  void TearDown() override {
    std::printf("sample %llu: %zu of %zu cases\n", static_cast<unsigned long long>(sample_.seed),
                sample_.ran, sample_.offered);
  }

 private:
  const Sample& sample_;
};

inline Sample& sample() {
  static Sample* const kSample = [] {
    auto* s = new Sample;  // GoogleTest may use it after static destruction
    if (s->asked) testing::AddGlobalTestEnvironment(new PrintsSample(*s));
    return s;
  }();
  return *kSample;
}
inline const Sample& kSampleIsReadBeforeMain = sample();

inline bool is_sampled(std::string_view name) {
  const Sample& s = sample();
  return s.asked && s.touched.find(" " + std::string(name) + " ") == std::string::npos;
}

// One case in kOneIn of `name` runs: the one whose number has this remainder.
constexpr size_t kOneIn = 10;
inline size_t turn_of(std::string_view name) {
  uint64_t hash = 1469598103934665603U;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return Rng(sample().seed, hash).bits(0) % kOneIn;
}

// Whether case `index` of `count` runs. The sum of a loop's counts is printed.
inline bool has_turn(std::string_view name, size_t index, size_t count) {
  const size_t turns = std::clamp<size_t>(count, 1, kOneIn);
  const bool turn = !is_sampled(name) || index % kOneIn == turn_of(name) % turns;
  sample().count(turn ? 1 : 0, 1);
  return turn;
}

// The cases that run, in their order.
template <class T>
std::vector<T> sampled(std::string_view name, const std::vector<T>& cases) {
  std::vector<T> some;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (has_turn(name, i, cases.size())) some.push_back(cases[i]);
  }
  return some;
}

}  // namespace loom::core::test
