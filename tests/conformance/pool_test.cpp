// Pooling and its gradient: rows of outputs around a block of sixteen, strides with and without
// special kernels, windows of more than one chunk, and random geometries.
#include "base/text.hpp"
#include "conformance/training.hpp"
#include "ops/random_pool.hpp"

namespace loom::core::test {
namespace {

std::string name_of(const PoolArgs& args) {
  const ConvShape& s = args.shape;
  const auto list = [](const int64_t(&v)[3]) { return cat(v[0], "x", v[1], "x", v[2]); };
  return cat("kind ", static_cast<int>(args.kind), " of ", list(s.in), " to ", list(s.out),
             " kernel ", list(s.kernel), " stride ", list(s.stride), " pad ", list(s.pad), " to ",
             list(args.pad_end), " dilation ", list(s.dilation),
             args.windows == PoolWindows::adaptive ? " adaptive" : "");
}

// In two dimensions; extents are rounded up.
PoolArgs plane(PoolKind kind, int64_t width, int64_t kernel, int64_t stride, int64_t pad) {
  PoolArgs args;
  args.kind = kind;
  ConvShape& s = args.shape;
  s.channels = s.filters = s.groups = 3;
  for (int a = 1; a < 3; ++a) {
    s.in[a] = a == 1 ? 5 : width;
    s.kernel[a] = kernel, s.stride[a] = stride, s.pad[a] = pad;
    args.pad_end[a] = pad;
    const int64_t room = s.in[a] + 2 * pad - kernel;
    s.out[a] = room < 0 ? 0 : (room + stride - 1) / stride + 1;
  }
  return args;
}

template <class Body>
void each_pool(Body body) {
  uint64_t seed = 500;
  for (const PoolKind kind : {PoolKind::max, PoolKind::average, PoolKind::lp}) {
    for (const int64_t width : {1, 15, 16, 17, 31, 33, 35, 48, 70}) {
      body(plane(kind, width, 2, 2, 0), ++seed);
      body(plane(kind, width, 3, 1, 1), ++seed);
      body(plane(kind, width, 3, 2, 1), ++seed);
      body(plane(kind, width, 3, 3, 0), ++seed);
    }
    // Three hundred taps and more.
    body(plane(kind, 60, 18, 1, 7), ++seed);
    PoolArgs whole = plane(kind, 90, 1, 1, 0);
    whole.windows = PoolWindows::adaptive;
    whole.shape.out[1] = 1, whole.shape.out[2] = 1;
    body(whole, ++seed);
  }
  for (uint64_t i = 1; i <= 200; ++i) body(random_pool(i, 24), i);
}

struct Samples {
  Samples(const PoolArgs& args, uint64_t seed)
      : ins(args.shape.channels * args.shape.in_positions()),
        outs(args.shape.channels * args.shape.out_positions()),
        rows(static_cast<int64_t>(seed % 4)),
        x(rows, ins, 2, seed, values_of(seed)) {}
  int64_t ins, outs, rows;
  Rows x;
};

}  // namespace

void conform_pool() {
  each_pool([](const PoolArgs& args, uint64_t seed) {
    const Samples s(args, seed);
    const bool named = args.kind == PoolKind::max && seed % 3 != 0;
    expect_same_bits(cat("pool ", seed, " ", name_of(args)), [&](const Runner& run) {
      const Rows y(s.rows, s.outs, 3);
      Ids ids(s.rows, s.outs);
      PoolArgs mine = args;
      mine.x = s.x.tensor();
      mine.y = y.tensor();
      if (named) mine.ids = ids.tensor();
      run(&Ops::pool, mine);
      Image image = image_of({&y});
      if (named) image.add_bytes(ids.values().data(), s.rows * s.outs * 4);
      return image;
    });
  });
}

void conform_pool_dx() {
  each_pool([](const PoolArgs& args, uint64_t seed) {
    const Samples s(args, seed);
    const Rows y(s.rows, s.outs), dy(s.rows, s.outs, 1, seed + 9000, values_of(seed));
    Ids ids(s.rows, s.outs);
    PoolArgs forward = args;
    forward.x = s.x.tensor();
    forward.y = y.tensor();
    if (args.kind == PoolKind::max) forward.ids = ids.tensor();
    reference_runner()(&Ops::pool, forward);
    expect_same_bits(cat("pool_dx ", seed, " ", name_of(args)), [&](const Runner& run) {
      const Rows dx = filled(s.rows, s.ins, 2);
      PoolDxArgs mine = gradient_of(args);
      mine.dy = dy.tensor();
      mine.dx = dx.tensor();
      if (args.kind == PoolKind::max) mine.ids = ids.tensor();
      if (args.kind == PoolKind::lp) mine.x = s.x.tensor(), mine.y = y.tensor();
      run(&Ops::pool_dx, mine);
      return image_of({&dx});
    });
  });
}

}  // namespace loom::core::test
