// Graphs in the evaluator, and the layers inside them: written from NumPy's rules, index by index.
#include "layers/core/graph.hpp"
#include "outside/evaluator_parts.hpp"

namespace loom::core::outside {
namespace {

// The value at index `at` of `shape` of an array that is broadcast to it.
const Var& broadcast_at(const Array& a, const std::vector<int64_t>& shape,
                        const std::vector<int64_t>& at) {
  int64_t flat_index = 0;
  const size_t missing = shape.size() - a.shape.size();
  for (size_t i = 0; i < a.shape.size(); ++i)
    flat_index = flat_index * a.shape[i] + (a.shape[i] == 1 ? 0 : at[missing + i]);
  return a.v[static_cast<size_t>(flat_index)];
}

// Calls f with every index of the shape, in order of memory.
template <class F>
void each_index(const std::vector<int64_t>& shape, F&& f) {
  std::vector<int64_t> at(shape.size(), 0);
  for (int64_t left = count(shape); left > 0; --left) {
    f(at);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++at[axis] < shape[axis]) break;
      at[axis] = 0;
    }
  }
}

Var apply(std::string_view function, const Var& a, const Var& b) {
  if (function == "add") return a + b;
  if (function == "sub") return a - b;
  if (function == "mul") return a * b;
  if (function == "div") return a / b;
  const bool first = function == "max" ? a.value > b.value : a.value < b.value;
  return first ? a : b;
}

Array binary(std::string_view function, const Array& a, const Array& b) {
  Array y;
  y.shape.assign(std::max(a.shape.size(), b.shape.size()), 1);
  for (const Array* side : {&a, &b}) {
    const size_t missing = y.shape.size() - side->shape.size();
    for (size_t i = 0; i < side->shape.size(); ++i)
      y.shape[missing + i] = std::max(y.shape[missing + i], side->shape[i]);
  }
  each_index(y.shape, [&](const std::vector<int64_t>& at) {
    y.v.push_back(apply(function, broadcast_at(a, y.shape, at), broadcast_at(b, y.shape, at)));
  });
  return y;
}

Array concat(int64_t axis, const std::vector<Array>& parts) {
  const auto along = static_cast<size_t>(axis < 0 ? axis + int64_t(parts[0].shape.size()) : axis);
  Array y{parts[0].shape, {}};
  y.shape[along] = 0;
  for (const Array& part : parts) y.shape[along] += part.shape[along];
  each_index(y.shape, [&](std::vector<int64_t> at) {
    size_t part = 0;
    for (; at[along] >= parts[part].shape[along]; ++part) at[along] -= parts[part].shape[along];
    y.v.push_back(broadcast_at(parts[part], parts[part].shape, at));
  });
  return y;
}

size_t from_front(int64_t axis, const Array& x) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.shape.size()) : axis);
}

Array unary(std::string_view function, const Array& x) {
  Array y = x;
  for (Var& v : y.v) {
    if (function == "square") {
      v = v * v;
    } else if (function == "neg") {
      v = Var(0) - v;
    } else {
      v = activate(function, v);
    }
  }
  return y;
}

Array transpose(const std::vector<int64_t>& axes, const Array& x) {
  Array y;
  for (const int64_t axis : axes) y.shape.push_back(x.shape[from_front(axis, x)]);
  each_index(y.shape, [&](const std::vector<int64_t>& at) {
    std::vector<int64_t> from(at.size());
    for (size_t i = 0; i < at.size(); ++i) from[from_front(axes[i], x)] = at[i];
    y.v.push_back(broadcast_at(x, x.shape, from));
  });
  return y;
}

