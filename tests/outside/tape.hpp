// Doubles that know their derivatives. Their arithmetic is recorded on a tape, which gives the
// derivative of one result by every input (reverse mode, one scalar at a time). It is slow and
// simple, the oracle of the tests in this folder. It shares no code with the engine.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace loom::core::outside {

class Tape {
 public:
  struct Node {
    int32_t a, b;
    double da, db;
  };
  int32_t add(int32_t a, double da, int32_t b = -1, double db = 0) {
    nodes_.push_back({a, b, da, db});
    return static_cast<int32_t>(nodes_.size()) - 1;
  }
  // d result / d node, for every node.
  std::vector<double> derivatives(int32_t result) const {
    std::vector<double> d(nodes_.size(), 0.0);
    if (result >= 0) d[static_cast<size_t>(result)] = 1.0;
    for (size_t i = nodes_.size(); i-- > 0;) {
      const Node& n = nodes_[i];
      if (n.a >= 0) d[static_cast<size_t>(n.a)] += n.da * d[i];
      if (n.b >= 0) d[static_cast<size_t>(n.b)] += n.db * d[i];
    }
    return d;
  }

 private:
  std::vector<Node> nodes_;
};

// A number, and its position on the tape; without a tape it is a constant.
struct Var {
  double value = 0;
  Tape* tape = nullptr;
  int32_t at = -1;

  Var() = default;
  Var(double v) : value(v) {}
  Var(double v, Tape& t) : value(v), tape(&t), at(t.add(-1, 0)) {}
};

// f(a), whose derivative is da.
inline Var one(double value, const Var& a, double da) {
  Var y(value);
  if (a.tape == nullptr) return y;
  y.tape = a.tape;
  y.at = a.tape->add(a.at, da);
  return y;
}
inline Var two(double value, const Var& a, double da, const Var& b, double db) {
  Var y(value);
  y.tape = a.tape != nullptr ? a.tape : b.tape;
  if (y.tape != nullptr) y.at = y.tape->add(a.at, da, b.at, db);
  return y;
}

inline Var operator+(const Var& a, const Var& b) {
  return two(a.value + b.value, a, 1, b, 1);
}
inline Var operator-(const Var& a, const Var& b) {
  return two(a.value - b.value, a, 1, b, -1);
}
inline Var operator*(const Var& a, const Var& b) {
  return two(a.value * b.value, a, b.value, b, a.value);
}
inline Var operator/(const Var& a, const Var& b) {
  return two(a.value / b.value, a, 1 / b.value, b, -a.value / (b.value * b.value));
}
inline Var exp(const Var& a) {
  const double y = std::exp(a.value);
  return one(y, a, y);
}
inline Var tanh(const Var& a) {
  const double y = std::tanh(a.value);
  return one(y, a, 1 - y * y);
}
inline Var erf(const Var& a) {
  return one(std::erf(a.value), a, 2 / std::sqrt(M_PI) * std::exp(-a.value * a.value));
}
inline Var sqrt(const Var& a) {
  const double y = std::sqrt(a.value);
  return one(y, a, 0.5 / y);
}

}  // namespace loom::core::outside
