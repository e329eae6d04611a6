#include "outside/evaluator.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "outside/evaluator_parts.hpp"

namespace loom::core::outside {
namespace {

// softmax of values [first, first + n), each times `scale`, in place.
void softmax_run(std::vector<Var>& v, size_t first, size_t n, double scale) {
  double top = v[first].value * scale;
  for (size_t i = 1; i < n; ++i) top = std::max(top, v[first + i].value * scale);
  Var sum(0);
  for (size_t i = 0; i < n; ++i) {
    v[first + i] = exp(v[first + i] * Var(scale) - Var(top));
    sum = sum + v[first + i];
  }
  for (size_t i = 0; i < n; ++i) v[first + i] = v[first + i] / sum;
}

// Values [first, first + gamma) over the root of their mean square.
void rms_run(std::vector<Var>& v, size_t first, const std::vector<Var>& gamma, double eps) {
  const size_t n = gamma.size();
  Var squares(0);
  for (size_t i = 0; i < n; ++i) squares = squares + v[first + i] * v[first + i];
  const Var root = sqrt(squares / Var(static_cast<double>(n)) + Var(eps));
  for (size_t i = 0; i < n; ++i) v[first + i] = v[first + i] / root * gamma[i];
}

}  // namespace

Array array_of(std::vector<int64_t> shape, double value) {
  Array a{std::move(shape), {}};
  a.v.assign(static_cast<size_t>(count(a.shape)), Var(value));
  return a;
}

const std::map<std::string_view, Evaluator::Layer>& Evaluator::layers() {
  static const std::map<std::string_view, Layer> table = {
      {"Dense", &Evaluator::dense},
      {"SwiGLU", &Evaluator::swiglu},
      {"RMSNorm", &Evaluator::rms_norm},
      {"LayerNorm", &Evaluator::layer_norm},
      {"RNN", &Evaluator::rnn},
      {"LSTM", &Evaluator::lstm},
      {"GRU", &Evaluator::gru},
      {"Softmax", &Evaluator::softmax},
      {"KMeans", &Evaluator::kmeans},
      {"Embedding", &Evaluator::embedding},
      {"CNN1", &Evaluator::convolution},
      {"CNN2", &Evaluator::convolution},
      {"Parallel", &Evaluator::parallel},
      {"MultiHeadAttention", &Evaluator::attention},
      {"Sequential", &Evaluator::sequence},
      {"Graph", &Evaluator::graph},
  };
  return table;
}

const std::vector<Var>& Evaluator::param(const Place& at, const char* name) const {
  static const std::vector<Var> none;
  const auto found = params.find(at.params + "/" + name);
  if (found != params.end()) return found->second;
  ADD_FAILURE() << "the network has no parameter " << at.params << "/" << name;
  return none;
}

Array Evaluator::pass(const Array& x, Memory* memory) {
  memory_ = memory;
  std::map<int64_t, Array> made;
  Array value = x, before = x;
  for (int64_t i = 0; i < grid_.size(); ++i) {
    if (grid_.cell(i) == nullptr || grid_.cell(i)->layer.disabled) continue;
    const Cell& cell = *grid_.cell(i);
    Array in = value, skip = before;
    if (cell.link.has_value()) {
      const int64_t from = *grid_.index(cell.link->from);
      Array linked = array_of(fed_back.contains(from) ? fed_back.at(from) : in.shape);
      if (!cell.link->feedback) linked = made.at(from);
      if (cell.link->feedback && before_.contains(from)) linked = before_.at(from);
      const bool second = cell.layer.def->name == "Residual" && cell.layer.children.empty();
      (second ? skip : in) = linked;
    }
    Place at{grid_.coord(i).str(), grid_.coord(i).str()};
    for (const Cell* owner = &cell; owner->shared_with.has_value();) {
      at.params = owner->shared_with->str();
      owner = grid_.find(*owner->shared_with);
    }
    const Array out = run(cell.layer, at, in, skip);
    before = in;
    value = out;
    made[i] = out;
  }
  before_ = made;
  for (auto& [index, array] : before_) {
    for (Var& v : array.v) v = Var(v.value);
  }
  return value;
}

Array Evaluator::run(const LayerConfig& c, const Place& at, const Array& x, const Array& skip) {
  if (c.disabled) return x;
  if (c.def->name == "Residual") return residual(c, at, x, skip);
  return (this->*layers().at(c.def->name))(c, at, x);
}

Array Evaluator::linear(const Place& at, const Array& x, const char* weight,
                        const char* bias) const {
  const std::vector<Var>& w = param(at, weight);
  const std::vector<Var>* b = bias != nullptr ? &param(at, bias) : nullptr;
  const int64_t in = x.last(), out = static_cast<int64_t>(w.size()) / in;
  Array y{x.shape, {}};
  y.shape.back() = out;
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t o = 0; o < out; ++o) {
      Var sum = b != nullptr ? (*b)[static_cast<size_t>(o)] : Var(0);
      for (int64_t i = 0; i < in; ++i) sum = sum + x.at(r, i) * w[static_cast<size_t>(o * in + i)];
      y.v.push_back(sum);
    }
  }
  return y;
}

