#include "spread_picture.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "loom/evaluation.hpp"
#include "svg.hpp"

namespace loom::cli {
namespace {

constexpr double kSpreadWidth = 720, kSpreadLeft = 190, kSpreadRight = 30, kSpreadTop = 50;
constexpr const char* kSpreadColours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e",
                                          "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"};

const char* spread_colour(size_t i) {
  return kSpreadColours[i % std::size(kSpreadColours)];
}

double x_at(const Axis& scale, double v) {
  const double share = std::clamp(scale.share(v), 0.0, 1.0);
  return kSpreadLeft + share * (kSpreadWidth - kSpreadLeft - kSpreadRight);
}

Axis axis_of(const std::vector<SpreadRow>& rows, const std::string& what) {
  std::vector<double> all;
  for (const SpreadRow& r : rows) all.insert(all.end(), r.values.begin(), r.values.end());
  const Spread s = spread_of(all);
  if (s.count == 0) return {};
  return round_axis(s.min, s.max, 5, what == "accuracy");
}

std::string stroke(double x1, double y1, double x2, double y2, const char* colour, double width) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
      "stroke-width=\"{}\"/>\n",
      x1, y1, x2, y2, colour, width);
}

// Runs as dots, the deviation as a bar around the mean.
std::string row_svg(const SpreadRow& row, const Axis& scale, double y, const char* colour) {
  const Spread s = spread_of(row.values);
  std::string svg = svg_text(kSpreadLeft - 12, y + 4, "end", row.name);
  if (s.count == 0) return svg + svg_text(kSpreadLeft, y + 4, "start", "no finite value");
  svg +=
      stroke(x_at(scale, s.mean - s.deviation), y, x_at(scale, s.mean + s.deviation), y, colour, 3);
  svg += stroke(x_at(scale, s.mean), y - 9, x_at(scale, s.mean), y + 9, colour, 3);
  for (const double v : row.values) {
    if (!std::isfinite(v)) continue;
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\" fill-opacity=\"0.5\">"
        "<title>{}: {:.6g}</title></circle>\n",
        x_at(scale, v), y, colour, escaped(row.name), v);
  }
  return svg;
}

size_t longest_name(const std::vector<std::string>& names) {
  size_t most = 4;
  for (const std::string& n : names) most = std::max(most, n.size());
  return std::min<size_t>(most, 32);
}

std::string cut_name(const std::string& name, size_t width) {
  const std::string cut = name.size() > width ? name.substr(0, width - 2) + ".." : name;
  return fmt::format("{:<{}}", cut, width);
}

}  // namespace

std::string spread_rows_svg(const std::vector<SpreadRow>& rows, const std::string& title,
                            const std::string& what) {
  constexpr double kRow = 30;
  const Axis scale = axis_of(rows, what);
  const double low = kSpreadTop + kRow * static_cast<double>(rows.size());
  std::string svg = svg_open(kSpreadWidth, low + 50, title);
  for (const double v : scale.ticks()) {
    svg += stroke(x_at(scale, v), kSpreadTop - 10, x_at(scale, v), low, "#dddddd", 1);
    svg += svg_text(x_at(scale, v), low + 16, "middle", scale.label(v));
  }
  for (size_t i = 0; i < rows.size(); ++i)
    svg += row_svg(rows[i], scale, kSpreadTop + kRow * (static_cast<double>(i) + 0.5),
                   spread_colour(i));
  svg += svg_text((kSpreadLeft + kSpreadWidth - kSpreadRight) / 2, low + 36, "middle",
                  what + ": dots are runs, bars mean and deviation");
  return svg + "</svg>\n";
}

std::string spread_rows_text(const std::vector<SpreadRow>& rows, const std::string& what) {
  constexpr size_t kCells = 48;
  const Axis scale = axis_of(rows, what);
  std::vector<std::string> names;
  for (const SpreadRow& r : rows) names.push_back(r.name);
  const size_t width = longest_name(names);
  const auto cell = [&](double v) {
    return std::min(static_cast<size_t>(std::max(scale.share(v), 0.0) * kCells), kCells - 1);
  };
  std::string text;
  for (const SpreadRow& r : rows) {
    std::string line(kCells, ' ');
    const Spread s = spread_of(r.values);
    for (const double v : r.values) {
      if (std::isfinite(v)) line[cell(v)] = 'o';
    }
    if (s.count > 0) line[cell(s.mean)] = '|';
    text += cut_name(r.name, width) + " [" + line + "]\n";
  }
  const std::string low = scale.label(scale.low), high = scale.label(scale.high);
  return text +
         fmt::format("{:<{}}  {}{:>{}}  {}\n", "", width, low, high, kCells - low.size(), what);
}

