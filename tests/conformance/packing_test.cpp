// pack, gather_rows and convert: every dtype, group and block edges, both scale scopes, every pair
// of float types.
#include <cstring>

#include "base/text.hpp"
#include "conformance/support.hpp"

namespace loom::core::test {
namespace {

constexpr std::pair<int64_t, int64_t> kShapes[] = {
    {0, 4}, {4, 0}, {1, 1}, {2, 31}, {15, 32}, {16, 33}, {17, 64}, {33, 65}, {50, 130}, {5, 257}};

// Plain rows of any float type, from bits.
struct PlainRows {
  PlainRows(DType dtype, int64_t rows, int64_t cols, int64_t gap)
      : memory(static_cast<size_t>((rows * (cols + gap)) * dtype_info(dtype).bits / 8),
               std::byte{0x11}),
        tensor{dtype, Layout::plain, Shape{rows, cols}, cols + gap, memory.data()} {}
  std::vector<std::byte> memory;
  Tensor tensor;
};

// Values of every class of `dtype`: its top bits are random, its low bits random or zero.
void fill_bits(PlainRows& rows, uint64_t seed) {
  const Rng rng(seed, 5);
  for (size_t i = 0; i < rows.memory.size(); ++i) {
    const uint32_t bits = rng.bits(i);
    rows.memory[i] = static_cast<std::byte>(bits % 5 == 0 ? 0 : bits >> 8);
  }
}

// NaN of the float type read as one NaN, everything else as its bytes.
Image image_of(const PlainRows& y) {
  const size_t bytes = static_cast<size_t>(dtype_info(y.tensor.dtype).bits / 8);
  const uint64_t infinity =
      bytes == 8 ? 0x7ff0000000000000
                 : (bytes == 4 ? 0x7f800000 : (y.tensor.dtype == DType::f16 ? 0x7c00 : 0x7f80));
  const uint64_t magnitude_mask =
      bytes == 8 ? ~uint64_t{0} >> 1 : (uint64_t{1} << (bytes * 8 - 1)) - 1;
  Image image;
  for (size_t i = 0; i + bytes <= y.memory.size(); i += bytes) {
    uint64_t code = 0;
    std::memcpy(&code, y.memory.data() + i, bytes);
    if ((code & magnitude_mask) > infinity) code = infinity + 1;
    image.add_bytes(&code, 8);
  }
  return image;
}

void conform_plain_convert(DType from, DType to, int64_t rows, int64_t cols, uint64_t seed) {
  PlainRows x(from, rows, cols, static_cast<int64_t>(seed % 2));
  fill_bits(x, seed);
  const std::string what =
      cat(dtype_name(from), " to ", dtype_name(to), " [", rows, ", ", cols, "]");
  expect_same_bits(what, [&](const Runner& run) {
    const PlainRows y(to, rows, cols, 1);
    run(&Ops::convert, ConvertArgs{x.tensor, y.tensor});
    return image_of(y);
  });
}

std::string name_of(const PackArgs& args, DType dtype) {
  return cat(dtype_name(dtype), " ", args.src.shape.str(), " scope ", static_cast<int>(args.scope),
             args.stochastic ? " stochastic" : "");
}

// The same rows, some of them scaled by a little or a lot.
Rows resized(const Tensor& src) {
  constexpr float kFactors[] = {0.95f, 0.5f, 1.0f, 1.25f, 0.8751f, 0.87f};
  Rows out(src.rows(), src.cols());
  for (int64_t r = 0; r < src.rows(); ++r) {
    for (int64_t c = 0; c < src.cols(); ++c) out.at(r, c) = src.f32_row(r)[c] * kFactors[r % 6];
  }
  return out;
}

void conform_pack_of(const PackArgs& args, DType dtype) {
  const R16 g = r16_geometry(dtype, args.src.rows(), args.src.cols());
  const int64_t held = r16_frozen_values(dtype);
  Rows step(1, 1);
  step.at(0, 0) = 5.0f;
  const Rows later = resized(args.src);
  const Ids some = some_rows(g.rows, 7, 3);
  for (const bool hold : {false, true}) {
    if (hold && held == 0) continue;
    expect_same_bits(name_of(args, dtype) + (hold ? " held" : ""), [&](const Runner& run) {
      const Buffer memory = std::move(Buffer::allocate(g.bytes()).value());
      Rows ranges(1, held * (args.scope == ScaleScope::per_tensor ? 1 : g.rows));
      for (int64_t i = 0; i < ranges.tensor().cols(); ++i) ranges.at(0, i) = 0.0f;
      PackArgs mine = args;
      mine.w = r16_tensor(g, memory.data());
      if (args.stochastic) mine.step = f32_vector(step.tensor().f32(), 1);
      if (hold) mine.ranges = f32_vector(ranges.tensor().f32(), ranges.tensor().cols());
      Image image;
      const auto pack = [&](const Tensor& src, const Tensor& rows) {
        mine.src = src;
        mine.rows = rows;
        run(&Ops::pack, mine);
        image.add_bytes(memory.data(), g.bytes());
        image.add(ranges.memory());
      };
      pack(args.src, {});
      pack(later.tensor(), {});
      if (args.scope == ScaleScope::per_row && r16_packs_rows(dtype)) pack(args.src, some.tensor());
      return image;
    });
  }
}

void conform_gather_from(const std::string& what, const Tensor& table, uint64_t seed) {
  for (int64_t rows : {0, 1, 2, 5, 33}) {
    Ids ids(1, rows);
    for (int64_t i = 0; i < rows; ++i) {
      const auto count = static_cast<uint32_t>(table.rows());
      ids.values()[static_cast<size_t>(i)] =
          static_cast<int32_t>(Rng(seed, 2).bits(static_cast<uint64_t>(i)) % count);
    }
    expect_same_bits(cat(what, ", ", rows, " ids"), [&](const Runner& run) {
      const Rows y(rows, table.cols(), rows % 2 == 0 ? 0 : 3);
      run(&Ops::gather_rows, GatherRowsArgs{table, ids.tensor(), y.tensor()});
      Image image;
      image.add(y.memory());
      return image;
    });
  }
}

}  // namespace

void conform_pack() {
  uint64_t seed = 0;
  for (const DTypeInfo& info : dtype_table()) {
    if (!packs(info.dtype)) continue;
    for (const auto& [rows, cols] : kShapes) {
      for (ScaleScope scope : {ScaleScope::per_row, ScaleScope::per_tensor}) {
        const Rows src(rows, cols, 0, seed, seed % 2 == 0 ? Values::smooth : Values::mixed);
        ++seed;
        PackArgs args;
        args.src = src.tensor();
        args.scope = scope;
        conform_pack_of(args, info.dtype);
        if (scope != ScaleScope::per_row || !r16_can_dither(info.dtype)) continue;
        args.stochastic = true;
        args.seed = seed;
        args.stream = 3;
        conform_pack_of(args, info.dtype);
      }
    }
  }
}

void conform_gather_rows() {
  uint64_t seed = 0;
  for (const auto& [rows, cols] : kShapes) {
    if (rows == 0) continue;
    ++seed;
    const std::string shape = cat("[", rows, ", ", cols, "]");
    for (const DTypeInfo& info : dtype_table()) {
      conform_gather_from(cat(info.name, " ", shape), Packed(info.dtype, rows, cols, seed).tensor(),
                          seed);
    }
    conform_gather_from("plain " + shape, Rows(rows, cols, 2, seed, Values::wild).tensor(), seed);
  }
}

void conform_distinct_rows() {
  uint64_t seed = 0;
  for (const int64_t vocab : {1, 3, 40, 1000}) {
    for (const int64_t count : {0, 1, 2, 17, 300}) {
      Ids ids(1, count);
      for (size_t i = 0; i < ids.values().size(); ++i) {
        ids.values()[i] = static_cast<int32_t>(Rng(seed, 8).bits(i) % vocab);
      }
      ++seed;
      for (const int64_t skip : {-1, 0, 2}) {
        expect_same_bits(cat(count, " ids below ", vocab, ", skip ", skip), [&](const Runner& run) {
          Ids visited(1, vocab), rows(1, count), first(1, count);
          run(&Ops::distinct_rows, DistinctRowsArgs{ids.tensor(), visited.tensor(), rows.tensor(),
                                                    first.tensor(), skip});
          Image image;
          image.add_bytes(rows.values().data(), count * 4);
          image.add_bytes(first.values().data(), count * 4);
          return image;
        });
      }
    }
  }
}

void conform_convert() {
  uint64_t seed = 0;
  for (const DTypeInfo& from : dtype_table()) {
    for (const auto& shape : kShapes) {
      const int64_t rows = shape.first, cols = shape.second;
      const Packed x(from.dtype, rows, cols, seed++, Values::mixed);
      const Ids some = some_rows(rows, 7, seed);
      for (const Tensor& list : {Tensor{}, some.tensor()}) {
        expect_same_bits(cat("packed ", from.name, " ", x.tensor().shape.str()),
                         [&](const Runner& run) {
                           const Rows y(rows, cols, 1);
                           run(&Ops::convert, ConvertArgs{x.tensor(), y.tensor(), list});
                           Image image;
                           image.add(y.memory());
                           return image;
                         });
      }
    }
    if (from.kind != NumberKind::ieee) continue;
    for (const DTypeInfo& to : dtype_table()) {
      if (to.kind != NumberKind::ieee) continue;
      for (const auto& [rows, cols] : kShapes)
        conform_plain_convert(from.dtype, to.dtype, rows, cols, seed++);
      conform_plain_convert(from.dtype, to.dtype, 3, 4096, seed++);
    }
  }
}

}  // namespace loom::core::test
