// Lists of values, the general way: what SplitToSequence, SequenceAt and their like do is known
// while the file is read, so that no list is left in the network. See general.hpp.
#include <algorithm>

#include "base/text.hpp"
#include "layers/spatial/axes.hpp"
#include "onnx/import/general/general.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxItems = 4096;

bool takes_list(std::string_view op, size_t input) {
  constexpr std::string_view kOps[] = {"SequenceAt", "SequenceLength", "SequenceInsert",
                                       "SequenceErase", "ConcatFromSequence"};
  return input == 0 && std::ranges::find(kOps, op) != std::end(kOps);
}

}  // namespace

// Lists where lists are read, and nowhere else.
Status GraphImport::check_lists(const OnnxNode& n) const {
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (!has_input(n, i)) continue;
    LOOM_ASSIGN(const Value* v, value(n, i));
    const bool list = v->items != nullptr, expected = takes_list(n.op, i);
    if (list != expected && !(list && n.op == "Identity"))
      return refuse(n, cat("input ", i, list ? " is a list" : " must be a list"));
  }
  return {};
}

Result<GraphImport::Value> GraphImport::list_of(const OnnxNode& n, size_t i) const {
  LOOM_ASSIGN(const Value* v, value(n, i));
  return *v;
}

// Input i as an index into a list of so many items. The flag also allows one after the last.
Result<int64_t> GraphImport::place_in(const OnnxNode& n, size_t i, size_t items, bool behind) {
  LOOM_ASSIGN(const ConstantRef c, constant(n, i));
  if (c->count() != 1) return refuse(n, "a place that is not one number");
  const auto count = static_cast<int64_t>(items);
  int64_t at = c->integers()[0];
  at += at < 0 ? count : 0;
  if (at < 0 || at > (behind ? count : count - 1))
    return refuse(n, cat("item ", at, " of a list of ", count));
  return at;
}

// Places [first, last) of an axis; of constants, too.
Result<GraphImport::Value> GraphImport::sliced(const OnnxNode& n, const Value& x, int64_t axis,
                                               int64_t first, int64_t last) {
  using List = std::vector<int64_t>;
  return emit(n, LayerKind::slice,
              {{"starts", List{first}}, {"ends", List{last}}, {"axes", List{axis}}}, {x});
}

Result<GraphImport::Value> GraphImport::without_axis(const OnnxNode& n, const Value& x,
                                                     int64_t axis) {
  std::vector<int64_t> dims = axis_extents(x.shape);
  dims.erase(dims.begin() + axis);
  return view(n, x, dims);
}

Status GraphImport::split_to_list_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  int64_t axis = attribute(n, "axis", 0);
  if (axis < 0) axis += x.shape.rank();
  if (axis < 0 || axis >= x.shape.rank()) return refuse(n, "an axis that does not exist");
  const int64_t extent = x.shape[static_cast<int>(axis)];
  std::vector<int64_t> widths = {1};
  bool equal = true;
  if (has_input(n, 1)) {
    LOOM_ASSIGN(const ConstantRef split, constant(n, 1));
    if (split->dims.size() > 1 || split->count() > kMaxItems || split->count() < 1)
      return refuse(n, "widths that are not a short list");
    equal = split->dims.empty();
    widths = split->integers();
    widths.resize(static_cast<size_t>(split->count()), widths[0]);
  }
  if (std::ranges::any_of(widths, [](int64_t w) { return w < 1; }))
    return refuse(n, "parts without values");
  if (equal) {  // one number: parts of that width, the last of what is left
    const int64_t width = widths[0], count = (extent + width - 1) / width;
    if (count > kMaxItems) return refuse(n, cat("a list of more than ", kMaxItems));
    widths.assign(static_cast<size_t>(count), width);
    widths.back() = extent - width * (count - 1);
  }
  const bool keeps = has_input(n, 1) || attribute(n, "keepdims", 1) != 0;
  std::vector<Value> items;
  int64_t first = 0;
  for (const int64_t width : widths) {
    if (width > extent - first) return refuse(n, "widths that do not make up the axis");
    LOOM_ASSIGN(Value item, sliced(n, x, axis, first, first + width));
    if (!keeps) {
      LOOM_ASSIGN(item, without_axis(n, item, axis));
    }
    item.type = result_;
    items.push_back(std::move(item));
    first += width;
  }
  if (first != extent) return refuse(n, "widths that do not make up the axis");
  Value list;
  list.items = std::make_shared<const std::vector<Value>>(std::move(items));
  return define(n, std::move(list));
}

