#include "learn/rules/links.hpp"

namespace loom::core {

void add_links(const TrainStep& step, std::vector<LinkReport>& links) {
  const std::vector<size_t> cells = step.link_cells();
  links.resize(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    const float* row = step.link_stats().f32_row(static_cast<int64_t>(i));
    LinkReport& link = links[i];
    link.cell = cells[i];
    double* const numbers[] = {&link.budget, &link.gap, &link.closed, &link.cosine, &link.size};
    for (double* number : numbers) *number += static_cast<double>(*row++);
  }
}

void share_links(std::vector<LinkReport>& links, int64_t steps) {
  for (LinkReport& link : links) {
    for (double* number : {&link.budget, &link.gap, &link.closed, &link.cosine, &link.size})
      *number /= static_cast<double>(steps);
  }
}

}  // namespace loom::core