// Slices of the random graphs name each axis, and positions inside of it.
Array slice(const LayerConfig& c, const Array& x) {
  const auto list = [&](const char* name) { return c.list(field(c, name)); };
  Array y{x.shape, {}};
  std::vector<int64_t> first(x.shape.size(), 0), by(x.shape.size(), 1);
  for (size_t i = 0; i < list("axes").size(); ++i) {
    const size_t axis = from_front(list("axes")[i], x);
    first[axis] = list("starts")[i];
    by[axis] = list("steps")[i];
    int64_t length = 0;
    for (int64_t p = first[axis];
         by[axis] > 0 ? p < list("ends")[i] : p >= 0 && p > list("ends")[i]; p += by[axis])
      ++length;
    y.shape[axis] = length;
  }
  each_index(y.shape, [&](std::vector<int64_t> at) {
    for (size_t i = 0; i < at.size(); ++i) at[i] = first[i] + by[i] * at[i];
    y.v.push_back(broadcast_at(x, x.shape, at));
  });
  return y;
}

// Sums, means and largest values, the axes kept as 1.
Array reduce(std::string_view function, const std::vector<int64_t>& axes, const Array& x) {
  Array y{x.shape, {}};
  int64_t reduced = 1;
  for (const int64_t axis : axes) {
    reduced *= x.shape[from_front(axis, x)];
    y.shape[from_front(axis, x)] = 1;
  }
  y.v.assign(static_cast<size_t>(count(y.shape)), Var(function == "max" ? -1e300 : 0.0));
  each_index(x.shape, [&](const std::vector<int64_t>& at) {
    const Var& v = broadcast_at(x, x.shape, at);
    auto& sum = const_cast<Var&>(broadcast_at(y, x.shape, at));
    if (function == "max") {
      if (v.value > sum.value) sum = v;
    } else {
      sum = sum + (function == "sum_squares" ? v * v : v);
    }
  });
  if (function == "mean") {
    for (Var& v : y.v) v = v * Var(1.0 / static_cast<double>(reduced));
  }
  return y;
}

// [.., M, K] times [.., N, K], equal batches, as in the random graphs.
Array matmul_transposed(const Array& a, const Array& b) {
  Array y{a.shape, {}};
  const int64_t m = a.shape[a.shape.size() - 2], n = b.shape[b.shape.size() - 2];
  y.shape.back() = n;
  for (int64_t row = 0; row < a.rows(); ++row) {
    for (int64_t col = 0; col < n; ++col) {
      Var sum(0);
      for (int64_t k = 0; k < a.last(); ++k) sum = sum + a.at(row, k) * b.at(row / m * n + col, k);
      y.v.push_back(sum);
    }
  }
  return y;
}

}  // namespace

// A layer of any number of inputs.
Array Evaluator::node(const LayerConfig& c, const Place& at, const std::vector<Array>& inputs) {
  const std::string_view name = c.def->name;
  if (c.disabled) return inputs[0];
  if (name == "Concat") return concat(integer_field(c, "axis"), inputs);
  if (name == "Constant") return Array{c.list(field(c, "shape")), param(at, "value")};
  if (name == "MatMul") return matmul_transposed(inputs[0], inputs[1]);
  if (name == "Unary") return unary(text(c, "function"), inputs[0]);
  if (name == "Transpose") return transpose(c.list(field(c, "axes")), inputs[0]);
  if (name == "Slice") return slice(c, inputs[0]);
  if (name == "Reduce") return reduce(text(c, "function"), c.list(field(c, "axes")), inputs[0]);
  if (name != "Binary") return run(c, at, inputs[0], inputs.back());
  Array y = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) y = binary(text(c, "function"), y, inputs[i]);
  return y;
}

Array Evaluator::graph(const LayerConfig& c, const Place& at, const Array& x) {
  const GraphWiring wiring = graph_wiring(c);
  std::vector<Array> made;
  const auto value = [&](const GraphValue& v) {
    return v.node == kGraphInput ? x : made[static_cast<size_t>(v.node)];
  };
  for (size_t i = 0; i < c.children.size(); ++i) {
    std::vector<Array> inputs;
    for (const GraphValue& v : wiring.nodes[i]) inputs.push_back(value(v));
    made.push_back(node(c.children[i], {below(at.own, i), below(at.params, i)}, inputs));
  }
  return value(wiring.outputs[0]);
}

}  // namespace loom::core::outside
