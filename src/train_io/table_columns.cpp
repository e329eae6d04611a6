#include "train_io/table_columns.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr int64_t kTwice = -2;

std::string trimmed(std::string_view name) {
  const size_t first = name.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(name.substr(first, name.find_last_not_of(" \t") - first + 1));
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    shown.push_back(printable(names[i], 24));
  if (names.size() > kShown) shown.emplace_back("...");
  return join(shown, ", ");
}

// Columns by name; kTwice: there are two of it.
std::unordered_map<std::string, int64_t> by_name(const std::vector<std::string>& header) {
  std::unordered_map<std::string, int64_t> out;
  for (size_t i = 0; i < header.size(); ++i) {
    const auto [at, fresh] = out.emplace(trimmed(header[i]), static_cast<int64_t>(i));
    if (!fresh) at->second = kTwice;
  }
  return out;
}

std::vector<int64_t> places_by_order(const TableLayout& layout) {
  std::vector<int64_t> column_index;
  int64_t next = 0;
  for (int64_t column = 0; column < layout.columns; ++column) {
    const bool other = std::ranges::count(layout.others, column) > 0;
    column_index.push_back(other ? -1 : next++);
  }
  return column_index;
}

}  // namespace

TableColumns split_columns(const std::vector<std::string>& all, int64_t inputs) {
  const auto end = all.begin() + std::min<int64_t>(inputs, std::ssize(all));
  return {.inputs = {all.begin(), end}, .targets = {end, all.end()}};
}

Result<std::vector<int64_t>> places_of_columns(const TableLayout& layout, const TableColumns& known,
                                               const std::string& path) {
  if (layout.header.empty() || static_cast<int64_t>(known.inputs.size()) != layout.inputs)
    return places_by_order(layout);
  const std::unordered_map<std::string, int64_t> columns = by_name(layout.header);
  std::vector<int64_t> column_index(static_cast<size_t>(layout.columns), -1);
  std::vector<bool> taken(column_index.size(), false);
  for (const int64_t other : layout.others) taken[static_cast<size_t>(other)] = true;
  for (size_t i = 0; i < known.inputs.size(); ++i) {
    const auto found = columns.find(known.inputs[i]);
    const std::string name = cat("column '", printable(known.inputs[i]), "'");
    if (found == columns.end() || (found->second >= 0 && taken[static_cast<size_t>(found->second)]))
      return bad_file(cat("has no ", name, ", which the network was trained with; its columns are ",
                          listed(layout.header),
                          "; rename them, or give --columns-by-order to take them by their order"),
                      path);
    if (found->second == kTwice)
      return bad_file(cat("has two columns '", printable(known.inputs[i]), "'; rename one"), path);
    column_index[static_cast<size_t>(found->second)] = static_cast<int64_t>(i);
    taken[static_cast<size_t>(found->second)] = true;
  }
  const auto target = [&](const std::string& name) {
    const auto found = columns.find(name);
    return found != columns.end() && found->second >= 0 &&
           !taken[static_cast<size_t>(found->second)];
  };
  if (static_cast<int64_t>(known.targets.size()) == layout.targets &&
      std::ranges::all_of(known.targets, target)) {
    for (size_t i = 0; i < known.targets.size(); ++i)
      column_index[static_cast<size_t>(columns.at(known.targets[i]))] =
          layout.inputs + static_cast<int64_t>(i);
    return column_index;
  }
  int64_t next = layout.inputs;
  for (size_t column = 0; column < column_index.size(); ++column) {
    if (!taken[column]) column_index[column] = next++;
  }
  return column_index;
}

TableColumns names_of_columns(const TableLayout& layout, const std::vector<int64_t>& column_index) {
  TableColumns out;
  if (layout.header.empty()) return out;
  out.inputs.resize(static_cast<size_t>(layout.inputs));
  out.targets.resize(static_cast<size_t>(layout.targets));
  std::unordered_set<std::string> seen;
  for (size_t column = 0; column < column_index.size(); ++column) {
    const int64_t index = column_index[column];
    if (index < 0 || index >= layout.inputs + layout.targets) continue;
    std::string name = trimmed(layout.header[column]);
    if (name.empty() || !seen.insert(name).second) return {};
    (index < layout.inputs ? out.inputs[static_cast<size_t>(index)]
                           : out.targets[static_cast<size_t>(index - layout.inputs)]) =
        std::move(name);
  }
  return out;
}

}  // namespace loom::core