Array Evaluator::dense(const LayerConfig& c, const Place& at, const Array& x) {
  Array rows = x;
  if (x.last() != integer_field(c, "in")) rows.shape = {x.shape[0], integer_field(c, "in")};
  Array y = linear(at, rows, "weight", real(c, "bias") != 0 ? "bias" : nullptr);
  const double cap = real(c, "soft_cap");
  for (Var& v : y.v) {
    v = activate(text(c, "activation"), v);
    if (cap > 0) v = Var(cap) * tanh(v / Var(cap));
  }
  return y;
}

Array Evaluator::swiglu(const LayerConfig& c, const Place& at, const Array& x) {
  const bool bias = real(c, "bias") != 0;
  Array gate = linear(at, x, "gate", bias ? "gate_bias" : nullptr);
  const Array up = linear(at, x, "up", bias ? "up_bias" : nullptr);
  for (size_t i = 0; i < gate.v.size(); ++i) {
    gate.v[i] = activate(text(c, "activation"), gate.v[i]) * up.v[i];
  }
  const auto inner = static_cast<size_t>(integer_field(c, "inner"));
  for (size_t i = 0; real(c, "sub_norm") != 0 && i < gate.v.size(); i += inner) {
    rms_run(gate.v, i, param(at, "sub_norm"), real(c, "sub_norm_eps"));
  }
  return linear(at, gate, "down", bias ? "down_bias" : nullptr);
}

Array Evaluator::rms_norm(const LayerConfig& c, const Place& at, const Array& x) {
  Array y = x;
  const std::vector<Var>& gamma = param(at, "gamma");
  for (size_t i = 0; i < y.v.size(); i += gamma.size()) rms_run(y.v, i, gamma, real(c, "eps"));
  return y;
}

Array Evaluator::layer_norm(const LayerConfig& c, const Place& at, const Array& x) {
  Array y = x;
  const std::vector<Var>&gamma = param(at, "gamma"), &beta = param(at, "beta");
  const size_t n = gamma.size();
  const Var width(static_cast<double>(n));
  for (size_t first = 0; first < y.v.size(); first += n) {
    Var mean(0), squares(0);
    for (size_t i = 0; i < n; ++i) mean = mean + y.v[first + i] / width;
    for (size_t i = 0; i < n; ++i) {
      y.v[first + i] = y.v[first + i] - mean;
      squares = squares + y.v[first + i] * y.v[first + i] / width;
    }
    const Var root = sqrt(squares + Var(real(c, "eps")));
    for (size_t i = 0; i < n; ++i) y.v[first + i] = y.v[first + i] / root * gamma[i] + beta[i];
  }
  return y;
}

