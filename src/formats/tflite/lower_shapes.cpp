// What only moves values: shapes, slices, joins, places. See lower.hpp.
#include <algorithm>
#include <numeric>

#include "base/text.hpp"
#include "formats/tflite/lower.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMostExtentOfAxis = int64_t{1} << 31;

}  // namespace

Status TfliteGraph::reshape() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  List to = op_->list;
  if (has(1)) {
    LOOM_ASSIGN(to, integers(1));
    LOOM_ASSIGN(const List shape_of_list, dims(1));
    if (shape_of_list.size() > 1) return refuse("a shape that is no list");
  }
  if (to.size() > kMaxTfliteRank) return refuse("a shape of too many axes");
  const int64_t count = count_of(from.dims);
  int64_t left = -1, product = 1;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == -1 && left < 0) {
      left = static_cast<int64_t>(i);
    } else if (to[i] < 1 || to[i] > count / product) {
      return refuse("a shape that does not hold as many values as its input");
    } else {
      product *= to[i];
    }
  }
  if (left >= 0) to[static_cast<size_t>(left)] = count / product;
  if (count_of(to) != count)
    return refuse("a shape that does not hold as many values as its input");
  if (to == from.dims) return same();
  LOOM_ASSIGN(const Name x, in(0));
  LOOM_ASSIGN(Name y, shaped(x, to));
  return define(0, y, std::move(to), Order::plain, from.type);
}

Status TfliteGraph::squeeze() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  List gone;
  for (const int64_t given : op_->list) {
    LOOM_ASSIGN(gone.emplace_back(), axis(given, from.dims.size()));
    if (from.dims[static_cast<size_t>(gone.back())] != 1)
      return refuse("takes away an axis that is not 1");
  }
  List dims;
  for (size_t i = 0; i < from.dims.size(); ++i) {
    const bool named = std::ranges::find(gone, static_cast<int64_t>(i)) != gone.end();
    if (gone.empty() ? from.dims[i] != 1 : !named) dims.push_back(from.dims[i]);
  }
  LOOM_ASSIGN(const Name x, in(0));
  LOOM_ASSIGN(Name y, shaped(x, dims));
  return define(0, y, std::move(dims), Order::plain, from.type);
}

Status TfliteGraph::expand_dims() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  LOOM_ASSIGN(const int64_t given, integer(1));
  LOOM_ASSIGN(const int64_t at, axis(given, from.dims.size() + 1));
  List dims = from.dims;
  dims.insert(dims.begin() + at, 1);
  LOOM_ASSIGN(const Name x, in(0));
  LOOM_ASSIGN(Name y, shaped(x, dims));
  return define(0, y, std::move(dims), Order::plain, from.type);
}

// Of what is there with channels first alone, both orders become one.
Status TfliteGraph::transpose() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  LOOM_ASSIGN(List order, integers(1));
  List sorted = order, all(from.dims.size());
  std::iota(all.begin(), all.end(), 0);
  std::ranges::sort(sorted);
  if (sorted != all) return refuse("an order that does not name each axis once");
  List dims;
  for (const int64_t a : order) dims.push_back(from.dims[static_cast<size_t>(a)]);
  Name x = from.plain;
  if (x == kNone) {
    x = from.first;
    for (int64_t& a : order) a = kAxisFirst[a];
  }
  LOOM_ASSIGN(Name y, moved(x, order));
  return define(0, y, std::move(dims), Order::plain, from.type);
}

