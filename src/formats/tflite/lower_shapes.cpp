// Operators that only move values: shapes, slices, joins, indices. See lower.hpp.
#include <algorithm>
#include <numeric>

#include "base/text.hpp"
#include "formats/tflite/lower.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxExtentOfAxis = int64_t{1} << 31;

}  // namespace

void TfliteGraph::reshape() {
  const Value& from = value(0);
  List to = op_->list;
  if (has(1)) {
    to = integers(1);
    if (dims(1).size() > 1) return refuse("a shape that is not a list");
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
  const Name y = shaped(in(0), to);
  define(0, y, to, Order::plain, from.type);
}

void TfliteGraph::squeeze() {
  const Value& from = value(0);
  List gone;
  for (const int64_t given : op_->list) {
    gone.push_back(axis(given, from.dims.size()));
    if (failed()) return;
    if (from.dims[static_cast<size_t>(gone.back())] != 1)
      return refuse("takes away an axis that is not 1");
  }
  List dims;
  for (size_t i = 0; i < from.dims.size(); ++i) {
    const bool named = std::ranges::find(gone, static_cast<int64_t>(i)) != gone.end();
    if (gone.empty() ? from.dims[i] != 1 : !named) dims.push_back(from.dims[i]);
  }
  const Name y = shaped(in(0), dims);
  define(0, y, dims, Order::plain, from.type);
}

void TfliteGraph::expand_dims() {
  const Value& from = value(0);
  const int64_t at = axis(integer(1), from.dims.size() + 1);
  if (failed()) return;
  List dims = from.dims;
  dims.insert(dims.begin() + at, 1);
  const Name y = shaped(in(0), dims);
  define(0, y, dims, Order::plain, from.type);
}

// Makes both orders of a value that exists only with channels first.
void TfliteGraph::transpose() {
  const Value& from = value(0);
  List order = integers(1);
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
  Name y = moved(x, order);
  define(0, y, dims, Order::plain, from.type);
}

void TfliteGraph::concat() {
  const Order order = order_of_all();
  Value like = value(0);
  const int64_t along = axis(integer_option(0), like.dims.size());
  if (failed()) return;
  const auto at = static_cast<size_t>(along);
  Names names;
  int64_t sum = 0;
  for (size_t i = 0; i < op_->inputs.size(); ++i) {
    List have = dims(i);
    if (have.size() != like.dims.size()) return refuse("joins values of different axes");
    sum += have[at];
    have[at] = like.dims[at];
    if (have != like.dims) return refuse("joins values of different shapes");
    names.push_back(in(i, order));
  }
  like.dims[at] = sum;
  const int64_t here = order == Order::first ? kAxisFirst[at] : along;
  Name y = add("Concat", names, {{"axis", here}});
  y = activated(y, integer_option(1));
  define(0, y, like.dims, order, like.type);
}

void TfliteGraph::pad() {
  const Value& from = value(0);
  const List given = integers(1);
  const size_t rank = from.dims.size();
  if (given.size() != 2 * rank) return refuse("pads that are not two for each axis");
  const Order order = order_of({0});
  List dims = from.dims, pads(2 * rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t before = given[2 * i], after = given[2 * i + 1];
    if (before < 0 || after < 0 || before > kMaxExtentOfAxis || after > kMaxExtentOfAxis)
      return refuse("pads that cannot be");
    const auto at =
        static_cast<size_t>(order == Order::first ? kAxisFirst[i] : static_cast<int64_t>(i));
    pads[at] = before;
    pads[rank + at] = after;
    dims[i] += before + after;
  }
  const Name x = in(0, order);
  Names inputs = {x, list(pads)};
  if (op_->code == kPadV2) {
    if (count_of(value(2).dims) != 1) return refuse("a value that is not one number");
    inputs.push_back(shaped(in(2), {}));
  }
  Name y = add("Pad", inputs);
  define(0, y, dims, order, from.type);
}

// Values of the edge again, turned around: with the edge itself (1) or without (0).
void TfliteGraph::mirror_pad() {
  const Value& from = value(0);
  const List given = integers(1);
  if (given.size() != 2 * from.dims.size()) return refuse("pads that are not two for each axis");
  const Order order = order_of({0});
  Name y = in(0, order);
  List dims = from.dims;
  const int64_t less = integer_option(0) == 0 ? 1 : 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t extent = dims[i], before = given[2 * i], after = given[2 * i + 1];
    if (before < 0 || after < 0 || before > extent - less || after > extent - less)
      return refuse("pads that are more than its input holds");
    if (before == 0 && after == 0) continue;
    List indices;
    for (int64_t k = -before; k < extent + after; ++k) {
      if (indices.size() > kMaxTfliteList) return refuse("pads that are too many");
      indices.push_back(k < 0 ? -k - 1 + less : k < extent ? k : 2 * extent - 1 - less - k);
    }
    const auto axis = static_cast<int64_t>(i);
    y = gather_at(y, indices, order == Order::first ? kAxisFirst[i] : axis);
    dims[i] = extent + before + after;
  }
  define(0, y, dims, order, from.type);
}

