#include "evolution_picture.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "svg.hpp"

namespace loom::cli {
namespace {

constexpr double kPageWidth = 720, kPageLeft = 80, kPageRight = 20;
constexpr double kCurvesTop = 50, kCurvesHeight = 200, kBandsTop = 300, kBandsHeight = 200;
constexpr double kPageHeight = 540;

using History = std::vector<GenerationReport>;

double x_of(size_t i, size_t n) {
  const double share = n < 2 ? 0.5 : static_cast<double>(i) / static_cast<double>(n - 1);
  return kPageLeft + share * (kPageWidth - kPageLeft - kPageRight);
}

std::string colour_of(int64_t species) {
  // Turns of the golden angle: neighbours in time look different.
  return fmt::format("hsl({:.0f},60%,{}%)",
                     std::fmod(static_cast<double>(species) * 137.508, 360.0),
                     species % 2 == 0 ? 62 : 48);
}

// The area between two edges, from left to right and back.
std::string area(const std::vector<double>& upper, const std::vector<double>& lower,
                 const std::string& fill, const std::string& says) {
  std::string points;
  const size_t n = upper.size();
  for (size_t i = 0; i < n; ++i) points += fmt::format("{:.1f},{:.1f} ", x_of(i, n), upper[i]);
  for (size_t i = n; i-- > 0;) points += fmt::format("{:.1f},{:.1f} ", x_of(i, n), lower[i]);
  return fmt::format("<polygon fill=\"{}\" points=\"{}\"><title>{}</title></polygon>\n", fill,
                     points, says);
}

std::string curve(const std::vector<double>& y, const char* colour) {
  std::string points;
  for (size_t i = 0; i < y.size(); ++i)
    points += fmt::format("{:.1f},{:.1f} ", x_of(i, y.size()), y[i]);
  return fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/>\n",
                     colour, points);
}

// Lines and labels of an axis whose low end is at `foot`.
std::string ticks_of(const Axis& axis, double foot, double height) {
  std::string svg;
  for (const double tick : axis.ticks()) {
    const double y = foot - height * axis.share(tick);
    svg +=
        fmt::format("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n",
                    kPageLeft, y, kPageWidth - kPageRight, y);
    svg += svg_text(kPageLeft - 8, y + 4, "end", axis.label(tick));
  }
  return svg;
}

std::string fitness_curves(const History& history) {
  double low = 0, high = 0;
  bool any = false;
  for (const GenerationReport& g : history) {
    for (const double v : {g.worst, g.best}) {
      if (!std::isfinite(v)) continue;
      low = any ? std::min(low, v) : v;
      high = any ? std::max(high, v) : v;
      any = true;
    }
  }
  const Axis axis = round_axis(low, high, 5);
  const double foot = kCurvesTop + kCurvesHeight;
  const auto y_of = [&](double v) {
    return foot - kCurvesHeight * std::clamp(axis.share(v), 0.0, 1.0);
  };
  std::vector<double> best, mean, worst;
  for (const GenerationReport& g : history) {
    best.push_back(y_of(g.best));
    mean.push_back(y_of(g.mean));
    worst.push_back(y_of(g.worst));
  }
  std::string svg =
      area(best, worst, "#dbe7f3", "worst to best") + ticks_of(axis, foot, kCurvesHeight);
  svg += curve(mean, "#7f9fbf") + curve(best, "#1f4e79");
  svg += svg_text(kPageWidth - kPageRight, kCurvesTop - 10, "end", "best", "#1f4e79");
  svg += svg_text(kPageWidth - kPageRight - 36, kCurvesTop - 10, "end", "mean", "#7f9fbf");
  return svg +
         svg_text(kPageWidth - kPageRight - 80, kCurvesTop - 10, "end", "worst to best", "#9ab3cc");
}

// Species in the order of their numbers, one upon the other; one that is gone has no height.
std::string species_bands(const History& history) {
  std::map<int64_t, std::vector<double>> members;
  std::vector<double> all(history.size(), 0.0), below(history.size(), kBandsTop + kBandsHeight);
  for (size_t i = 0; i < history.size(); ++i) {
    for (const SpeciesReport& s : history[i].species) {
      members[s.id].resize(history.size(), 0.0);
      members[s.id][i] = static_cast<double>(s.members);
      all[i] += static_cast<double>(s.members);
    }
  }
  std::string svg;
  for (const auto& [id, counts] : members) {
    std::vector<double> above = below;
    for (size_t i = 0; i < counts.size(); ++i) above[i] -= kBandsHeight * counts[i] / all[i];
    svg += area(above, below, colour_of(id), fmt::format("species {}", id));
    below = above;
  }
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0})
    svg += svg_text(kPageLeft - 8, kBandsTop + kBandsHeight * (1 - share) + 4, "end",
                    fmt::format("{:.0f} %", share * 100));
  return svg + svg_text(kPageLeft, kBandsTop - 10, "start",
                        fmt::format("share of the population in each of {} species; {} networks",
                                    members.size(), all.back()));
}

}  // namespace

std::string evolution_svg(const History& history, const std::string& title) {
  std::string svg = svg_open(kPageWidth, kPageHeight, title);
  if (history.empty()) return svg + "</svg>\n";
  svg += svg_text(kPageLeft, kCurvesTop - 10, "start", "fitness");
  svg += fitness_curves(history) + species_bands(history);
  const double foot = kBandsTop + kBandsHeight + 20;
  const size_t step = label_step(history.size(), 10);
  for (size_t i = 0; i < history.size(); ++i) {
    if (history[i].generation % static_cast<int64_t>(step) == 0)
      svg += svg_text(x_of(i, history.size()), foot, "middle",
                      fmt::format("{}", history[i].generation));
  }
  svg += svg_text(kPageWidth / 2, foot + 18, "middle", "generation");
  return svg + "</svg>\n";
}

}  // namespace loom::cli
