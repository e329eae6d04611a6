// Where time went, by name: ops on a CPU, kernels on a GPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/webgpu/webgpu.hpp"
#include "lab.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::cli {

struct ProfileRow {
  std::string name;
  int64_t calls = 0;  // per repetition, as the time
  double microseconds = 0, share = 0;
};

// Longest first.
std::vector<ProfileRow> profile_rows(const OpProfile& profile, int64_t reps);
std::vector<ProfileRow> profile_rows(const std::vector<webgpu::KernelTime>& times, int64_t reps);
// Adds `more` to `times`, kernel by kernel; null: they are dropped.
void add_times(const std::vector<webgpu::KernelTime>& more, std::vector<webgpu::KernelTime>* times);

void print_profile(std::string_view title, const std::vector<ProfileRow>& rows);
Json profile_json(const std::vector<ProfileRow>& rows);

}  // namespace loom::core::cli