Status TfliteGraph::concat() {
  LOOM_ASSIGN(const Order order, order_of_all());
  LOOM_ASSIGN(const Value* first, value(0));
  Value like = *first;
  LOOM_ASSIGN(const int64_t along, axis(whole(0), like.dims.size()));
  const auto at = static_cast<size_t>(along);
  Names names;
  int64_t sum = 0;
  for (size_t i = 0; i < op_->inputs.size(); ++i) {
    LOOM_ASSIGN(List have, dims(i));
    if (have.size() != like.dims.size()) return refuse("joins values of different axes");
    sum += have[at];
    have[at] = like.dims[at];
    if (have != like.dims) return refuse("joins values of different shapes");
    LOOM_ASSIGN(names.emplace_back(), in(i, order));
  }
  like.dims[at] = sum;
  const int64_t here = order == Order::first ? kAxisFirst[at] : along;
  LOOM_ASSIGN(Name y, add("Concat", names, {{"axis", here}}));
  LOOM_ASSIGN(y, activated(y, whole(1)));
  return define(0, y, std::move(like.dims), order, like.type);
}

Status TfliteGraph::pad() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  LOOM_ASSIGN(const List given, integers(1));
  const size_t rank = from.dims.size();
  if (given.size() != 2 * rank) return refuse("pads that are not two for each axis");
  LOOM_ASSIGN(const Order order, order_of({0}));
  List dims = from.dims, pads(2 * rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t before = given[2 * i], after = given[2 * i + 1];
    if (before < 0 || after < 0 || before > kMostExtentOfAxis || after > kMostExtentOfAxis)
      return refuse("pads that cannot be");
    const auto at =
        static_cast<size_t>(order == Order::first ? kAxisFirst[i] : static_cast<int64_t>(i));
    pads[at] = before;
    pads[rank + at] = after;
    dims[i] += before + after;
  }
  LOOM_ASSIGN(const Name x, in(0, order));
  Names inputs = {x, list(pads)};
  if (op_->code == kPadV2) {
    LOOM_ASSIGN(const Value* one, value(2));
    LOOM_ASSIGN(const Name with, in(2));
    if (count_of(one->dims) != 1) return refuse("a value that is not one number");
    LOOM_ASSIGN(inputs.emplace_back(), shaped(with, {}));
  }
  LOOM_ASSIGN(Name y, add("Pad", inputs));
  return define(0, y, std::move(dims), order, from.type);
}

// Values of the edge again, turned around: with the edge itself (1) or without (0).
Status TfliteGraph::mirror_pad() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  LOOM_ASSIGN(const List given, integers(1));
  if (given.size() != 2 * from.dims.size()) return refuse("pads that are not two for each axis");
  LOOM_ASSIGN(const Order order, order_of({0}));
  LOOM_ASSIGN(Name y, in(0, order));
  List dims = from.dims;
  const int64_t less = whole(0) == 0 ? 1 : 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t extent = dims[i], before = given[2 * i], after = given[2 * i + 1];
    if (before < 0 || after < 0 || before > extent - less || after > extent - less)
      return refuse("pads that are more than its input holds");
    if (before == 0 && after == 0) continue;
    List places;
    for (int64_t k = -before; k < extent + after; ++k) {
      if (places.size() > kMaxTfliteList) return refuse("pads that are too many");
      places.push_back(k < 0 ? -k - 1 + less : k < extent ? k : 2 * extent - 1 - less - k);
    }
    const auto axis = static_cast<int64_t>(i);
    LOOM_ASSIGN(y, at_places(y, places, order == Order::first ? kAxisFirst[i] : axis));
    dims[i] = extent + before + after;
  }
  return define(0, y, std::move(dims), order, from.type);
}

// x at a range of each axis. Backwards it is a list of places.
Result<TfliteGraph::Name> TfliteGraph::taken(Name x, const std::vector<Range>& ranges,
                                             const List& have, Order order) {
  List starts, ends, axes, steps;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Range& r = ranges[i];
    if (r.start == 0 && r.step == 1 && r.count == have[i]) continue;
    const int64_t at = order == Order::first ? kAxisFirst[i] : static_cast<int64_t>(i);
    if (r.step < 0) {
      List places;
      if (r.count > static_cast<int64_t>(kMaxTfliteList)) return refuse("places that are too many");
      for (int64_t k = 0; k < r.count; ++k) places.push_back(r.start + k * r.step);
      LOOM_ASSIGN(x, at_places(x, places, at));
      continue;
    }
    starts.push_back(r.start);
    ends.push_back(r.start + (r.count - 1) * r.step + 1);
    axes.push_back(at);
    steps.push_back(r.step);
  }
  if (starts.empty()) return x;
  return add("Slice", {x, list(starts), list(ends), list(axes), list(steps)});
}

