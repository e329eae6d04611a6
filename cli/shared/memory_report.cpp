#include "memory_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "../plots/spread_picture.hpp"
#include "console.hpp"
#include "loom/files.hpp"

namespace loom::cli {
namespace {

constexpr double kSampleSeconds = 0.05;
constexpr size_t kColumns = 60;  // of the chart
constexpr double kMemoryMegabyte = 1 << 20;

struct MemorySeries {
  const char* name;
  int64_t (*bytes)(const MemorySample&);
};
constexpr MemorySeries kMemorySeries[] = {
    {"process", [](const MemorySample& s) { return s.resident; }},
    {"weights", [](const MemorySample& s) { return s.use.weights; }},
    {"sessions", [](const MemorySample& s) { return s.use.sessions; }},
    {"training", [](const MemorySample& s) { return s.use.training; }},
    {"mapped", [](const MemorySample& s) { return s.use.mapped; }},
    {"GPU", [](const MemorySample& s) { return s.use.device; }},
};

// The sample that is current at the time of each column.
std::vector<const MemorySample*> by_time(const std::vector<MemorySample>& samples) {
  std::vector<const MemorySample*> out;
  size_t at = 0;
  for (size_t i = 0; i < kColumns; ++i) {
    const double time = samples.back().seconds * static_cast<double>(i) / (kColumns - 1);
    while (at + 1 < samples.size() && samples[at + 1].seconds <= time) ++at;
    out.push_back(&samples[at]);
  }
  out.back() = &samples.back();
  return out;
}

std::vector<SpreadCurve> memory_curves(const std::vector<MemorySample>& samples) {
  const std::vector<const MemorySample*> columns = by_time(samples);
  std::vector<SpreadCurve> out;
  for (const MemorySeries& series : kMemorySeries) {
    SpreadCurve curve;
    double most = 0;
    for (const MemorySample* s : columns) {
      curve.mean.push_back(static_cast<double>(series.bytes(*s)) / kMemoryMegabyte);
      most = std::max(most, curve.mean.back());
    }
    if (most == 0) continue;
    curve.name = fmt::format("{} (peak {:.1f} MB)", series.name, most);
    curve.low = curve.high = curve.mean;
    out.push_back(std::move(curve));
  }
  return out;
}

CurveAxes memory_axes(const std::vector<SpreadCurve>& curves,
                      const std::vector<MemorySample>& samples) {
  CurveAxes axes;
  axes.title = "Memory";
  axes.x = "seconds";
  axes.first = 0;
  axes.step = samples.back().seconds / (kColumns - 1);
  axes.y = "MB";
  for (const SpreadCurve& c : curves)
    axes.high = std::max(axes.high, 1.05 * *std::ranges::max_element(c.mean));
  for (const MemorySample& s : samples) {
    if (s.label.empty() || samples.back().seconds == 0) continue;
    axes.marks.push_back(s.seconds / samples.back().seconds * (kColumns - 1));
  }
  return axes;
}

std::string memory_table(const std::vector<MemorySample>& samples) {
  std::string text = fmt::format("{:>9}  {:<20}", "seconds", "after");
  for (const MemorySeries& series : kMemorySeries) text += fmt::format("{:>10}", series.name);
  text += "   MB\n";
  for (const MemorySample& s : samples) {
    if (s.label.empty()) continue;
    text += fmt::format("{:>9.2f}  {:<20}", s.seconds, s.label);
    for (const MemorySeries& series : kMemorySeries)
      text += fmt::format("{:>10.1f}", static_cast<double>(series.bytes(s)) / kMemoryMegabyte);
    text += "\n";
  }
  return text;
}

}  // namespace

void MemoryReport::add(const Command& verb) {
  verb.option("--memory-history", path_,
              "Write what memory held while it ran: .json, or .svg as a plot");
}

void MemoryReport::add_to(Outputs& outputs) const {
  outputs.file("--memory-history", path_, {".json", ".svg"}, "what memory held");
}

Status MemoryReport::check(Outputs outputs) const {
  add_to(outputs);
  return outputs.check();
}

void MemoryReport::begin(const Engine& engine) {
  if (path_.empty()) return;
  Result<MemoryHistory> history = MemoryHistory::begin(engine, {.every = kSampleSeconds});
  if (history.ok()) history_ = std::make_shared<MemoryHistory>(std::move(*history));
}

void MemoryReport::mark(std::string_view label) const {
  if (history_ != nullptr) history_->mark(label);
}

Status MemoryReport::finish(std::string_view session, bool quiet) {
  if (history_ == nullptr) return {};
  const std::vector<MemorySample> samples = history_->stop();
  history_.reset();
  const std::vector<SpreadCurve> curves = memory_curves(samples);
  const CurveAxes axes = memory_axes(curves, samples);
  if (!quiet && stderr_is_terminal()) {
    const std::string chart = spread_curves_text(curves, axes);
    fmt::print(stderr, "{}{}", chart, memory_table(samples));
    for (const std::string& line : memory_findings(samples)) note(line);
  }
  const std::string text = path_.ends_with(".svg") ? spread_curves_svg(curves, axes)
                                                   : memory_json(session, samples) + "\n";
  return write_file(path_, text);
}

}  // namespace loom::cli
