// loom bench llm --streams: the speed of several texts together, compared with one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/engine/impl.hpp"
#include "lab.hpp"

namespace loom::core::cli {

struct StreamsBench {
  std::vector<int64_t> streams;  // each is measured
  int64_t prefill = 0, decode = 1;
  int reps = 1;
  bool profile = false, json = false;
  std::string shape;
  DType cache = DType::f32;  // of keys and values
};

// Prints the rates, and returns the exit code.
int bench_streams(const Engine& engine, const Model& model, const StreamsBench& bench);

}  // namespace loom::core::cli
