// One operator at work: what it reads, what it gives, what it may ask for. Operators are functions
// of a Call in files by family, listed in operators.hpp. An operator checks its inputs itself:
// files and data are not trusted.
#pragma once

#include <array>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "onnx/operators/value.hpp"
#include "ops/args.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core::evaluate {

struct Body;

// State that a run shares between its operators.
struct Runtime {
  Memory& memory;
  ThreadPool& pool;
  Recorder& recorder;  // kernels of the backend
  int depth = 0;       // graphs inside of graphs
  Profile* profile = nullptr;
};

// The result of an operator for its constant inputs, made when the graph is opened, for example
// packed weights.
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
  // An input as a list of integers; empty if left out.
  Result<Dims> int_list(size_t i) const;
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

// Broadcasts shapes; false if they do not fit.
bool broadcast(Dims& into, const Dims& other);
// Steps of an array of `dims` inside of the larger `whole`: 0 along axes that are repeated.
Dims broadcast_steps(const Dims& dims, const Dims& whole);
// `v` repeated to `dims`, which it fits.
Result<Value> expanded(Memory& memory, const Value& v, const Dims& dims);

// Elements of up to four arrays that are walked side by side, row by row: f(places, n, steps) for
// the rows `begin` to `end` of all, where array k has its values at places[k] + i steps[k], i < n.
// The walk is compiled once: what f does with the values depends on types, where they are does not.
class SideBySide {
 public:
  using Offsets = std::array<int64_t, 4>;
  using Row = std::function<void(const Offsets&, int64_t, const Offsets&)>;
  // `steps`: those of each array. Axes along which all arrays go on as they began become one.
  SideBySide(const Dims& dims, std::initializer_list<Dims> steps);
  int64_t rows() const { return product(dims_, 0, static_cast<int>(dims_.size()) - 1); }
  int64_t row() const { return dims_.back(); }
  void run(int64_t begin, int64_t end, const Row& f) const;
  // All of them, on the lanes of a call; `cost` in nanoseconds of an element.
  void run_all(const Call& c, double cost, const Row& f) const;

 private:
  Dims dims_;
  std::vector<Dims> steps_;
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
