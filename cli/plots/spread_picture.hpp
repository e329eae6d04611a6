// Pictures of several runs: a row of dots for each method with mean and deviation, and curves over
// time with the band of their runs. For a terminal, and as SVG.
#pragma once

#include <string>
#include <vector>

namespace loom::cli {

// Values of the runs of one method.
struct SpreadRow {
  std::string name;
  std::vector<double> values;
};
// A whole SVG document. `what` is the label of the axis.
std::string spread_rows_svg(const std::vector<SpreadRow>& rows, const std::string& title,
                            const std::string& what);
// A line for each: name, dots on a common scale, "|" at the mean; the scale below.
std::string spread_rows_text(const std::vector<SpreadRow>& rows, const std::string& what);

// One method over time: the mean of its runs, and their range.
struct SpreadCurve {
  std::string name;
  std::vector<double> mean, low, high;
};
struct CurveAxes {
  std::string title, x, y;
  double low = 0, high = 1;        // of y
  std::vector<double> marks = {};  // where to draw upright lines, in points of the curves
  double first = 1, step = 1;      // x of the first point, and from one to the next
};
std::string spread_curves_svg(const std::vector<SpreadCurve>& curves, const CurveAxes& axes);
// A line for each: name and a bar for each point, eight heights.
std::string spread_curves_text(const std::vector<SpreadCurve>& curves, const CurveAxes& axes);

}  // namespace loom::cli
