// One operator at work: what it reads, what it gives, what it may ask for. Operators are functions
// of a Call in files by family, listed in operators.hpp. An operator checks its inputs itself:
// files and data are not trusted.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "base/thread_pool.hpp"
#include "onnx/operators/value.hpp"
#include "ops/args.hpp"
#include "ops/fwd.hpp"

namespace loom::core::evaluate {

struct Body;

// What a run has for all of its operators.
struct Runtime {
  Memory& memory;
  ThreadPool& pool;
  Recorder& recorder;  // kernels of the backend
  int depth = 0;       // graphs inside of graphs
  Profile* profile = nullptr;
};

// What an operator made of its constant inputs when the graph was opened: packed weights, say.
struct Prepared {
  virtual ~Prepared() = default;
};

class Call {
 public:
  Call(const OnnxNode& n, int64_t version, Runtime& r, std::span<const Slot* const> inputs,
       std::span<Slot> outputs)
      : node(n), opset(version), rt(r), in(inputs), out(outputs) {}
  const OnnxNode& node;
  int64_t opset;
  Runtime& rt;
  std::span<const Slot* const> in;
  std::span<Slot> out;
  std::span<const std::unique_ptr<Body>> bodies;  // of graph attributes, in their order
  std::span<const Slot> outer;                    // the values around those
  const Prepared* prepared = nullptr;

  bool has(size_t i) const { return i < in.size() && in[i]->kind == Slot::Kind::tensor; }
  const Value& value(size_t i) const { return in[i]->tensor; }
  const Slot& slot(size_t i) const { return *in[i]; }
  bool wants(size_t i) const { return i < out.size() && !node.outputs[i].empty(); }
  Result<Value> make(OnnxType type, Dims dims) const {
    return Value::make(rt.memory, type, std::move(dims));
  }
  Result<Value> widened(size_t i) const { return widen(rt.memory, in[i]->tensor); }
  Result<Value> as(size_t i, OnnxType type) const { return cast(rt.memory, in[i]->tensor, type); }
  Status give(Value v, size_t i = 0) const {
    if (i < out.size()) out[i] = Slot::of(std::move(v));
    return {};
  }
  // `v` in `type`, as output i.
  Status give_as(const Value& v, OnnxType type, size_t i = 0) const;

  // Attributes.
  int64_t integer(std::string_view name, int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string otherwise) const;
  Dims list(std::string_view name) const;  // empty: absent
  bool given(std::string_view name) const { return node.find(name) != nullptr; }
  // An input as a list of whole numbers; empty: left out.
  Result<Dims> whole(size_t i) const;
  // The same of an input of one axis.
  Result<Dims> whole_list(size_t i) const;
  Result<int64_t> whole_number(size_t i, int64_t otherwise) const;
  Result<double> number(size_t i, double otherwise) const;
  // From -rank to rank - 1, as 0 to rank - 1.
  Result<int> axis(int64_t axis, int rank) const;
  Result<std::vector<int>> axes(const Dims& list, int rank) const;

  Error bad(std::string_view why) const;
  Error not_done(std::string_view what) const;  // unsupported
  Status same_type(size_t a, size_t b) const;

