#include "profile.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace loom::core::cli {
namespace {

void sort_rows(std::vector<ProfileRow>& rows) {
  double total = 0;
  for (const ProfileRow& row : rows) total += row.microseconds;
  for (ProfileRow& row : rows) row.share = total > 0 ? row.microseconds / total : 0;
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.microseconds > b.microseconds; });
}

}  // namespace

std::vector<ProfileRow> profile_rows(const OpProfile& profile, int64_t reps) {
  std::vector<ProfileRow> rows;
  for (int op = 0; op < kOpCount; ++op) {
    if (profile.calls[op] == 0) continue;
    rows.push_back(
        {std::string(op_name(static_cast<OpId>(op))), profile.calls[op] / reps,
         static_cast<double>(profile.nanoseconds[op]) / 1000.0 / static_cast<double>(reps), 0});
  }
  sort_rows(rows);
  return rows;
}

std::vector<ProfileRow> profile_rows(const std::vector<webgpu::KernelTime>& times, int64_t reps) {
  std::vector<ProfileRow> rows;
  for (const webgpu::KernelTime& time : times) {
    rows.push_back(
        {time.name, time.dispatches / reps, time.microseconds / static_cast<double>(reps), 0});
  }
  sort_rows(rows);
  return rows;
}

void add_times(const std::vector<webgpu::KernelTime>& more,
               std::vector<webgpu::KernelTime>* times) {
  if (times == nullptr) return;
  for (const webgpu::KernelTime& time : more) {
    const auto known = std::find_if(times->begin(), times->end(),
                                    [&](const auto& other) { return other.name == time.name; });
    if (known == times->end()) {
      times->push_back(time);
    } else {
      known->dispatches += time.dispatches;
      known->microseconds += time.microseconds;
    }
  }
}

void print_profile(std::string_view title, const std::vector<ProfileRow>& rows) {
  write_out(fmt::format("{}:\n", title));
  for (const ProfileRow& row : rows) {
    write_out(fmt::format("  {:<20} {:>7} calls {:>10.1f} us {:>6.1f} %\n", row.name, row.calls,
                          row.microseconds, row.share * 100));
  }
}

Json profile_json(const std::vector<ProfileRow>& rows) {
  Json list = Json::array();
  for (const ProfileRow& row : rows) {
    list.push(JsonObject()
                  .set("op", row.name)
                  .set("calls", row.calls)
                  .set("microseconds", row.microseconds)
                  .set("share", row.share)
                  .value());
  }
  return list;
}

}  // namespace loom::core::cli