namespace {

constexpr double kCurvesHigh = 260;

struct CurvePlace {
  const CurveAxes& axes;
  size_t points;
  double x(double i) const {
    const double most = std::max(1.0, static_cast<double>(points) - 1);
    return 70 + i / most * (kSpreadWidth - 70 - kSpreadLeft);
  }
  double y(double v) const {
    const double share = std::clamp((v - axes.low) / (axes.high - axes.low), 0.0, 1.0);
    return kSpreadTop + kCurvesHigh * (1 - share);
  }
};

std::string points_of(const CurvePlace& at, const std::vector<double>& values, bool backwards) {
  std::string out;
  for (size_t k = 0; k < values.size(); ++k) {
    const size_t i = backwards ? values.size() - 1 - k : k;
    if (!std::isfinite(values[i])) continue;
    out += fmt::format("{:.1f},{:.1f} ", at.x(static_cast<double>(i)), at.y(values[i]));
  }
  return out;
}

}  // namespace

std::string spread_curves_svg(const std::vector<SpreadCurve>& curves, const CurveAxes& axes) {
  size_t points = 0;
  for (const SpreadCurve& c : curves) points = std::max(points, c.mean.size());
  const CurvePlace at{axes, points};
  const double foot = kSpreadTop + kCurvesHigh;
  std::string svg = svg_open(kSpreadWidth, foot + 60, axes.title);
  const Axis values = round_axis(axes.low, axes.high, 5);
  for (const double v : values.ticks()) {
    if (v < axes.low - values.step * 1e-6 || v > axes.high + values.step * 1e-6) continue;
    svg += stroke(70, at.y(v), kSpreadWidth - kSpreadLeft, at.y(v), "#dddddd", 1);
    svg += svg_text(62, at.y(v) + 4, "end", values.label(v));
  }
  for (const double m : axes.marks) svg += stroke(at.x(m), kSpreadTop, at.x(m), foot, "#999999", 1);
  for (size_t i = 0; i < curves.size(); ++i) {
    svg += fmt::format("<polygon fill=\"{}\" fill-opacity=\"0.15\" points=\"{}{}\"/>\n",
                       spread_colour(i), points_of(at, curves[i].high, false),
                       points_of(at, curves[i].low, true));
    svg += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/>\n",
                       spread_colour(i), points_of(at, curves[i].mean, false));
    svg += svg_text(kSpreadWidth - kSpreadLeft + 12, kSpreadTop + 16 * (static_cast<double>(i) + 1),
                    "start", curves[i].name, spread_colour(i));
  }
  const bool bands =
      std::ranges::any_of(curves, [](const SpreadCurve& c) { return c.low != c.high; });
  const size_t every = label_step(points, 10);
  for (size_t i = 0; i < points; i += every)
    svg += svg_text(at.x(static_cast<double>(i)), foot + 18, "middle",
                    fmt::format("{:.3g}", axes.first + axes.step * static_cast<double>(i)));
  svg += svg_text(at.x(static_cast<double>(points) / 2), foot + 40, "middle",
                  axes.y + " by " + axes.x + (bands ? "; bands are the range of the runs" : ""));
  return svg + "</svg>\n";
}

std::string spread_curves_text(const std::vector<SpreadCurve>& curves, const CurveAxes& axes) {
  constexpr const char* kHeights[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                      "\u2585", "\u2586", "\u2587", "\u2588"};
  std::vector<std::string> names;
  for (const SpreadCurve& c : curves) names.push_back(c.name);
  const size_t width = longest_name(names);
  std::string text;
  for (const SpreadCurve& c : curves) {
    text += cut_name(c.name, width) + " ";
    for (size_t i = 0; i < c.mean.size(); ++i) {
      const bool marked = std::ranges::find(axes.marks, static_cast<double>(i)) != axes.marks.end();
      const double share = (c.mean[i] - axes.low) / (axes.high - axes.low);
      const auto height = static_cast<size_t>(std::clamp(share * 8, 0.0, 7.0));
      text += (marked ? " " : "") + std::string(std::isfinite(share) ? kHeights[height] : "?");
    }
    text += "\n";
  }
  return text + fmt::format("{:<{}} {} from {:.3g} to {:.3g}, by {}\n", "", width, axes.y, axes.low,
                            axes.high, axes.x);
}

}  // namespace loom::cli