Status GraphImport::make_list_node(const OnnxNode& n) {
  std::vector<Value> items;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    LOOM_ASSIGN(const Value* v, value(n, i));
    items.push_back(*v);
  }
  Value list;
  list.items = std::make_shared<const std::vector<Value>>(std::move(items));
  return define(n, std::move(list));
}

Status GraphImport::list_item_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value list, list_of(n, 0));
  LOOM_ASSIGN(const int64_t at, place_in(n, 1, list.items->size(), false));
  return define(n, (*list.items)[static_cast<size_t>(at)]);
}

Status GraphImport::list_length_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value list, list_of(n, 0));
  Value count;
  count.constant = std::make_shared<const Constant>(
      Constant{{}, OnnxType::i64, {static_cast<double>(list.items->size())}});
  return define(n, std::move(count));
}

// SequenceInsert and SequenceErase; at the end where no place is given.
Status GraphImport::change_list_node(const OnnxNode& n) {
  LOOM_ASSIGN(Value list, list_of(n, 0));
  std::vector<Value> items = *list.items;
  const bool inserts = n.op == "SequenceInsert";
  const size_t input = inserts ? 2 : 1;
  if (items.empty() && !inserts) return refuse(n, "takes an item out of an empty list");
  auto at = static_cast<int64_t>(items.size()) - (inserts ? 0 : 1);
  if (has_input(n, input)) {
    LOOM_ASSIGN(at, place_in(n, input, items.size(), inserts));
  }
  if (inserts) {
    LOOM_ASSIGN(const Value* item, value(n, 1));
    items.insert(items.begin() + at, *item);
  } else {
    items.erase(items.begin() + at);
  }
  list.items = std::make_shared<const std::vector<Value>>(std::move(items));
  return define(n, std::move(list));
}

Status GraphImport::join_list_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value list, list_of(n, 0));
  if (list.items->empty()) return refuse(n, "joins an empty list");
  // As the Concat of items that go by names of their own; a new axis is an Unsqueeze of each.
  OnnxNode join = n;
  join.op = "Concat";
  join.inputs.clear();
  std::erase_if(join.attributes, [](const OnnxAttribute& a) { return a.name == "new_axis"; });
  const bool adds = attribute(n, "new_axis", 0) != 0;
  for (size_t i = 0; i < list.items->size(); ++i) {
    Value item = (*list.items)[i];
    const std::string name = cat(n.outputs[0], " item ", i);
    if (adds) {
      if (item.is_constant()) return refuse(n, "joins constants along a new axis");
      std::vector<int64_t> dims = axis_extents(item.shape);
      if (item.scalar) dims.clear();
      int64_t axis = attribute(n, "axis", 0);
      axis += axis < 0 ? static_cast<int64_t>(dims.size()) + 1 : 0;
      if (axis < 0 || axis > static_cast<int64_t>(dims.size()))
        return refuse(n, "an axis that does not exist");
      dims.insert(dims.begin() + axis, 1);
      const OnnxType type = item.type;
      LOOM_ASSIGN(item, view(n, item, dims));
      item.type = type;
    }
    if (!values_.emplace(name, std::move(item)).second)
      return refuse(n, cat("its output '", printable(n.outputs[0]), "' occurs twice"));
    join.inputs.push_back(name);
  }
  return node(join);
}

}  // namespace loom::core
