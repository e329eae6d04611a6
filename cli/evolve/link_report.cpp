#include "link_report.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "../plots/svg.hpp"

namespace loom::cli {
namespace {

constexpr const char* kLinkColors[] = {"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e",
                                       "#9467bd", "#8c564b", "#e377c2", "#17becf"};

std::string input_index(const LinkStats& s) {
  return fmt::format("({}, {}, {}, {})", s.at.z, s.at.y, s.at.x, s.at.l);
}

std::string link_table(const std::vector<LinkStats>& links) {
  std::string text = "epoch,cell,layer,budget,gap,closed,cosine,size\n";
  for (const LinkStats& s : links) {
    text += fmt::format("{},\"{}\",{},{},{},{},{},{}\n", s.epoch, input_index(s), s.type, s.budget,
                        s.gap, s.closed, s.cosine, s.size);
  }
  return text;
}

// Cosines from -1 to 1 over the epochs, a line for each layer.
std::string link_curves(const std::vector<LinkStats>& links) {
  constexpr double kWidth = 720, kHeight = 400, kLeft = 60, kRight = 540, kTop = 50, kBottom = 350;
  std::string text = svg_open(kWidth, kHeight, "Cosine of signals with the gradient of the loss");
  std::vector<std::string> names;
  int64_t first = links.empty() ? 1 : links.front().epoch, last = first;
  for (const LinkStats& s : links) {
    last = std::max(last, s.epoch);
    const std::string name = input_index(s) + " " + s.type;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  const auto x = [&](int64_t epoch) {
    const auto span = static_cast<double>(std::max<int64_t>(last - first, 1));
    return kLeft + (kRight - kLeft) * static_cast<double>(epoch - first) / span;
  };
  const auto y = [&](double cosine) {
    return kTop + (kBottom - kTop) * (1 - std::clamp(cosine, -1.0, 1.0)) / 2;
  };
  for (const double mark : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
    text += fmt::format("<path d=\"M{} {:.1f}H{}\" stroke=\"#ddd\"/>\n", kLeft, y(mark), kRight);
    text += svg_text(kLeft - 8, y(mark) + 4, "end", fmt::format("{:.1f}", mark));
  }
  const auto step = static_cast<int64_t>(label_step(static_cast<size_t>(last), 10));
  for (int64_t epoch = first; epoch <= last; ++epoch) {
    if (epoch % step == 0)
      text += svg_text(x(epoch), kBottom + 20, "middle", std::to_string(epoch));
  }
  text += svg_text((kLeft + kRight) / 2, kBottom + 40, "middle", "epoch");
  for (size_t i = 0; i < names.size(); ++i) {
    const char* const color = kLinkColors[i % std::size(kLinkColors)];
    std::string points;
    for (const LinkStats& s : links) {
      if (input_index(s) + " " + s.type == names[i])
        points += fmt::format("{:.1f},{:.1f} ", x(s.epoch), y(s.cosine));
    }
    text += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", points, color);
    text += svg_text(kRight + 16, kTop + 18 * static_cast<double>(i), "start", names[i], color);
  }
  return text + "</svg>\n";
}

}  // namespace

std::string link_report(const std::string& path, const std::vector<LinkStats>& links) {
  return path.ends_with(".svg") ? link_curves(links) : link_table(links);
}

}  // namespace loom::cli