template <class Step>
Array Evaluator::recurrent(const LayerConfig& c, const Place& at, const Array& from_input,
                           int64_t width, Step step) {
  const int64_t hidden = integer_field(c, "hidden"), steps = from_input.rows() / sequences_;
  const bool all = real(c, "return_sequence") != 0;
  std::vector<std::vector<Var>> fresh(static_cast<size_t>(sequences_),
                                      std::vector<Var>(static_cast<size_t>(width)));
  std::vector<std::vector<Var>>& states =
      memory_ != nullptr ? memory_->states.try_emplace(at.own, fresh).first->second : fresh;
  Array y{from_input.shape, {}};
  if (!all) y.shape = {from_input.shape[0], hidden};
  y.shape.back() = hidden;
  for (int64_t s = 0; s < sequences_; ++s) {
    std::vector<Var>& state = states[static_cast<size_t>(s)];
    for (int64_t t = 0; t < steps; ++t) {
      step(&from_input.at(s * steps + t, 0), state);
      if (all || t + 1 == steps) y.v.insert(y.v.end(), state.begin(), state.begin() + hidden);
    }
  }
  return y;
}

// Row `row` of the product of a matrix with the first values of a vector.
static Var product(const std::vector<Var>& w, size_t row, size_t width, const std::vector<Var>& x) {
  Var sum(0);
  for (size_t i = 0; i < width; ++i) sum = sum + w[row * width + i] * x[i];
  return sum;
}

Array Evaluator::rnn(const LayerConfig& c, const Place& at, const Array& x) {
  const auto h = static_cast<size_t>(integer_field(c, "hidden"));
  const std::vector<Var>& whh = param(at, "whh");
  return recurrent(c, at, linear(at, x, "wih", "bias"), integer_field(c, "hidden"),
                   [&](const Var* in, std::vector<Var>& state) {
                     const std::vector<Var> old = state;
                     for (size_t i = 0; i < h; ++i) {
                       const Var sum = in[i] + product(whh, i, h, old);
                       state[i] = activate(text(c, "activation"), sum);
                     }
                   });
}

Array Evaluator::lstm(const LayerConfig& c, const Place& at, const Array& x) {
  const auto h = static_cast<size_t>(integer_field(c, "hidden"));
  const std::vector<Var>& whh = param(at, "whh");
  return recurrent(c, at, linear(at, x, "wih", "bias"), 2 * integer_field(c, "hidden"),
                   [&](const Var* in, std::vector<Var>& state) {
                     const std::vector<Var> old = state;
                     const auto gate = [&](size_t i) { return in[i] + product(whh, i, h, old); };
                     for (size_t i = 0; i < h; ++i) {
                       const Var input = sigmoid(gate(i)), forget = sigmoid(gate(h + i));
                       const Var fresh = tanh(gate(2 * h + i)), out = sigmoid(gate(3 * h + i));
                       state[h + i] = forget * old[h + i] + input * fresh;
                       state[i] = out * tanh(state[h + i]);
                     }
                   });
}

Array Evaluator::gru(const LayerConfig& c, const Place& at, const Array& x) {
  const auto h = static_cast<size_t>(integer_field(c, "hidden"));
  const std::vector<Var>&whh = param(at, "whh"), &bias = param(at, "bias_hh");
  return recurrent(c, at, linear(at, x, "wih", "bias"), integer_field(c, "hidden"),
                   [&](const Var* in, std::vector<Var>& state) {
                     const std::vector<Var> old = state;
                     const auto own = [&](size_t i) { return bias[i] + product(whh, i, h, old); };
                     for (size_t i = 0; i < h; ++i) {
                       const Var r = sigmoid(in[i] + own(i)), z = sigmoid(in[h + i] + own(h + i));
                       const Var n = tanh(in[2 * h + i] + r * own(2 * h + i));
                       state[i] = (Var(1) - z) * n + z * old[i];
                     }
                   });
}

