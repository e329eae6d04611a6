// The strided copy: transposes around the tiles of the kernels, runs around their pieces, and
// random copies with gaps, flips and broadcasts, of floats and of ids.
#include "base/text.hpp"
#include "conformance/training.hpp"
#include "ops/moves.hpp"
#include "ops/random_copy.hpp"

namespace loom::core::test {
namespace {

void conform_floats(const std::string& what, CopyArgs args, uint64_t seed) {
  const Rows x(1, args.x.shape.count(), 0, seed, values_of(seed));
  args.x = x.tensor();
  const int64_t count = args.y.shape.count();
  expect_same_bits(cat("copy ", what), [&](const Runner& run) {
    const Rows y = filled(1, count, 2);
    CopyArgs mine = args;
    mine.y = y.tensor();
    run(&Ops::copy, mine);
    return image_of({&y});
  });
}

void conform_ids(const std::string& what, CopyArgs args) {
  Ids x(1, args.x.shape.count());
  for (size_t i = 0; i < x.values().size(); ++i) x.values()[i] = static_cast<int32_t>(i * 77) - 9;
  args.x = x.tensor();
  const int64_t count = args.y.shape.count();
  expect_same_bits(cat("copy of ids ", what), [&](const Runner& run) {
    Ids y(1, count);
    std::fill(y.values().begin(), y.values().end(), -1);
    CopyArgs mine = args;
    mine.y = y.tensor();
    run(&Ops::copy, mine);
    Image image;
    image.add_bytes(y.values().data(), count * 4);
    return image;
  });
}

Tensor flat(int64_t count) {
  return Tensor{DType::f32, Layout::plain, Shape{1, count}, count, nullptr};
}

void conform_transposes() {
  uint64_t seed = 700;
  for (const int64_t rows : {1, 2, 3, 15, 16, 17, 33, 64, 129}) {
    for (const int64_t cols : {1, 2, 15, 16, 17, 31, 48, 100}) {
      for (const int64_t batch : {1, 3}) {
        const int64_t extents[] = {batch, rows, cols};
        const int axes[] = {0, 2, 1};
        const Tensor t = flat(batch * rows * cols);
        conform_floats(cat("transposes ", batch, " of ", rows, " x ", cols),
                       permute(t, extents, axes, t), ++seed);
      }
    }
  }
}

void conform_runs() {
  uint64_t seed = 800;
  for (const int64_t count : {0, 1, 4095, 4096, 4097, 8191, 16384, 16385, 40000}) {
    conform_floats(cat("of ", count, " in a row"), reshape(flat(count), flat(count)), ++seed);
    const int64_t from[] = {3, 1}, to[] = {3, count};
    conform_floats(cat("of 3 values to ", count, " each"),
                   expand(flat(3), from, flat(3 * count), to), ++seed);
    const Walk reversed = Walk(Shape{count}).sliced(0, count - 1, count, -1);
    conform_floats(cat("of ", count, " turned round"),
                   move(flat(count), reversed, flat(count), Walk(Shape{count})), ++seed);
  }
}

}  // namespace

void conform_copy() {
  conform_runs();
  conform_transposes();
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const CopyArgs args = random_copy(seed, seed % 10 == 0 ? 60000 : 3000, true);
    const std::string what = cat("number ", seed);
    if (seed % 4 == 0) {
      conform_ids(what, args);
    } else {
      conform_floats(what, args, seed);
    }
  }
}

}  // namespace loom::core::test
