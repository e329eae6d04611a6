// Lists of tensors, and values that may be absent. See value.hpp.
#include <algorithm>

#include "onnx/interpreter/families.hpp"

namespace loom::core::evaluate {
namespace {

Status is_list(const Call& c, size_t i) {
  return i < c.in.size() && c.slot(i).kind == Slot::Kind::sequence
             ? Status{}
             : c.bad(cat("input ", i, " must be a list"));
}

// An index into a list; `end` also allows the one after the last.
Result<size_t> place_in(const Call& c, size_t i, size_t size, bool end) {
  const auto n = static_cast<int64_t>(size);
  LOOM_ASSIGN(int64_t at, c.whole_number(i, end ? n : -1));
  if (at < 0) at += n;
  if (at < 0 || at >= n + (end ? 1 : 0)) return c.bad(cat("place ", at, " of ", n));
  return static_cast<size_t>(at);
}

Status construct(const Call& c) {
  std::vector<Slot> list;
  for (size_t i = 0; i < c.in.size(); ++i) list.push_back(c.slot(i));
  c.out[0] = Slot::of(std::move(list));
  return {};
}
Status empty_list(const Call& c) {
  c.out[0] = Slot::of(std::vector<Slot>{});
  return {};
}
Status insert(const Call& c) {
  LOOM_TRY(is_list(c, 0));
  std::vector<Slot> list = *c.slot(0).items;
  LOOM_ASSIGN(const size_t at, place_in(c, 2, list.size(), true));
  list.insert(list.begin() + static_cast<int64_t>(at), c.slot(1));
  c.out[0] = Slot::of(std::move(list));
  return {};
}
Status erase(const Call& c) {
  LOOM_TRY(is_list(c, 0));
  std::vector<Slot> list = *c.slot(0).items;
  LOOM_ASSIGN(const size_t at, place_in(c, 1, list.size(), false));
  list.erase(list.begin() + static_cast<int64_t>(at));
  c.out[0] = Slot::of(std::move(list));
  return {};
}
Status element(const Call& c) {
  LOOM_TRY(is_list(c, 0));
  LOOM_ASSIGN(const size_t at, place_in(c, 1, c.slot(0).items->size(), false));
  c.out[0] = (*c.slot(0).items)[at];
  return {};
}
Status length(const Call& c) {
  LOOM_TRY(is_list(c, 0));
  LOOM_ASSIGN(Value n, c.make(OnnxType::i64, {}));
  *n.data<int64_t>() = static_cast<int64_t>(c.slot(0).items->size());
  return c.give(std::move(n));
}

Status split_to_list(const Call& c) {
  if (!c.has(0)) return c.bad("takes a tensor");
  const Value& x = c.value(0);
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", 0), x.rank()));
  const auto a = static_cast<size_t>(axis);
  const int64_t n = x.dims[a];
  LOOM_ASSIGN(Dims parts, c.int_list(1));
  const bool single = !c.has(1);
  if (single) parts.assign(static_cast<size_t>(n), 1);
  if (c.has(1) && c.value(1).rank() == 0) {
    const int64_t each = parts[0];
    if (each < 1) return c.bad("a part of no places");
    parts.clear();
    for (int64_t at = 0; at < n; at += each) parts.push_back(std::min(each, n - at));
  }
  const bool squeezed = single && c.integer("keepdims", 1) == 0;
  std::vector<Slot> list;
  const Dims steps = steps_of(x.dims);
  int64_t at = 0;
  for (const int64_t part : parts) {
    if (part < 0 || part > n - at) return c.bad("parts beyond the axis");
    Dims dims = x.dims;
    dims[a] = part;
    LOOM_ASSIGN(Value y, c.make(x.type, dims));
    move(c, x, y, {dims, steps, steps_of(dims), at * steps[a], 0});
    if (squeezed) {
      dims.erase(dims.begin() + axis);
      y = y.view_as(dims);
    }
    list.push_back(Slot::of(std::move(y)));
    at += part;
  }
  if (at != n) return c.bad("parts that are not the whole axis");
  c.out[0] = Slot::of(std::move(list));
  return {};
}

Status concat_list(const Call& c) {
  LOOM_TRY(is_list(c, 0));
  const std::vector<Slot>& list = *c.slot(0).items;
  if (list.empty()) return c.bad("an empty list");
  const bool fresh = c.integer("new_axis", 0) != 0;
  std::vector<Value> parts;
  for (const Slot& s : list) {
    if (s.kind != Slot::Kind::tensor) return c.bad("takes a list of tensors");
    parts.push_back(s.tensor);
  }
  const int rank = parts[0].rank() + (fresh ? 1 : 0);
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", 0), rank));
  const auto a = static_cast<size_t>(axis);
  for (Value& v : parts) {
    if (!fresh) continue;
    Dims dims = v.dims;
    if (axis > v.rank()) return c.bad("parts of different ranks");
    dims.insert(dims.begin() + axis, 1);
    v = v.view_as(dims);
  }
  Dims dims = parts[0].dims;
  dims[a] = 0;
  for (const Value& v : parts) {
    Dims other = v.dims;
    if (other.size() != dims.size() || v.type != parts[0].type) return c.bad("parts that differ");
    const int64_t extent = other[a];
    other[a] = dims[a];
    if (other != dims) return c.bad("parts that do not fit");
    dims[a] += extent;
  }
  LOOM_ASSIGN(Value y, c.make(parts[0].type, dims));
  const Dims steps = steps_of(dims);
  int64_t at = 0;
  for (const Value& v : parts) {
    move(c, v, y, {v.dims, steps_of(v.dims), steps, 0, at * steps[a]});
    at += v.dims[a];
  }
  return c.give(std::move(y));
}

Status optional(const Call& c) {
  if (c.in.empty())
    c.out[0].kind = Slot::Kind::none;
  else
    c.out[0] = c.slot(0);
  return {};
}
Status has_element(const Call& c) {
  LOOM_ASSIGN(Value y, c.make(OnnxType::boolean, {}));
  const bool there =
      !c.in.empty() && c.slot(0).kind != Slot::Kind::none && c.slot(0).kind != Slot::Kind::absent;
  *y.data<uint8_t>() = there ? 1 : 0;
  return c.give(std::move(y));
}
Status get_element(const Call& c) {
  const Slot::Kind kind = c.slot(0).kind;
  if (kind == Slot::Kind::none || kind == Slot::Kind::absent) return c.bad("no value to get");
  c.out[0] = c.slot(0);
  return {};
}

constexpr uint8_t kLists = Operator::lists;
constexpr Operator kSequences[] = {
    {"", "SequenceConstruct", construct, {}, "", kLists},
    {"", "SequenceEmpty", empty_list, ". dtype", "", kLists},
    {"", "SequenceInsert", insert, {}, "", kLists},
    {"", "SequenceErase", erase, {}, "", kLists},
    {"", "SequenceAt", element, {}, "", kLists},
    {"", "SequenceLength", length, {}, "", kLists},
    {"", "SplitToSequence", split_to_list, {}, "", kLists},
    {"", "ConcatFromSequence", concat_list, {}, "", kLists},
    {"", "Optional", optional, "?a type", "", kLists},
    {"", "OptionalHasElement", has_element, "?a", "", kLists},
    {"", "OptionalGetElement", get_element, "a", "", kLists},
};

}  // namespace

std::span<const Operator> sequence_operators() {
  return kSequences;
}

}  // namespace loom::core::evaluate