Status TfliteGraph::slice() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  LOOM_ASSIGN(const List begin, integers(1));
  LOOM_ASSIGN(const List size, integers(2));
  if (begin.size() != from.dims.size() || size.size() != begin.size())
    return refuse("a begin and a size for each axis are needed");
  std::vector<Range> ranges;
  List dims;
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t extent = from.dims[i];
    const int64_t count = size[i] == -1 ? extent - begin[i] : size[i];
    if (begin[i] < 0 || begin[i] > extent || count < 1 || count > extent - begin[i])
      return refuse("a slice outside of its input, or of nothing");
    ranges.push_back({begin[i], count, 1});
    dims.push_back(count);
  }
  LOOM_ASSIGN(const Order order, order_of({0}));
  LOOM_ASSIGN(const Name x, in(0, order));
  LOOM_ASSIGN(Name y, taken(x, ranges, from.dims, order));
  return define(0, y, std::move(dims), order, from.type);
}

// What STRIDED_SLICE takes of each axis, and the axes of what it gives.
struct TfliteGraph::Strides {
  std::vector<Range> ranges;
  List dims;
  bool reshapes = false;
};

// Masks have a bit for each place of the lists. An ellipsis stands for all axes that no place
// names.
Result<TfliteGraph::Strides> TfliteGraph::strides(const List& have) {
  LOOM_ASSIGN(const List begin, integers(1));
  LOOM_ASSIGN(const List end, integers(2));
  LOOM_ASSIGN(const List step, integers(3));
  const size_t places = begin.size();
  if (places > 16 || end.size() != places || step.size() != places)
    return refuse("lists of different lengths");
  const auto bit = [&](size_t mask, size_t i) { return (whole(mask) >> i & 1) != 0; };
  size_t named = 0, ellipses = 0;
  for (size_t i = 0; i < places; ++i) {
    if (bit(2, i)) {
      ++ellipses;
    } else if (!bit(3, i)) {
      ++named;
    }
  }
  if (named > have.size() || ellipses > 1) return refuse("more places than its input has axes");
  Strides out;
  const auto all_of = [&] {
    out.dims.push_back(have[out.ranges.size()]);
    out.ranges.push_back({0, have[out.ranges.size()], 1});
  };
  for (size_t i = 0; i < places; ++i) {
    if (bit(2, i)) {
      for (size_t k = named; k < have.size(); ++k) all_of();
      continue;
    }
    if (bit(3, i)) {
      out.dims.push_back(1);
      out.reshapes = true;
      continue;
    }
    const int64_t extent = have[out.ranges.size()], s = step[i];
    if (s == 0 || s > kMostExtentOfAxis || s < -kMostExtentOfAxis) return refuse("a step of 0");
    const auto clamped = [&](int64_t p) {
      if (p < 0) p += extent;
      return s > 0 ? std::clamp(p, int64_t{0}, extent) : std::clamp(p, int64_t{-1}, extent - 1);
    };
    int64_t first = bit(0, i) ? (s > 0 ? 0 : extent - 1) : clamped(begin[i]);
    // With `offset` the end is counted from the beginning.
    const int64_t given = flag(5) ? begin[i] + end[i] : end[i];
    int64_t last = bit(1, i) ? (s > 0 ? extent : -1) : clamped(given);
    if (bit(4, i)) {
      first = begin[i] < 0 ? begin[i] + extent : begin[i];
      if (first < 0 || first >= extent) return refuse("a place outside of its axis");
      out.ranges.push_back({first, 1, 1});
      out.reshapes = true;
      continue;
    }
    const int64_t span = s > 0 ? last - first : first - last, size = s > 0 ? s : -s;
    const int64_t count = span <= 0 ? 0 : (span + size - 1) / size;
    if (count < 1) return refuse("a slice of nothing");
    out.ranges.push_back({first, count, s});
    out.dims.push_back(count);
  }
  while (out.ranges.size() < have.size()) all_of();
  return out;
}

