// Random programs of ops over a few shared matrices, for the recorder. Every op may access memory
// that any other wrote, through whole matrices, row slices and column slices. Ops are small
// (serial) or large (shared among the lanes).
#pragma once

#include <array>
#include <vector>

#include "base/numbers/rng.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::test {

inline float* floats(Buffer& buffer) {
  return reinterpret_cast<float*>(buffer.data());
}
inline Buffer bytes(int64_t count) {
  return std::move(Buffer::allocate(count).value());
}

// A packed matrix of small random weights.
struct Weights {
  Weights(DType dtype, int64_t rows, int64_t cols, uint64_t seed) {
    const R16 g = r16_geometry(dtype, rows, cols);
    const Rng rng(seed, 1);
    std::vector<float> values(static_cast<size_t>(rows * cols));
    for (size_t i = 0; i < values.size(); ++i) values[i] = (rng.uniform(i) - 0.5f) * 0.3f;
    memory = bytes(g.bytes());
    r16_pack(g, values.data(), 0, rows, ScaleScope::per_row,
             tensor_range(values.data(), rows * cols), memory.data());
    tensor = r16_tensor(g, memory.data());
  }
  Buffer memory;
  Tensor tensor;
};

// The memory and constants of a program. Two with the same seed are equal.
class World {
 public:
  static constexpr int64_t kRows = 48, kCols = 256, kMatrices = 5;
  static constexpr int64_t kHeads = 8, kKvHeads = 2, kWidth = 32, kPositions = 64;

  explicit World(uint64_t seed)
      : matrices_(bytes(kMatrices * kRows * kCols * 4)),
        vectors_(bytes(4 * kCols * 4)),
        keys_(bytes(kKvHeads * kWidth * kPositions * 4)),
        values_(bytes(kKvHeads * kWidth * kPositions * 4)),
        tables_(bytes(2 * kPositions * kWidth / 2 * 4)),
        ids_(bytes(kRows * 4)) {
    const Rng rng(seed, 2);
    uint64_t next = 0;
    for (Buffer* buffer : {&matrices_, &vectors_, &tables_}) {
      for (int64_t i = 0; i < buffer->size() / 4; ++i)
        floats(*buffer)[i] = rng.uniform(next++) * 2.0f - 1.0f;
    }
    for (int64_t i = 0; i < kRows; ++i) ids()[i] = static_cast<int32_t>(rng.bits(next++) % kCols);
    for (DType dtype : {DType::q8_0, DType::f32, DType::q4_0, DType::bf16, DType::nvfp4}) {
      weights_.emplace_back(dtype, kCols, kCols, seed + 1);
    }
  }

  Tensor matrix(uint64_t pick) {
    float* data = floats(matrices_) + static_cast<int64_t>(pick % kMatrices) * kRows * kCols;
    return f32_matrix(data, kRows, kCols);
  }
  Tensor vector(uint64_t pick) {
    return f32_vector(floats(vectors_) + static_cast<int64_t>(pick % 4) * kCols, kCols);
  }
  const Tensor& weight(uint64_t pick) const { return weights_[pick % weights_.size()].tensor; }
  KvCache cache() {
    return f32_cache(floats(keys_), floats(values_), kKvHeads, kWidth, kPositions);
  }
  Tensor cos() { return f32_matrix(floats(tables_), kPositions, kWidth / 2); }
  Tensor sin() {
    return f32_matrix(floats(tables_) + kPositions * kWidth / 2, kPositions, kWidth / 2);
  }
  int32_t* ids() { return reinterpret_cast<int32_t*>(ids_.data()); }
  Tensor id_tensor(int64_t n) {
    return Tensor{DType::i32, Layout::plain, Shape{n}, n, ids_.data()};
  }

  // Everything an op may have written.
  std::vector<std::byte> state() const {
    std::vector<std::byte> all;
    for (const Buffer* b : {&matrices_, &keys_, &values_})
      all.insert(all.end(), b->data(), b->data() + b->size());
    return all;
  }

 private:
  Buffer matrices_, vectors_, keys_, values_, tables_, ids_;
  std::vector<Weights> weights_;
};

// Records the i-th op of program `seed`. `after` runs after each op (a flush, or nothing).
class Program {
 public:
  Program(uint64_t seed, World& world) : rng_(seed, 3), world_(&world) {}

  Status record(Recorder& recorder) {
    const int64_t rows = next() % 2 == 0 ? World::kRows : 1 + static_cast<int64_t>(next() % 4);
    const int64_t first =
        static_cast<int64_t>(next() % static_cast<uint64_t>(World::kRows - rows + 1));
    const uint64_t a = next(), b = a + 1 + next() % (World::kMatrices - 1), c = next();
    const Tensor x = world_->matrix(a).slice_rows(first, rows);
    const Tensor y = world_->matrix(b).slice_rows(first, rows);
    const Tensor other = world_->matrix(b).slice_rows(World::kRows - rows - first, rows);
    switch (next() % 12) {
      case 0:
      case 1:
      case 2: return matmul(recorder, x, y);
      case 3: return recorder.norm(NormArgs{x, world_->vector(c), {}, y, 1e-5f, NormKind::rms, 1});
      case 4: return recorder.softmax(SoftmaxArgs{x, next() % 2 == 0 ? x : other, 0.5f});
      case 5: return recorder.unary(UnaryArgs{x, next() % 2 == 0 ? x : other, UnaryKind::tanh});
      case 6:
        return recorder.binary(
            BinaryArgs{x, next() % 2 == 0 ? y : world_->vector(c), x, BinaryKind::sub});
      case 7: return recorder.gated(GatedArgs{x, y, y, Activation::silu});
      case 8:
        return recorder.rope(RopeArgs{x, next() % 2 == 0 ? x : other, world_->cos(), world_->sin(),
                                      World::kHeads, first});
      case 9: return attention(recorder, x, y, rows);
      case 10:
        return recorder.gather_rows(
            GatherRowsArgs{world_->weight(c), world_->id_tensor(rows), other});
      default: return halves(recorder, x);
    }
  }

 private:
  uint64_t next() { return rng_.bits(drawn_++); }

  Status matmul(Recorder& recorder, const Tensor& x, const Tensor& y) {
    MatmulArgs args;
    args.x = x;
    args.w = world_->weight(next());
    args.y = y;
    args.activation = Activation::tanh;
    if (next() % 2 == 0) args.bias = world_->vector(next());
    return recorder.matmul(args);
  }

  // Writes rows of x as keys and values, then attends with x.
  Status attention(Recorder& recorder, const Tensor& x, const Tensor& y, int64_t rows) {
    Tensor k = x, v = x;
    k.shape = v.shape = Shape{rows, World::kKvHeads * World::kWidth};
    v.data += World::kKvHeads * World::kWidth * 4;
    const int64_t first =
        static_cast<int64_t>(next() % static_cast<uint64_t>(World::kPositions - rows + 1));
    LOOM_TRY(recorder.kv_write(KvWriteArgs{k, v, world_->cache(), first}));
    return recorder.attention(
        AttentionArgs{x, y, world_->cache(), World::kHeads, first, first + rows, 0, 0.2f, true});
  }

  // The left half of the columns becomes the difference of the halves.
  Status halves(Recorder& recorder, const Tensor& x) {
    Tensor left = x, right = x;
    left.shape = right.shape = Shape{x.rows(), World::kCols / 2};
    right.data += World::kCols / 2 * 4;
    return recorder.binary(BinaryArgs{left, right, left, BinaryKind::sub});
  }

  Rng rng_;
  World* world_;
  uint64_t drawn_ = 0;
};

}  // namespace loom::core::test