Array Evaluator::softmax(const LayerConfig& c, const Place&, const Array& x) {
  const std::string_view variant = text(c, "variant");
  const double scale = 1 / real(c, "temperature");
  const auto width = static_cast<size_t>(x.last());
  Array y = x;
  if (variant == "standard" || variant == "temperature" || variant == "grid") {
    const size_t run = variant == "grid" ? static_cast<size_t>(integer_field(c, "cols")) : width;
    for (size_t i = 0; i < y.v.size(); i += run) softmax_run(y.v, i, run, scale);
    return y;
  }
  if (variant == "masked") {
    const std::vector<int64_t>& mask = c.list(field(c, "mask"));
    const auto kept = [&](size_t i) { return i >= mask.size() || mask[i] != 0; };
    for (size_t first = 0; first < y.v.size(); first += width) {
      std::vector<Var> some;
      for (size_t i = 0; i < width; ++i) {
        if (kept(i)) some.push_back(y.v[first + i]);
      }
      softmax_run(some, 0, some.size(), scale);
      for (size_t i = 0, next = 0; i < width; ++i) y.v[first + i] = kept(i) ? some[next++] : Var(0);
    }
    return y;
  }
  // mixture, without gates: the mean of the softmaxes of `rows` runs of `cols` values.
  EXPECT_EQ(variant, "mixture");
  const auto runs = static_cast<size_t>(integer_field(c, "rows"));
  const auto cols = static_cast<size_t>(integer_field(c, "cols"));
  y = array_of(x.shape);
  y.shape.back() = integer_field(c, "cols");
  y.v.assign(x.v.size() / runs, Var(0));
  std::vector<Var> all = x.v;
  for (size_t i = 0; i < all.size(); i += cols) {
    softmax_run(all, i, cols, scale);
    for (size_t k = 0; k < cols; ++k) {
      Var& sum = y.v[i / (runs * cols) * cols + k];
      sum = sum + all[i + k] / Var(static_cast<double>(runs));
    }
  }
  return y;
}

Array Evaluator::kmeans(const LayerConfig& c, const Place& at, const Array& x) {
  const std::vector<Var>& centres = param(at, "centres");
  const int64_t clusters = integer_field(c, "clusters"), width = x.last();
  const double tau = real(c, "temperature");
  Array p{x.shape, {}};
  p.shape.back() = clusters;
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t k = 0; k < clusters; ++k) {
      Var distance(0);
      for (int64_t i = 0; i < width; ++i) {
        const Var d = x.at(r, i) - centres[static_cast<size_t>(k * width + i)];
        distance = distance + d * d;
      }
      p.v.push_back(distance);
    }
    softmax_run(p.v, static_cast<size_t>(r * clusters), static_cast<size_t>(clusters),
                -1 / (2 * tau * tau));
  }
  if (text(c, "mode") == "probabilities") {
    for (Var& v : p.v) v = activate(text(c, "activation"), v);
    return p;
  }
  Array y = array_of(x.shape);
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t i = 0; i < width; ++i) {
      for (int64_t k = 0; k < clusters; ++k) {
        y.at(r, i) = y.at(r, i) + p.at(r, k) * centres[static_cast<size_t>(k * width + i)];
      }
      y.at(r, i) = activate(text(c, "activation"), y.at(r, i));
    }
  }
  return y;
}

Array Evaluator::embedding(const LayerConfig& c, const Place& at, const Array& x) {
  const auto width = static_cast<size_t>(integer_field(c, "width"));
  const std::vector<Var>& table = param(at, "weight");
  Array y{x.shape, {}};
  y.shape.push_back(integer_field(c, "width"));
  for (const Var& id : x.v) {
    for (size_t i = 0; i < width; ++i) {
      const Var value = table[static_cast<size_t>(id.value) * width + i];
      y.v.push_back(activate(text(c, "activation"), value * Var(real(c, "scale"))));
    }
  }
  return y;
}