Status TfliteGraph::strided_slice() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  LOOM_ASSIGN(const Strides how, strides(from.dims));
  LOOM_ASSIGN(Order order, order_of({0}));
  LOOM_ASSIGN(Name y, in(0, order));
  LOOM_ASSIGN(y, taken(y, how.ranges, from.dims, order));
  if (how.reshapes) {
    if (order == Order::first) {
      LOOM_ASSIGN(y, moved(y, {std::begin(kToLast), std::end(kToLast)}));
      order = Order::plain;
    }
    LOOM_ASSIGN(y, shaped(y, how.dims));
  }
  return define(0, y, how.dims, order, from.type);
}

// Input `from` cut along an axis: one output for each width.
Status TfliteGraph::parts(size_t from_input, int64_t along, const List& widths) {
  LOOM_ASSIGN(const Value* v, value(from_input));
  const Value from = *v;
  LOOM_ASSIGN(const Order order, order_of({from_input}));
  LOOM_ASSIGN(const Name x, in(from_input, order));
  const auto at = static_cast<size_t>(along);
  const int64_t here = order == Order::first ? kAxisFirst[at] : along;
  LOOM_ASSIGN(Names made, add_many("Split", {x, list(widths)}, {{"axis", here}}, widths.size()));
  for (size_t i = 0; i < widths.size(); ++i) {
    List dims = from.dims;
    dims[at] = widths[i];
    LOOM_TRY(define(i, made[i], std::move(dims), order, from.type));
  }
  return {};
}

// SPLIT: axis, value. SPLIT_V: value, widths, axis; one width may be -1.
Status TfliteGraph::split() {
  const bool equal = op_->code == kSplit;
  const size_t from = equal ? 1 : 0;
  LOOM_ASSIGN(const List have, dims(from));
  LOOM_ASSIGN(const int64_t given, integer(equal ? 0 : 2));
  LOOM_ASSIGN(const int64_t along, axis(given, have.size()));
  const int64_t extent = have[static_cast<size_t>(along)];
  const auto count = static_cast<int64_t>(op_->outputs.size());
  List widths(op_->outputs.size(), extent / count);
  if (!equal) {
    LOOM_ASSIGN(widths, integers(1));
  }
  int64_t sum = 0, *open = nullptr;
  for (int64_t& w : widths) {
    if (w == -1 && open == nullptr) {
      open = &w;
    } else if (w < 1 || w > extent - sum) {
      return refuse("widths that do not fit its axis");
    } else {
      sum += w;
    }
  }
  if (open != nullptr) *open = extent - sum;
  if (static_cast<int64_t>(widths.size()) != count || (open == nullptr && sum != extent) ||
      (open != nullptr && *open < 1))
    return refuse("widths that do not make up its axis, or are not one for each output");
  return parts(from, along, widths);
}

Status TfliteGraph::pack() {
  LOOM_ASSIGN(const Value* first, value(0));
  const Value like = *first;
  LOOM_ASSIGN(const int64_t along, axis(whole(1), like.dims.size() + 1));
  List one = like.dims;
  one.insert(one.begin() + along, 1);
  Names names;
  for (size_t i = 0; i < op_->inputs.size(); ++i) {
    LOOM_ASSIGN(const List have, dims(i));
    if (have != like.dims) return refuse("packs values of different shapes");
    LOOM_ASSIGN(const Name x, in(i));
    LOOM_ASSIGN(names.emplace_back(), shaped(x, one));
  }
  one[static_cast<size_t>(along)] = static_cast<int64_t>(names.size());
  LOOM_ASSIGN(Name y, add("Concat", names, {{"axis", along}}));
  return define(0, y, std::move(one), Order::plain, like.type);
}

