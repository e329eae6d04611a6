// What `loom eval` shows beyond the loss: per-class figures and who is taken for whom, as text,
// JSON and pictures.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "console.hpp"

namespace loom::cli {

// One line per class with precision, recall, F1 and samples, and their means; "" without classes.
std::string classes_table(const Evaluation& scores);
// Rows: what samples are; columns: what they were called. "" without classes, and beyond 20 of
// them, which no terminal has room for.
std::string confusion_table(const Evaluation& scores);
Json classes_json(const Evaluation& scores);
Json confusion_json(const Evaluation& scores);

// Whole SVG documents: a square per pair of classes, darker with the share of its row; and outputs
// against targets (first and second of each pair), with the line where they are equal.
std::string confusion_svg(const Evaluation& scores, const std::string& title);
std::string scatter_svg(std::span<const std::pair<float, float>> points, const std::string& title);

}  // namespace loom::cli