// x at a range of each axis. Backwards it is a list of places.
TfliteGraph::Name TfliteGraph::taken(Name x, const std::vector<Range>& ranges, const List& have,
                                     Order order) {
  List starts, ends, axes, steps;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Range& r = ranges[i];
    if (r.start == 0 && r.step == 1 && r.count == have[i]) continue;
    const int64_t at = order == Order::first ? kAxisFirst[i] : static_cast<int64_t>(i);
    if (r.step < 0) {
      List indices;
      if (r.count > static_cast<int64_t>(kMaxTfliteList)) refuse("places that are too many");
      if (failed()) return kNone;
      for (int64_t k = 0; k < r.count; ++k) indices.push_back(r.start + k * r.step);
      x = gather_at(x, indices, at);
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

void TfliteGraph::slice() {
  const Value& from = value(0);
  const List begin = integers(1);
  const List size = integers(2);
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
  const Order order = order_of({0});
  const Name x = in(0, order);
  Name y = taken(x, ranges, from.dims, order);
  define(0, y, dims, order, from.type);
}

// The range that STRIDED_SLICE takes of each axis, and the axes of its result.
struct TfliteGraph::Strides {
  std::vector<Range> ranges;
  List dims;
  bool reshapes = false;
};

// Masks have a bit for each place of the lists. An ellipsis stands for all axes that no place
// names.
TfliteGraph::Strides TfliteGraph::strides(const List& have) {
  const List begin = integers(1);
  const List end = integers(2);
  const List step = integers(3);
  const size_t indices = begin.size();
  Strides out;
  if (indices > 16 || end.size() != indices || step.size() != indices)
    refuse("lists of different lengths");
  if (failed()) return out;
  const auto bit = [&](size_t mask, size_t i) { return (integer_option(mask) >> i & 1) != 0; };
  size_t named = 0, ellipses = 0;
  for (size_t i = 0; i < indices; ++i) {
    if (bit(2, i)) {
      ++ellipses;
    } else if (!bit(3, i)) {
      ++named;
    }
  }
  if (named > have.size() || ellipses > 1) refuse("more places than its input has axes");
  const auto all_of = [&] {
    out.dims.push_back(have[out.ranges.size()]);
    out.ranges.push_back({0, have[out.ranges.size()], 1});
  };
  for (size_t i = 0; i < indices && !failed(); ++i) {
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
    if (s == 0 || s > kMaxExtentOfAxis || s < -kMaxExtentOfAxis) {
      refuse("a step of 0");
      break;
    }
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
      if (first < 0 || first >= extent) refuse("a place outside of its axis");
      out.ranges.push_back({first, 1, 1});
      out.reshapes = true;
      continue;
    }
    const int64_t span = s > 0 ? last - first : first - last, size = s > 0 ? s : -s;
    const int64_t count = span <= 0 ? 0 : (span + size - 1) / size;
    if (count < 1) refuse("a slice of nothing");
    out.ranges.push_back({first, count, s});
    out.dims.push_back(count);
  }
  while (out.ranges.size() < have.size()) all_of();
  return failed() ? Strides() : out;
}

void TfliteGraph::strided_slice() {
  const Value& from = value(0);
  const Strides how = strides(from.dims);
  Order order = order_of({0});
  Name y = in(0, order);
  y = taken(y, how.ranges, from.dims, order);
  if (how.reshapes) {
    if (order == Order::first) {
      y = moved(y, {std::begin(kToLast), std::end(kToLast)});
      order = Order::plain;
    }
    y = shaped(y, how.dims);
  }
  define(0, y, how.dims, order, from.type);
}

// Input `from` cut along an axis: one output for each width.
void TfliteGraph::parts(size_t from_input, int64_t along, const List& widths) {
  const Value& from = value(from_input);
  const Order order = order_of({from_input});
  const Name x = in(from_input, order);
  const auto at = static_cast<size_t>(along);
  const int64_t here = order == Order::first ? kAxisFirst[at] : along;
  Names made = add_many("Split", Names{x, list(widths)}, {{"axis", here}}, widths.size());
  for (size_t i = 0; i < widths.size(); ++i) {
    List dims = from.dims;
    dims[at] = widths[i];
    define(i, made[i], dims, order, from.type);
  }
}

// SPLIT: axis, value. SPLIT_V: value, widths, axis; one width may be -1.
void TfliteGraph::split() {
  const bool equal = op_->code == kSplit;
  const size_t from = equal ? 1 : 0;
  const List have = dims(from);
  const int64_t along = axis(integer(equal ? 0 : 2), have.size());
  if (failed()) return;
  const int64_t extent = have[static_cast<size_t>(along)];
  const auto count = static_cast<int64_t>(op_->outputs.size());
  List widths(op_->outputs.size(), extent / count);
  if (!equal) widths = integers(1);
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
  parts(from, along, widths);
}

void TfliteGraph::pack() {
  const Value& like = value(0);
  const int64_t along = axis(integer_option(1), like.dims.size() + 1);
  if (failed()) return;
  List one = like.dims;
  one.insert(one.begin() + along, 1);
  Names names;
  for (size_t i = 0; i < op_->inputs.size(); ++i) {
    const List have = dims(i);
    if (have != like.dims) return refuse("packs values of different shapes");
    const Name x = in(i);
    names.push_back(shaped(x, one));
  }
  one[static_cast<size_t>(along)] = static_cast<int64_t>(names.size());
  Name y = add("Concat", names, {{"axis", along}});
  define(0, y, one, Order::plain, like.type);
}

void TfliteGraph::unpack() {
  const Value& from = value(0);
  const int64_t along = axis(integer_option(1), from.dims.size());
  if (failed()) return;
  const auto at = static_cast<size_t>(along);
  if (from.dims[at] != static_cast<int64_t>(op_->outputs.size()))
    return refuse("as many outputs as its axis has places are needed");
  const Name x = in(0);
  const List ones(op_->outputs.size(), 1);
  const Names made = add_many("Split", Names{x, list(ones)}, {{"axis", along}}, ones.size());
  List dims = from.dims;
  dims.erase(dims.begin() + along);
  for (size_t i = 0; i < made.size(); ++i) {
    Name y = shaped(made[i], dims);
    define(i, y, dims, Order::plain, from.type);
  }
}

// GATHER: values, places. EMBEDDING_LOOKUP: places, values.
void TfliteGraph::gather() {
  const bool looks_up = op_->code == kEmbeddingLookup;
  const size_t table = looks_up ? 1 : 0, indices = looks_up ? 0 : 1;
  const Value& from = value(table);
  const List& at = dims(indices);
  const int64_t along = axis(looks_up ? 0 : integer_option(0), from.dims.size());
  if (failed()) return;
  if (!looks_up && integer_option(1) != 0) return refuse("places for each sample (batch_dims)");
  List dims(from.dims.begin(), from.dims.begin() + along);
  dims.insert(dims.end(), at.begin(), at.end());
  dims.insert(dims.end(), from.dims.begin() + along + 1, from.dims.end());
  const Name x = in(table);
  const Name where = in(indices);
  Name y = add("Gather", {x, where}, {{"axis", along}});
  define(0, y, dims, Order::plain, from.type);
}

void TfliteGraph::gather_nd() {
  const Value& from = value(0);
  const List at = dims(1);
  const int64_t width = at.empty() ? 0 : at.back();
  if (width < 1 || width > static_cast<int64_t>(from.dims.size()))
    return refuse("places that do not fit the axes of its input");
  List dims(at.begin(), at.end() - 1);
  dims.insert(dims.end(), from.dims.begin() + width, from.dims.end());
  const Name x = in(0);
  const Name where = as_type(in(1), OnnxType::i64);
  Name y = add("GatherND", {x, where});
  define(0, y, dims, Order::plain, from.type);
}

void TfliteGraph::tile() {
  const Value& from = value(0);
  const List times = integers(1);
  if (times.size() != from.dims.size()) return refuse("a number for each axis is needed");
  List dims = from.dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (times[i] < 1 || times[i] > kMaxExtentOfAxis / std::max<int64_t>(dims[i], 1))
      return refuse("a number that cannot be");
    dims[i] *= times[i];
  }
  const int64_t count = count_of(dims);
  if ((count < 0 || count > left_) && known(from.plain))
    return refuse("a constant that is far too large");
  define(0, add("Tile", {in(0), list(times)}), dims, Order::plain, from.type);
}