Status TfliteGraph::unpack() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  LOOM_ASSIGN(const int64_t along, axis(whole(1), from.dims.size()));
  const auto at = static_cast<size_t>(along);
  if (from.dims[at] != static_cast<int64_t>(op_->outputs.size()))
    return refuse("as many outputs as its axis has places are needed");
  LOOM_ASSIGN(const Name x, in(0));
  const List ones(op_->outputs.size(), 1);
  LOOM_ASSIGN(const Names made, add_many("Split", {x, list(ones)}, {{"axis", along}}, ones.size()));
  List dims = from.dims;
  dims.erase(dims.begin() + along);
  for (size_t i = 0; i < made.size(); ++i) {
    LOOM_ASSIGN(Name y, shaped(made[i], dims));
    LOOM_TRY(define(i, y, dims, Order::plain, from.type));
  }
  return {};
}

// GATHER: values, places. EMBEDDING_LOOKUP: places, values.
Status TfliteGraph::gather() {
  const bool looks_up = op_->code == kEmbeddingLookup;
  const size_t table = looks_up ? 1 : 0, places = looks_up ? 0 : 1;
  LOOM_ASSIGN(const Value* v, value(table));
  const Value from = *v;
  LOOM_ASSIGN(const List at, dims(places));
  LOOM_ASSIGN(const int64_t along, axis(looks_up ? 0 : whole(0), from.dims.size()));
  if (!looks_up && whole(1) != 0) return refuse("places for each sample (batch_dims)");
  List dims(from.dims.begin(), from.dims.begin() + along);
  dims.insert(dims.end(), at.begin(), at.end());
  dims.insert(dims.end(), from.dims.begin() + along + 1, from.dims.end());
  LOOM_ASSIGN(const Name x, in(table));
  LOOM_ASSIGN(const Name where, in(places));
  LOOM_ASSIGN(Name y, add("Gather", {x, where}, {{"axis", along}}));
  return define(0, y, std::move(dims), Order::plain, from.type);
}

Status TfliteGraph::gather_nd() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  LOOM_ASSIGN(const List at, dims(1));
  const int64_t width = at.empty() ? 0 : at.back();
  if (width < 1 || width > static_cast<int64_t>(from.dims.size()))
    return refuse("places that do not fit the axes of its input");
  List dims(at.begin(), at.end() - 1);
  dims.insert(dims.end(), from.dims.begin() + width, from.dims.end());
  LOOM_ASSIGN(const Name x, in(0));
  LOOM_ASSIGN(const Name given, in(1));
  LOOM_ASSIGN(const Name where,
              add("Cast", {given}, {{"to", static_cast<int64_t>(OnnxType::i64)}}));
  LOOM_ASSIGN(Name y, add("GatherND", {x, where}));
  return define(0, y, std::move(dims), Order::plain, from.type);
}

Status TfliteGraph::tile() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  LOOM_ASSIGN(const List times, integers(1));
  if (times.size() != from.dims.size()) return refuse("a number for each axis is needed");
  List dims = from.dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (times[i] < 1 || times[i] > kMostExtentOfAxis / dims[i])
      return refuse("a number that cannot be");
    dims[i] *= times[i];
  }
  if (count_of(dims) > left_ && known(from.plain))
    return refuse("a constant that is far too large");
  LOOM_ASSIGN(const Name x, in(0));
  LOOM_ASSIGN(Name y, add("Tile", {x, list(times)}));
  return define(0, y, std::move(dims), Order::plain, from.type);
}

