#include "scores.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "../plots/svg.hpp"

namespace loom::cli {
namespace {

constexpr size_t kMaxColumns = 20, kLongestName = 16;

std::string name_of(const Evaluation& e, size_t index) {
  return printable(e.classes[index].name, kLongestName);
}

size_t longest_name(const Evaluation& e, size_t least) {
  for (size_t c = 0; c < e.classes.size(); ++c) least = std::max(least, name_of(e, c).size());
  return least;
}

ClassScore mean_of(const std::vector<ClassScore>& metrics) {
  ClassScore mean;
  const auto n = static_cast<double>(metrics.size());
  for (const ClassScore& m : metrics) {
    mean.samples += m.samples;
    mean.precision += m.precision / n;
    mean.recall += m.recall / n;
    mean.f1 += m.f1 / n;
  }
  return mean;
}

std::string metrics_line(const std::string& name, const ClassScore& m, size_t width) {
  return fmt::format("{:<{}}  {:>9.4f}  {:>9.4f}  {:>9.4f}  {:>9}\n", name, width, m.precision,
                     m.recall, m.f1, m.samples);
}

}  // namespace

std::string classes_table(const Evaluation& e) {
  if (e.confusion.empty()) return {};
  const std::vector<ClassScore>& metrics = e.classes;
  const size_t width = longest_name(e, 5);
  std::string text = fmt::format("{:<{}}  {:>9}  {:>9}  {:>9}  {:>9}\n", "class", width,
                                 "precision", "recall", "F1", "samples");
  for (size_t c = 0; c < metrics.size(); ++c)
    text += metrics_line(name_of(e, c), metrics[c], width);
  return text + metrics_line("mean", mean_of(metrics), width);
}

std::string confusion_table(const Evaluation& e) {
  if (e.confusion.empty() || e.confusion.size() > kMaxColumns) return {};
  const size_t first = longest_name(e, 9);
  size_t width = longest_name(e, 4);
  for (const auto& row : e.confusion) {
    for (const int64_t n : row) width = std::max(width, fmt::format("{}", n).size());
  }
  std::string text = fmt::format("{:<{}}", "called ->", first);
  for (size_t c = 0; c < e.confusion.size(); ++c)
    text += fmt::format("  {:>{}}", name_of(e, c), width);
  text += "\n";
  for (size_t c = 0; c < e.confusion.size(); ++c) {
    text += fmt::format("{:<{}}", name_of(e, c), first);
    for (const int64_t n : e.confusion[c]) text += fmt::format("  {:>{}}", n, width);
    text += "\n";
  }
  return text;
}

Json classes_json(const Evaluation& e) {
  const std::vector<ClassScore>& metrics = e.classes;
  Json list = Json::array();
  for (size_t c = 0; c < metrics.size(); ++c) {
    Json item = Json::object();
    item.add("name", Json::string(metrics[c].name));
    item.add("samples", Json::integer(metrics[c].samples));
    item.add("precision", Json::real(metrics[c].precision));
    item.add("recall", Json::real(metrics[c].recall));
    item.add("f1", Json::real(metrics[c].f1));
    list.push(std::move(item));
  }
  return list;
}

Json confusion_json(const Evaluation& e) {
  Json rows = Json::array();
  for (const auto& row : e.confusion) {
    Json list = Json::array();
    for (const int64_t n : row) list.push(Json::integer(n));
    rows.push(std::move(list));
  }
  return rows;
}

std::string confusion_svg(const Evaluation& e, const std::string& title) {
  constexpr double kLeft = 130, kTop = 70, kRight = 20, kBottom = 20;
  const auto n = static_cast<double>(e.confusion.size());
  const double cell = std::clamp(480.0 / n, 3.0, 60.0);
  std::string svg = svg_open(kLeft + n * cell + kRight, kTop + n * cell + kBottom, title);
  const bool readable = cell >= 14;
  for (size_t r = 0; r < e.confusion.size(); ++r) {
    const auto total = static_cast<double>(
        std::accumulate(e.confusion[r].begin(), e.confusion[r].end(), int64_t{0}));
    const double y = kTop + static_cast<double>(r) * cell;
    if (readable) svg += svg_text(kLeft - 6, y + cell / 2 + 4, "end", name_of(e, r));
    if (readable) {
      svg += svg_text(kLeft + (static_cast<double>(r) + 0.5) * cell, kTop - 6, "middle",
                      name_of(e, r).substr(0, static_cast<size_t>(cell / 7)));
    }
    for (size_t c = 0; c < e.confusion.size(); ++c) {
      const double share = total > 0 ? static_cast<double>(e.confusion[r][c]) / total : 0;
      const int light = static_cast<int>(255 - 200 * share);
      const double x = kLeft + static_cast<double>(c) * cell;
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
          "fill=\"rgb({},{},255)\" stroke=\"#eeeeee\"/>\n",
          x, y, cell, cell, light, light);
      if (cell >= 24 && e.confusion[r][c] > 0) {
        svg += svg_text(x + cell / 2, y + cell / 2 + 4, "middle",
                        fmt::format("{}", e.confusion[r][c]), share > 0.6 ? "#ffffff" : "#333333");
      }
    }
  }
  svg += svg_text(kLeft, kTop - 26, "start", "columns: called; rows: are");
  return svg + "</svg>\n";
}

std::string scatter_svg(std::span<const std::pair<float, float>> points, const std::string& title) {
  constexpr double kSide = 460, kLeft = 70, kTop = 50;
  double low = 0, high = 1;
  if (!points.empty()) low = high = static_cast<double>(points[0].first);
  for (const auto& [target, output] : points) {
    low = std::min({low, static_cast<double>(target), static_cast<double>(output)});
    high = std::max({high, static_cast<double>(target), static_cast<double>(output)});
  }
  const Axis axis = round_axis(low, high, 6);
  const auto x = [&](double v) { return kLeft + axis.share(v) * kSide; };
  const auto y = [&](double v) { return kTop + kSide - axis.share(v) * kSide; };
  std::string svg = svg_open(kLeft + kSide + 30, kTop + kSide + 60, title);
  svg += fmt::format(
      "<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{2}\" fill=\"none\" stroke=\"#333333\"/>\n"
      "<line x1=\"{3:.1f}\" y1=\"{4:.1f}\" x2=\"{5:.1f}\" y2=\"{6:.1f}\" stroke=\"#bbbbbb\"/>\n",
      kLeft, kTop, kSide, x(axis.low), y(axis.low), x(axis.high), y(axis.high));
  for (const auto& [target, output] : points) {
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"#3366cc\" fill-opacity=\"0.5\"/>\n",
        x(static_cast<double>(target)), y(static_cast<double>(output)));
  }
  for (const double tick : axis.ticks()) {
    svg += svg_text(x(tick), kTop + kSide + 18, "middle", axis.label(tick));
    svg += svg_text(kLeft - 6, y(tick) + 4, "end", axis.label(tick));
  }
  svg += svg_text(kLeft + kSide / 2, kTop + kSide + 40, "middle", "target");
  return svg + svg_text(8, kTop - 10, "start", "output") + "</svg>\n";
}

}  // namespace loom::cli
