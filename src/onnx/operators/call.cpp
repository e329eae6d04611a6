// Checks of operators for their calls, and the one function that moves elements. See call.hpp.
#include "onnx/operators/call.hpp"

#include <algorithm>
#include <cstring>

namespace loom::core::evaluate {

Status Call::give_as(const Value& v, OnnxType type, size_t i) const {
  LOOM_ASSIGN(Value made, cast(rt.memory, v, type));
  return give(std::move(made), i);
}

int64_t Call::integer(std::string_view name, int64_t otherwise) const {
  const OnnxAttribute* a = node.find(name);
  return a != nullptr && a->type == OnnxAttributeType::integer ? a->integer : otherwise;
}

double Call::real(std::string_view name, double otherwise) const {
  const OnnxAttribute* a = node.find(name);
  return a != nullptr && a->type == OnnxAttributeType::real ? static_cast<double>(a->real)
                                                            : otherwise;
}

std::string Call::text(std::string_view name, std::string otherwise) const {
  const OnnxAttribute* a = node.find(name);
  return a != nullptr && a->type == OnnxAttributeType::text ? a->text : std::move(otherwise);
}

Dims Call::list(std::string_view name) const {
  const OnnxAttribute* a = node.find(name);
  return a != nullptr && a->type == OnnxAttributeType::integers ? a->integers : Dims{};
}

Result<Dims> Call::int_list(size_t i) const {
  if (!has(i)) return Dims{};
  if (is_real(value(i).type)) return bad(cat("input ", i, " must be integers"));
  LOOM_ASSIGN(const Value v, as(i, OnnxType::i64));
  const auto* p = v.data<int64_t>();
  return Dims(p, p + v.count());
}

Result<Dims> Call::whole_list(size_t i) const {
  if (has(i) && value(i).rank() != 1) return bad(cat("input ", i, " must be a list"));
  return int_list(i);
}

Result<int64_t> Call::whole_number(size_t i, int64_t otherwise) const {
  if (!has(i)) return otherwise;
  LOOM_ASSIGN(const Dims list, int_list(i));
  if (list.size() != 1) return bad(cat("input ", i, " must be one number"));
  return list[0];
}

Result<double> Call::number(size_t i, double otherwise) const {
  if (!has(i)) return otherwise;
  if (value(i).count() != 1) return bad(cat("input ", i, " must be one number"));
  LOOM_ASSIGN(const Value v, as(i, OnnxType::f64));
  return *v.data<double>();
}

Result<int> Call::axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank) return bad(cat("axis ", axis, " of ", rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<std::vector<int>> Call::axes(const Dims& list, int rank) const {
  std::vector<int> found;
  for (const int64_t each : list) {
    LOOM_ASSIGN(const int a, axis(each, rank));
    if (std::ranges::find(found, a) != found.end()) return bad(cat("axis ", a, " twice"));
    found.push_back(a);
  }
  return found;
}

Error Call::bad(std::string_view why) const {
  return invalid(cat(
      "node '", printable(node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name),
      "' (", printable(node.op), "): ", why));
}

Error Call::not_done(std::string_view what) const {
  Error error = bad(cat(what, ", which Loom does not compute"));
  error.code = Code::unsupported;
  return error;
}

Status Call::same_type(size_t a, size_t b) const {
  if (value(a).type == value(b).type) return {};
  return bad(cat("inputs of types ", onnx_type_name(value(a).type), " and ",
                 onnx_type_name(value(b).type)));
}

void Call::parallel(int64_t count, double cost,
                    const std::function<void(int64_t, int64_t)>& f) const {
  constexpr double kWorthWaking = 20000;  // nanoseconds
  if (count <= 0) return;
  if (count == 1 || rt.pool.lanes() == 1 || static_cast<double>(count) * cost < kWorthWaking)
    return f(0, count);
  rt.pool.run([&](int lane, int lanes) {
    const LaneRange r = lane_range(count, 1, lane, lanes);
    if (r.begin < r.end) f(r.begin, r.end);
  });
}

bool broadcast(Dims& into, const Dims& other) {
  while (into.size() < other.size()) into.insert(into.begin(), 1);
  for (size_t k = 0; k < other.size(); ++k) {
    int64_t& have = into[into.size() - 1 - k];
    const int64_t extent = other[other.size() - 1 - k];
    if (have != extent && have != 1 && extent != 1) return false;
    if (have == 1) have = extent;
  }
  return true;
}

Dims broadcast_steps(const Dims& dims, const Dims& whole) {
  Dims out(whole.size(), 0);
  const Dims own = steps_of(dims);
  for (size_t k = 0; k < dims.size(); ++k) {
    const size_t at = whole.size() - 1 - k;
    if (dims[dims.size() - 1 - k] != 1) out[at] = own[dims.size() - 1 - k];
  }
  return out;
}

SideBySide::SideBySide(const Dims& dims, std::initializer_list<Dims> steps) : steps_(steps.size()) {
  const Dims* own = steps.begin();
  for (size_t a = 0; a < dims.size(); ++a) {
    if (dims[a] == 1) continue;
    bool merges = !dims_.empty();
    for (size_t k = 0; merges && k < steps_.size(); ++k)
      merges = steps_[k].back() == own[k][a] * dims[a];
    if (merges)
      dims_.back() *= dims[a];
    else
      dims_.push_back(dims[a]);
    for (size_t k = 0; k < steps_.size(); ++k) {
      if (merges) steps_[k].pop_back();
      steps_[k].push_back(own[k][a]);
    }
  }
  if (dims_.empty()) {
    dims_.push_back(product(dims));
    for (Dims& s : steps_) s.push_back(0);
  }
}

void SideBySide::run(int64_t begin, int64_t end, const Row& f) const {
  const size_t outer = dims_.size() - 1;
  Dims at(outer, 0);
  Offsets offsets{}, step{};
  int64_t rest = begin;
  for (size_t a = outer; a-- > 0;) {
    at[a] = rest % dims_[a];
    rest /= dims_[a];
  }
  for (size_t k = 0; k < steps_.size(); ++k) {
    step[k] = steps_[k][outer];
    for (size_t a = 0; a < outer; ++a) offsets[k] += at[a] * steps_[k][a];
  }
  for (int64_t r = begin; r < end; ++r) {
    f(offsets, dims_[outer], step);
    for (size_t a = outer; a-- > 0;) {
      for (size_t k = 0; k < steps_.size(); ++k) offsets[k] += steps_[k][a];
      if (++at[a] < dims_[a]) break;
      for (size_t k = 0; k < steps_.size(); ++k) offsets[k] -= steps_[k][a] * dims_[a];
      at[a] = 0;
    }
  }
}

void SideBySide::run_all(const Call& c, double cost, const Row& f) const {
  if (rows() > 1) {
    c.parallel(rows(), cost * static_cast<double>(row()),
               [&](int64_t begin, int64_t end) { run(begin, end, f); });
    return;
  }
  c.parallel(row(), cost, [&](int64_t begin, int64_t end) {
    Offsets offsets{}, step{};
    for (size_t k = 0; k < steps_.size(); ++k) {
      step[k] = steps_[k].back();
      offsets[k] = begin * step[k];
    }
    f(offsets, end - begin, step);
  });
}

namespace {

// n elements, each its step after the one before it.
template <class T>
void move_row(const std::byte* x, int64_t x_step, std::byte* y, int64_t y_step, int64_t n) {
  const auto* from = reinterpret_cast<const T*>(x);
  auto* to = reinterpret_cast<T*>(y);
  if (x_step == 1 && y_step == 1) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else if (x_step == 0 && y_step == 1) {
    std::fill_n(to, n, *from);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * y_step] = from[i * x_step];
  }
}

void move_any(const Call* c, const Value& x, Value& y, const Move& m) {
  if (product(m.dims) == 0) return;
  const int size = element_bytes(x.type);
  auto* const move_n = size == 1   ? move_row<uint8_t>
                       : size == 2 ? move_row<uint16_t>
                       : size == 4 ? move_row<uint32_t>
                                   : move_row<uint64_t>;
  const auto row = [&](const auto& offsets, int64_t n, const auto& step) {
    move_n(x.data<std::byte>() + (m.x_first + offsets[0]) * size, step[0],
           y.data<std::byte>() + (m.y_first + offsets[1]) * size, step[1], n);
  };
  const SideBySide walk(m.dims, {m.x_steps, m.y_steps});
  if (c == nullptr) return walk.run(0, walk.rows(), row);
  walk.run_all(*c, 0.5, row);
}

}  // namespace

void move(const Call& c, const Value& x, Value& y, const Move& m) {
  move_any(&c, x, y, m);
}

Result<Value> expanded(Memory& memory, const Value& v, const Dims& dims) {
  if (v.dims == dims) return v;
  LOOM_ASSIGN(Value out, Value::make(memory, v.type, dims));
  move_any(nullptr, v, out, {dims, broadcast_steps(v.dims, dims), steps_of(dims)});
  return out;
}

void fill(Value& y, const Value& one) {
  const int64_t n = y.count();
  move_any(nullptr, one, y, {{n}, {0}, {1}});
}

void fill_zero(Value& y) {
  if (y.bytes() > 0) std::memset(y.data<std::byte>(), 0, static_cast<size_t>(y.bytes()));
}

}  // namespace loom::core::evaluate