Status TfliteGraph::broadcast_to() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  LOOM_ASSIGN(const List to, integers(1));
  Result<List> dims = broadcast_dims(from.dims, to);
  if (!dims.ok() || *dims != to || count_of(to) < 1)
    return refuse("a shape that its input does not fit");
  if (count_of(to) > left_ && known(from.plain)) return refuse("a constant that is far too large");
  LOOM_ASSIGN(const Name x, in(0));
  LOOM_ASSIGN(Name y, add("Expand", {x, list(to)}));
  return define(0, y, to, Order::plain, from.type);
}

Status TfliteGraph::fill() {
  LOOM_ASSIGN(const List to, integers(0));
  LOOM_ASSIGN(const Value* v, value(1));
  const OnnxType type = v->type;
  if (count_of(v->dims) != 1 || count_of(to) < 1 || count_of(to) > left_)
    return refuse("a shape that cannot be, or a value that is not one number");
  LOOM_ASSIGN(const Name x, in(1));
  LOOM_ASSIGN(Name y, add("Expand", {x, list(to)}));
  return define(0, y, to, Order::plain, type);
}

Status TfliteGraph::range() {
  Names inputs;
  if (!options_.folder) return refuse("needs a build with the evaluator of ONNX");
  for (size_t i = 0; i < 3; ++i) {
    LOOM_ASSIGN(const List one, dims(i));
    LOOM_ASSIGN(const Name x, in(i));
    if (known(x) == nullptr || count_of(one) != 1)
      return refuse("is read of numbers that are known");
    LOOM_ASSIGN(inputs.emplace_back(), shaped(x, {}));
  }
  LOOM_ASSIGN(Name y, add("Range", inputs));
  return define(0, y, {1});
}

// SHAPE and RANK: known, since shapes are.
Status TfliteGraph::shape() {
  LOOM_ASSIGN(const List have, dims(0));
  const bool rank = op_->code == kRank;
  const List all = rank ? List{static_cast<int64_t>(have.size())} : have;
  const List dims = rank ? List{} : List{static_cast<int64_t>(have.size())};
  if (out_tensor().type == TfliteType::i64)
    return define(0, keep(onnx_tensor("", dims, std::span<const int64_t>(all))), dims);
  OnnxTensor t;
  t.type = OnnxType::i32;
  t.shape = dims;
  std::vector<int32_t> narrow;
  for (const int64_t d : all) {
    if (d > kMostExtentOfAxis - 1) return refuse("an extent that cannot be");
    narrow.push_back(static_cast<int32_t>(d));
  }
  const auto bytes = std::as_bytes(std::span(narrow));
  t.own.assign(bytes.begin(), bytes.end());
  return define(0, keep(std::move(t)), dims);
}

Status TfliteGraph::zeros_like() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  const int64_t count = count_of(from.dims);
  if (count > left_) return refuse("a constant that is far too large");
  left_ -= count;
  OnnxTensor t;
  t.type = from.type;
  t.shape = from.dims;
  t.own.assign(static_cast<size_t>(count) * onnx_type_bytes(from.type), std::byte{0});
  return define(0, keep(std::move(t)), from.dims);
}

Status TfliteGraph::reverse() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  LOOM_ASSIGN(const List given, integers(1));
  LOOM_ASSIGN(const Order order, order_of({0}));
  std::vector<Range> ranges;
  for (const int64_t d : from.dims) ranges.push_back({0, d, 1});
  for (const int64_t a : given) {
    LOOM_ASSIGN(const int64_t at, axis(a, from.dims.size()));
    const int64_t extent = from.dims[static_cast<size_t>(at)];
    ranges[static_cast<size_t>(at)] = {extent - 1, extent, -1};
  }
  LOOM_ASSIGN(const Name x, in(0, order));
  LOOM_ASSIGN(Name y, taken(x, ranges, from.dims, order));
  return define(0, y, from.dims, order, from.type);
}

}  // namespace loom::core