  // f(begin, end) over parts of [0, count), on all lanes when that is worth it; `cost`: about how
  // many nanoseconds one takes.
  void parallel(int64_t count, double cost, const std::function<void(int64_t, int64_t)>& f) const;
};

// Calls f with a value of the C++ type of a computing type.
template <class F>
auto with_type(OnnxType computing, F f) {
  switch (computing) {
    case OnnxType::f32: return f(float{});
    case OnnxType::f64: return f(double{});
    case OnnxType::i64: return f(int64_t{});
    default: return f(uint64_t{});
  }
}
template <class F>
auto with_real(OnnxType computing, F f) {
  return computing == OnnxType::f64 ? f(double{}) : f(float{});
}

// What shapes are under broadcasting; false: they do not fit.
bool broadcast(Dims& into, const Dims& other);
// Steps of an array of `dims` inside of the larger `whole`: 0 along axes that are repeated.
Dims broadcast_steps(const Dims& dims, const Dims& whole);
// `v` repeated to `dims`, which it fits.
Result<Value> expanded(Memory& memory, const Value& v, const Dims& dims);

// Elements of up to N arrays that are walked side by side, row by row: f(places, n, steps) for the
// rows `begin` to `end` of all, where array k has its values at places[k] + i steps[k], i < n.
template <size_t N>
class SideBySide {
 public:
  // Axes along which all arrays go on as they began become one.
  SideBySide(const Dims& dims, const std::array<Dims, N>& steps) {
    for (size_t a = 0; a < dims.size(); ++a) {
      if (dims[a] == 1) continue;
      bool merges = !dims_.empty();
      for (size_t k = 0; merges && k < N; ++k) merges = steps_[k].back() == steps[k][a] * dims[a];
      if (merges) {
        dims_.back() *= dims[a];
        for (size_t k = 0; k < N; ++k) steps_[k].back() = steps[k][a];
      } else {
        dims_.push_back(dims[a]);
        for (size_t k = 0; k < N; ++k) steps_[k].push_back(steps[k][a]);
      }
    }
    if (dims_.empty()) {
      dims_.push_back(product(dims));
      for (auto& s : steps_) s.push_back(0);
    }
  }
  int64_t rows() const { return product(dims_, 0, static_cast<int>(dims_.size()) - 1); }
  int64_t row() const { return dims_.back(); }
  template <class F>
  void run(int64_t begin, int64_t end, F f) const {
    const size_t outer = dims_.size() - 1;
    Dims at(outer, 0);
    std::array<int64_t, N> place{}, step{};
    int64_t rest = begin;
    for (size_t a = outer; a-- > 0;) {
      at[a] = rest % dims_[a];
      rest /= dims_[a];
    }
    for (size_t k = 0; k < N; ++k) {
      step[k] = steps_[k][outer];
      for (size_t a = 0; a < outer; ++a) place[k] += at[a] * steps_[k][a];
    }
    for (int64_t r = begin; r < end; ++r) {
      f(place, dims_[outer], step);
      for (size_t a = outer; a-- > 0;) {
        for (size_t k = 0; k < N; ++k) place[k] += steps_[k][a];
        if (++at[a] < dims_[a]) break;
        for (size_t k = 0; k < N; ++k) place[k] -= steps_[k][a] * dims_[a];
        at[a] = 0;
      }
    }
  }
  // All of them, on the lanes of a call; `cost` in nanoseconds of an element.
  template <class F>
  void run_all(const Call& c, double cost, F f) const {
    if (rows() > 1) {
      c.parallel(rows(), cost * static_cast<double>(row()),
                 [&](int64_t begin, int64_t end) { run(begin, end, f); });
      return;
    }
    c.parallel(row(), cost, [&](int64_t begin, int64_t end) {
      std::array<int64_t, N> place{}, step{};
      for (size_t k = 0; k < N; ++k) {
        step[k] = steps_[k].back();
        place[k] = begin * step[k];
      }
      f(place, end - begin, step);
    });
  }

 private:
  Dims dims_;
  std::array<Dims, N> steps_;
};

// y[y_first + sum i_k y_step[k]] = x[x_first + sum i_k x_step[k]] over `dims`: every operator that
// moves elements is a few of these.
struct Move {
  Dims dims, x_steps, y_steps;
  int64_t x_first = 0, y_first = 0;
};
void move(const Call& c, const Value& x, Value& y, const Move& m);
// All elements of y are those of `one`, which has one.
void fill(Value& y, const Value& one);
void fill_zero(Value& y);

// Runs a graph of an attribute.
Result<std::vector<Slot>> run_body(const Call& c, const Body& body, std::vector<Slot> inputs);

}  // namespace loom::core::evaluate
