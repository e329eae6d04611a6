// A small writer of the original's files, and a function that runs a loaded network. It was made
// only from their documentation, and shares no code with the reader.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "backend/cpu/cpu.hpp"
#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "formats/original/original.hpp"
#include "grid/session.hpp"
#include "io/json/json.hpp"

namespace loom::core::test {

using Doubles = std::vector<double>;

inline std::string base64(const std::string& bytes) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0, held = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (held += 8; held >= 6; held -= 6) out += digits[bits >> (held - 6) & 63];
  }
  if (held > 0) out += digits[bits << (6 - held) & 63];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

inline std::string le(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i, value = value >> 4 >> 4) out += static_cast<char>(value & 255);
  return out;
}

inline std::string f32_bytes(const std::vector<float>& values) {
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  return values.empty() ? std::string() : std::string(bytes, values.size() * 4);
}

// Layout 1: fields below a byte begin at its high end.
inline std::string layout1(const std::vector<uint64_t>& codes, int bits) {
  if (bits >= 8) {
    std::string out;
    for (const uint64_t c : codes) out += le(c, bits / 8);
    return out;
  }
  std::string out((codes.size() * static_cast<size_t>(bits) + 7) / 8, '\0');
  for (size_t i = 0; i < codes.size(); ++i) {
    const size_t at = i * static_cast<size_t>(bits);
    const uint64_t field = (codes[i] & ((1u << bits) - 1))
                           << (8 - static_cast<size_t>(bits) - at % 8);
    out[at / 8] = static_cast<char>(static_cast<unsigned char>(out[at / 8]) | field);
  }
  return out;
}

// A layer's record. `fields`: the text between dtype and weights, `tail` after scale, each with its
// leading comma.
struct Record {
  std::string type, fields;
  std::vector<float> weights;
  std::string activation = "Linear", dtype = "float32", tail;
  int x = 0;
};

inline std::string record_json(const Record& r) {
  std::string out =
      cat(R"({"z":0,"y":0,"x":)", r.x, R"(,"l":0,"type":")", r.type, R"(","activation":")",
          r.activation, R"(","dtype":")", r.dtype, '"', r.fields);
  if (!r.weights.empty()) out += cat(R"(,"weights":")", base64(f32_bytes(r.weights)), "\"");
  return out + r.tail + "}";
}

inline std::string network_json(const std::vector<std::string>& layers, size_t cols = 0) {
  const std::string text =
      cat(R"({"id":"network","depth":1,"rows":1,"cols":)", cols > 0 ? cols : layers.size(),
          R"(,"layers_per_cell":1,"layers":[)", join(layers, ","), "]}");
  const auto parsed = parse_json(text, "test");
  EXPECT_TRUE(parsed.ok()) << parsed.error().str() << text;
  return parsed.ok() ? dump_json(*parsed, 2) : text;
}

// The records in a row, as a checkpoint.
inline std::string checkpoint(std::vector<Record> records) {
  std::vector<std::string> layers;
  for (size_t i = 0; i < records.size(); ++i) {
    records[i].x = static_cast<int>(i);
    layers.push_back(record_json(records[i]));
  }
  return network_json(layers);
}

inline std::vector<float> noise(size_t n, uint64_t stream, float scale = 1.0f) {
  const Rng rng(11, stream);
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = scale * (2 * rng.uniform(i) - 1);
  return out;
}

struct Ran {
  std::vector<float> values;
  Shape shape;
};

// One forward pass over `samples` of the loaded network; x has numbers, or ids.
template <class T>
Ran run(const Result<Loom1Network>& file, std::vector<T> x, int64_t samples = 1) {
  static_assert(sizeof(T) == 4);
  Ran out;
  EXPECT_TRUE(file.ok()) << file.error().str();
  if (!file.ok()) return out;
  const Shape input = file->spec.input.after(samples);
  Result<Network> network = Network::finalize(file->spec.grid, input);
  EXPECT_TRUE(network.ok()) << network.error().str();
  if (!network.ok()) return out;
  EXPECT_EQ(input.count(), static_cast<int64_t>(x.size()));
  ThreadPool pool(1);
  const Status loaded = load_loom1(*file, *network, DType::f32, pool);
  EXPECT_TRUE(loaded.ok()) << loaded.error().str();
  EXPECT_TRUE(network->check_loaded().ok());
  SessionOptions options;
  options.sequences = samples;
  options.activations = ActivationMode::f32;
  Result<Session> session = Session::create(*network, cpu_ops(best_isa()), pool, input, options);
  EXPECT_TRUE(session.ok()) << session.error().str();
  if (!session.ok()) return out;
  Tensor t;
  t.dtype = std::is_same_v<T, float> ? DType::f32 : DType::i32;
  t.shape = input;
  t.row_stride = input.last();
  t.data = reinterpret_cast<std::byte*>(x.data());
  const Result<Tensor> y = session->forward(t, 0, network->cells().size());
  EXPECT_TRUE(y.ok()) << y.error().str();
  if (!y.ok()) return out;
  out.shape = y->shape;
  for (int64_t r = 0; r < y->rows(); ++r)
    out.values.insert(out.values.end(), y->f32_row(r), y->f32_row(r) + y->cols());
  return out;
}

inline void expect_near(const std::vector<float>& got, const Doubles& want, double bound = 1e-5) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(static_cast<double>(got[i]), want[i], bound * (1 + std::fabs(want[i]))) << i;
}

// y[o] = sum_i w[o][i] x[i] + b[o], w at w[0...]; b may be null.
inline Doubles affine(const float* w, const float* b, const Doubles& x, size_t out) {
  Doubles y(out);
  for (size_t o = 0; o < out; ++o) {
    y[o] = b != nullptr ? static_cast<double>(b[o]) : 0;
    for (size_t i = 0; i < x.size(); ++i) y[o] += static_cast<double>(w[o * x.size() + i]) * x[i];
  }
  return y;
}

inline double logistic(double v) {
  return 1 / (1 + std::exp(-v));
}

inline Doubles slice(const std::vector<float>& v, size_t first, size_t count) {
  return Doubles(v.begin() + static_cast<std::ptrdiff_t>(first),
                 v.begin() + static_cast<std::ptrdiff_t>(first + count));
}

}  // namespace loom::core::test