// out[b, f, o] = sum over channels and taps of w x at o stride + tap dilation - padding, over one
// or two axes.
Array Evaluator::convolution(const LayerConfig& c, const Place& at, const Array& x) {
  const bool flat = c.def->name == "CNN1";
  const auto axis = [&](std::string_view name, bool first) {
    const std::vector<int64_t>& list = c.list(field(c, name));
    return first ? list.front() : list.back();
  };
  const int64_t channels = integer_field(c, "channels"), filters = integer_field(c, "filters");
  const int64_t groups = integer_field(c, "groups"), each = channels / groups;
  const int64_t height = flat ? 1 : x.shape[2], width = x.last();
  const int64_t kernel[2] = {flat ? 1 : axis("kernel", true), axis("kernel", false)};
  const int64_t stride[2] = {flat ? 1 : axis("stride", true), axis("stride", false)};
  const int64_t pad[2] = {flat ? 0 : axis("padding", true), axis("padding", false)};
  const int64_t dilation[2] = {flat ? 1 : axis("dilation", true), axis("dilation", false)};
  const auto extent = [&](int64_t in, int i) {
    return (in + 2 * pad[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
  };
  const int64_t rows = extent(height, 0), cols = extent(width, 1);
  const std::vector<Var>& w = param(at, "weight");
  Array y{x.shape, {}};
  y.shape[1] = filters;
  y.shape.back() = cols;
  if (!flat) y.shape[2] = rows;
  const auto input = [&](int64_t b, int64_t ch, int64_t i, int64_t j) {
    if (i < 0 || i >= height || j < 0 || j >= width) return Var(0);
    return x.v[static_cast<size_t>(((b * channels + ch) * height + i) * width + j)];
  };
  for (int64_t out = 0; out < x.shape[0] * filters * rows * cols; ++out) {
    const int64_t j = out % cols, i = out / cols % rows, f = out / (cols * rows) % filters;
    const int64_t b = out / (cols * rows * filters), first = f / (filters / groups) * each;
    Var sum = real(c, "bias") != 0 ? param(at, "bias")[static_cast<size_t>(f)] : Var(0);
    for (int64_t tap = 0; tap < each * kernel[0] * kernel[1]; ++tap) {
      const int64_t v = tap % kernel[1], u = tap / kernel[1] % kernel[0];
      const int64_t ch = first + tap / (kernel[0] * kernel[1]);
      sum = sum + w[static_cast<size_t>(f * each * kernel[0] * kernel[1] + tap)] *
                      input(b, ch, i * stride[0] + u * dilation[0] - pad[0],
                            j * stride[1] + v * dilation[1] - pad[1]);
    }
    y.v.push_back(activate(text(c, "activation"), sum));
  }
  return y;
}

// Without rotary positions. Keys and values of a sequence come from all its passes so far.
Array Evaluator::attention(const LayerConfig& c, const Place& at, const Array& x) {
  const bool bias = real(c, "bias") != 0, causal = real(c, "causal") != 0;
  const Array q = linear(at, x, "q", bias ? "q_bias" : nullptr);
  const Array k = linear(at, x, "k", bias ? "k_bias" : nullptr);
  const Array v = linear(at, x, "v", bias ? "v_bias" : nullptr);
  const int64_t heads = integer_field(c, "heads"), kv_heads = integer_field(c, "kv_heads");
  const int64_t width = integer_field(c, "head_dim"), length = x.rows() / sequences_;
  const int64_t window = integer_field(c, "window");
  std::vector<std::vector<Var>> fresh(static_cast<size_t>(sequences_));
  std::vector<std::vector<Var>>& kept =
      memory_ != nullptr ? memory_->states.try_emplace(at.own, fresh).first->second : fresh;
  Array mixed = array_of(q.shape);
  for (int64_t s = 0; s < sequences_; ++s) {
    std::vector<Var>& all = kept[static_cast<size_t>(s)];  // [position][key | value]
    const int64_t first = static_cast<int64_t>(all.size()) / (2 * k.last());
    for (int64_t t = 0; t < length; ++t) {
      for (const Array* part : {&k, &v}) {
        for (int64_t i = 0; i < k.last(); ++i) all.push_back(part->at(s * length + t, i));
      }
    }
    const auto at_position = [&](int64_t position, int64_t value) {
      return all[static_cast<size_t>(position * 2 * k.last() + value)];
    };
    for (int64_t t = 0; t < length; ++t) {
      const int64_t end = causal ? first + t + 1 : first + length;
      const int64_t begin = window > 0 ? std::max<int64_t>(0, first + t + 1 - window) : 0;
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t group = h / (heads / kv_heads) * width;
        std::vector<Var> scores;
        for (int64_t j = begin; j < end; ++j) {
          Var score(0);
          for (int64_t i = 0; i < width; ++i) {
            score = score + q.at(s * length + t, h * width + i) * at_position(j, group + i);
          }
          scores.push_back(score);
        }
        softmax_run(scores, 0, scores.size(), 1 / std::sqrt(static_cast<double>(width)));
        for (int64_t i = 0; i < width; ++i) {
          Var& sum = mixed.at(s * length + t, h * width + i);
          for (int64_t j = begin; j < end; ++j) {
            sum =
                sum + scores[static_cast<size_t>(j - begin)] * at_position(j, k.last() + group + i);
          }
        }
      }
    }
  }
  return linear(at, mixed, "o", real(c, "out_bias") != 0 ? "o_bias" : nullptr);
}

Array Evaluator::parallel(const LayerConfig& c, const Place& at, const Array& x) {
  const std::string_view combine = text(c, "combine");
  const int64_t samples = x.shape[0];
  std::vector<Array> parts;
  for (size_t i = 0; i < c.children.size(); ++i) {
    parts.push_back(run(c.children[i], {below(at.own, i), below(at.params, i)}, x, x));
  }
  const auto of_sample = [&](const Array& a, int64_t b) {
    const auto each = static_cast<int64_t>(a.v.size()) / samples;
    return std::vector<Var>(a.v.begin() + b * each, a.v.begin() + (b + 1) * each);
  };
  if (combine == "concat" || combine == "grid_scatter") {
    const bool grid = combine == "grid_scatter";
    const int64_t cols = integer_field(c, "cols");
    Array y{{samples, 0}, {}};
    for (int64_t b = 0; b < samples; ++b) {
      if (!grid) {
        for (const Array& part : parts) {
          const std::vector<Var> values = of_sample(part, b);
          y.v.insert(y.v.end(), values.begin(), values.end());
        }
        continue;
      }
      const size_t each = of_sample(parts[0], 0).size();
      std::vector<Var> cells(each * static_cast<size_t>(integer_field(c, "rows") * cols));
      for (size_t i = 0; i < parts.size(); ++i) {
        const std::vector<int64_t>& to = c.list(field(c, "targets"));
        const std::vector<Var> values = of_sample(parts[i], b);
        const auto cell = static_cast<size_t>(to[2 * i] * cols + to[2 * i + 1]);
        std::copy(values.begin(), values.end(), cells.begin() + static_cast<int64_t>(cell * each));
      }
      y.v.insert(y.v.end(), cells.begin(), cells.end());
    }
    y.shape[1] = static_cast<int64_t>(y.v.size()) / samples;
    if (grid)
      y.shape = {samples, integer_field(c, "rows"), cols,
                 y.shape[1] / (integer_field(c, "rows") * cols)};
    return y;
  }
  const bool gated = combine == "filter";
  const size_t branches = parts.size() - (gated ? 1 : 0);
  Array y = array_of(parts[0].shape);
  const int64_t each = static_cast<int64_t>(y.v.size()) / samples;
  for (int64_t b = 0; b < samples; ++b) {
    std::vector<Var> weights(branches, Var(combine == "avg" ? 1.0 / double(branches) : 1.0));
    if (gated) {
      weights = of_sample(parts.back(), b);
      softmax_run(weights, 0, branches, 1);
    }
    for (size_t i = 0; i < branches; ++i) {
      for (int64_t k = 0; k < each; ++k) {
        const auto flat_index = static_cast<size_t>(b * each + k);
        y.v[flat_index] = y.v[flat_index] + weights[i] * parts[i].v[flat_index];
      }
    }
  }
  return y;
}

Array Evaluator::sequence(const LayerConfig& c, const Place& at, const Array& x) {
  Array value = x, before = x;
  for (size_t i = 0; i < c.children.size(); ++i) {
    if (c.children[i].disabled) continue;
    const Array next = run(c.children[i], {below(at.own, i), below(at.params, i)}, value, before);
    before = value;
    value = next;
  }
  return value;
}

Array Evaluator::residual(const LayerConfig& c, const Place& at, const Array& x,
                          const Array& skip) {
  Array y = c.children.empty() ? skip : sequence(c, at, x);
  for (size_t i = 0; i < y.v.size(); ++i) y.v[i] = y.v[i] + x.v[i];
  y.shape = x.shape;
  return y;
}

}  // namespace loom::core::outside