void TfliteGraph::broadcast_to() {
  const Value& from = value(0);
  const List to = integers(1);
  if (broadcast(from.dims, to) != to || count_of(to) < 1)
    return refuse("a shape that its input does not fit");
  if (count_of(to) > left_ && known(from.plain)) return refuse("a constant that is far too large");
  define(0, add("Expand", {in(0), list(to)}), to, Order::plain, from.type);
}

void TfliteGraph::fill() {
  const List to = integers(0);
  const Value& v = value(1);
  if (count_of(v.dims) != 1 || count_of(to) < 1 || count_of(to) > left_)
    return refuse("a shape that cannot be, or a value that is not one number");
  const Name x = in(1);
  Name y = add("Expand", {x, list(to)});
  define(0, y, to, Order::plain, v.type);
}

void TfliteGraph::range() {
  Names inputs;
  if (!options_.folder) return refuse("needs a build with the evaluator of ONNX");
  for (size_t i = 0; i < 3; ++i) {
    const List one = dims(i);
    const Name x = in(i);
    if (known(x) == nullptr || count_of(one) != 1)
      return refuse("is read of numbers that are known");
    inputs.push_back(shaped(x, {}));
  }
  Name y = add("Range", inputs);
  define(0, y, {1});
}

// SHAPE and RANK: known, since shapes are.
void TfliteGraph::shape() {
  const List have = dims(0);
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
    if (d > kMaxExtentOfAxis - 1) return refuse("an extent that cannot be");
    narrow.push_back(static_cast<int32_t>(d));
  }
  const auto bytes = std::as_bytes(std::span(narrow));
  t.own.assign(bytes.begin(), bytes.end());
  define(0, keep(std::move(t)), dims);
}

void TfliteGraph::zeros_like() {
  const Value& from = value(0);
  const int64_t count = count_of(from.dims);
  if (count < 0 || count > left_) return refuse("a constant that is far too large");
  left_ -= count;
  OnnxTensor t;
  t.type = from.type;
  t.shape = from.dims;
  t.own.assign(static_cast<size_t>(count) * onnx_type_bytes(from.type), std::byte{0});
  define(0, keep(std::move(t)), from.dims);
}

void TfliteGraph::reverse() {
  const Value& from = value(0);
  const List given = integers(1);
  const Order order = order_of({0});
  std::vector<Range> ranges;
  for (const int64_t d : from.dims) ranges.push_back({0, d, 1});
  for (const int64_t a : given) {
    const int64_t at = axis(a, from.dims.size());
    if (failed()) return;
    const int64_t extent = from.dims[static_cast<size_t>(at)];
    ranges[static_cast<size_t>(at)] = {extent - 1, extent, -1};
  }
  const Name x = in(0, order);
  Name y = taken(x, ranges, from.dims, order);
  define(0, y, from.dims, order, from.type);
}

}  // namespace loom::core
