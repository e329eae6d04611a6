#include "evolve/merging/class_order.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "layers/core/fields.hpp"
#include "train_io/training_files.hpp"

namespace loom::core {
namespace {

bool passes_classes_on(const Node& node) {
  const LayerKind kind = node.config.def->kind;
  return node.disabled() || kind == LayerKind::softmax || kind == LayerKind::unary ||
         kind == LayerKind::dropout;
}

// The Dense layer that the outputs come from, below `node`; null: another layer makes them.
const Node* last_dense(const Node& node, bool& passes) {
  passes = passes_classes_on(node);
  if (passes) return nullptr;
  if (node.config.def->kind == LayerKind::dense) return &node;
  if (node.config.def->kind != LayerKind::sequential) return nullptr;
  for (size_t i = node.children.size(); i-- > 0;) {
    const Node* found = last_dense(node.children[i], passes);
    if (!passes) return found;
  }
  passes = true;
  return nullptr;
}

// Whether any cell but the next reads cell `i`, or shares its weights.
bool is_read_elsewhere(const Network& network, size_t i) {
  const std::vector<GridNode>& cells = network.cells();
  if (cells[i].cell->shared_with) return true;
  return std::any_of(cells.begin(), cells.end(), [&](const GridNode& cell) {
    return cell.link == static_cast<int>(i) ||
           (cell.cell->shared_with && *cell.cell->shared_with == cells[i].at);
  });
}

std::string quoted(const std::vector<std::string>& names) {
  constexpr size_t kShown = 6;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i)
    shown.push_back(printable(names[i], 24));
  if (names.size() > kShown) shown.emplace_back("...");
  return join(shown, ", ");
}

// Fields that define the meaning of parts of a weight. Others, such as a stride, change the
// computation only.
constexpr std::string_view kDividing[] = {"heads",  "kv_heads", "head_dim", "groups",
                                          "kernel", "channels", "filters"};

std::string field_text(const LayerConfig& layer, int field) {
  if (layer.def->fields[static_cast<size_t>(field)].type != FieldType::list)
    return cat(layer.integer(field));
  std::vector<std::string> parts;
  for (const int64_t n : layer.list(field)) parts.push_back(cat(n));
  return cat("[", join(parts, ", "), "]");
}

using Divisions = std::unordered_map<std::string, std::string>;

void compare_divisions(const Node& a, const Node& b, const std::string& at, Divisions& out) {
  if (a.config.def != b.config.def) return;
  for (const std::string_view name : kDividing) {
    const int field = field_index(a.config, name);
    if (field < 0) continue;
    const std::string mine = field_text(a.config, field), other = field_text(b.config, field);
    if (mine != other) out.emplace(at, cat(name, " ", other, ", not ", mine));
  }
  for (size_t i = 0; i < std::min(a.children.size(), b.children.size()); ++i)
    compare_divisions(a.children[i], b.children[i], cat(at, "/", i), out);
}

}  // namespace

const Node* layer_of_classes(const Network& network) {
  for (size_t i = network.cells().size(); i-- > 0;) {
    if (is_read_elsewhere(network, i)) return nullptr;
    bool passes = false;
    const Node* found = last_dense(network.cells()[i].node, passes);
    if (!passes) return found;
  }
  return nullptr;
}

Result<std::vector<int64_t>> class_order(const std::vector<std::string>& names,
                                         const std::vector<std::string>& other) {
  if (names.empty() || other.empty() || names == other) return std::vector<int64_t>();
  std::unordered_map<std::string_view, int64_t> index_of;
  for (const std::string& name : other)
    index_of.emplace(name, static_cast<int64_t>(index_of.size()));
  std::vector<int64_t> order;
  for (const std::string& name : names) {
    const auto found = index_of.find(name);
    if (found == index_of.end())
      return invalid(cat("knows other classes: it has no '", printable(name), "' among ",
                         quoted(other), "; give models of the same classes"));
    order.push_back(found->second);
  }
  if (order.size() == index_of.size()) return order;
  return invalid(cat("knows ", other.size(), " classes, not ", names.size(),
                     "; give models of the same classes"));
}

void reorder_rows(const RowOrders& orders, const Param& param, std::vector<float>& values) {
  const auto found = orders.find(param.path);
  if (found == orders.end()) return;
  const auto rows = static_cast<size_t>(param.spec.shape[0]);
  const size_t each = values.size() / rows;
  const std::vector<float> from = values;
  for (size_t row = 0; row < std::min(rows, found->second.size()); ++row)
    std::copy_n(from.begin() + found->second[row] * static_cast<int64_t>(each), each,
                values.begin() + static_cast<int64_t>(row * each));
}

Status same_columns(const NamedModel& like, const NamedModel& other) {
  if (like.model->network == nullptr || other.model->network == nullptr) return {};
  LOOM_ASSIGN(const TrainedModel mine, model_of(*like.model->network));
  LOOM_ASSIGN(const TrainedModel others, model_of(*other.model->network));
  const std::vector<std::string>&a = mine.columns.inputs, &b = others.columns.inputs;
  if (a.empty() || b.empty() || a == b) return {};
  return invalid(cat("takes the columns ", quoted(b), ", not ", quoted(a), " as ", like.path,
                     "; train both on tables of one order"),
                 other.path);
}

Result<RowOrders> match_by_name(const NamedModel& like, const NamedModel& other,
                                const Network& network, std::vector<std::string>& notes) {
  RowOrders orders;
  if (like.model->network == nullptr || other.model->network == nullptr) return orders;
  LOOM_ASSIGN(const TrainedModel mine, model_of(*like.model->network));
  LOOM_ASSIGN(const TrainedModel others, model_of(*other.model->network));
  if (mine.names.empty() != others.names.empty())
    notes.push_back(cat(mine.names.empty() ? like.path : other.path,
                        ": has no names of classes; classes are matched by number"));
  const Result<std::vector<int64_t>> order = class_order(mine.names, others.names);
  if (!order.ok()) return invalid(cat(order.error().message, " as ", like.path), other.path);
  if (order->empty()) return orders;
  const Node* layer = layer_of_classes(network);
  if (layer == nullptr)
    return invalid(cat("numbers its classes in another order than ", like.path,
                       ", and no Dense layer at its end can be reordered; train both with one "
                       "order of classes"),
                   other.path);
  for (const int index : layer->params)
    orders.emplace(network.params()[static_cast<size_t>(index)].path, *order);
  notes.push_back(cat(other.path, ": numbers its classes in another order than ", like.path,
                      "; they are matched by name"));
  return orders;
}

Divisions other_divisions(const Network& a, const Network& b) {
  Divisions out;
  std::unordered_map<std::string, const Node*> there;
  for (const GridNode& cell : b.cells()) there.emplace(cell.at.str(), &cell.node);
  for (const GridNode& cell : a.cells()) {
    const auto found = there.find(cell.at.str());
    if (found != there.end()) compare_divisions(cell.node, *found->second, found->first, out);
  }
  return out;
}

}  // namespace loom::core
