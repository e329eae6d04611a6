// The output of `loom eval` besides the loss: metrics per class and the confusion matrix, as text,
// JSON and plots.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../shared/console.hpp"

namespace loom::cli {

// One line per class with precision, recall, F1 and samples, and their means; empty without
// classes.
std::string classes_table(const Evaluation& scores);
// Rows are true classes, columns are predicted ones. Empty without classes, and for more than 20,
// which do not fit on a terminal.
std::string confusion_table(const Evaluation& scores);
Json classes_json(const Evaluation& scores);
Json confusion_json(const Evaluation& scores);

// Whole SVG documents: a square per pair of classes, darker for a larger share of its row; and
// outputs against targets (first and second of each pair), with the line of equality.
std::string confusion_svg(const Evaluation& scores, const std::string& title);
std::string scatter_svg(std::span<const std::pair<float, float>> points, const std::string& title);

}  // namespace loom::cli
