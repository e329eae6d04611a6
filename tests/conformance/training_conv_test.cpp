// conv, conv_dx and conv_dw: one to three axes, strides, padding, dilation, groups, channel counts
// around a vector, patches and positions longer than a chunk of 256, every dtype; and random cases.
// Some windows are wholly in the padding, on any axis.
#include "base/text.hpp"
#include "conformance/training.hpp"
#include "ops/random_copy.hpp"

namespace loom::core::test {
namespace {

struct Axis {
  int64_t in = 1, kernel = 1, stride = 1, pad = 0, dilation = 1;
  int64_t more = 0;  // outputs beyond those of equal padding on both sides
};
struct Case {
  int64_t samples, channels, filters, groups;
  std::vector<Axis> axes;
};

ConvShape shape_of(const Case& c) {
  ConvShape s;
  s.channels = c.channels, s.filters = c.filters, s.groups = c.groups;
  for (size_t a = 0; a < c.axes.size(); ++a) {
    const Axis& axis = c.axes[a];
    s.in[a] = axis.in, s.kernel[a] = axis.kernel, s.stride[a] = axis.stride;
    s.pad[a] = axis.pad, s.dilation[a] = axis.dilation;
    s.out[a] = (axis.in + 2 * axis.pad - axis.dilation * (axis.kernel - 1) - 1) / axis.stride + 1 +
               axis.more;
  }
  return s;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {0, 2, 3, 1, {{5, 3}}},                              // no samples
      {1, 1, 1, 1, {{1, 1}}},                              //
      {2, 3, 5, 1, {{17, 3, 1, 1}}},                       // one axis
      {1, 16, 17, 1, {{15, 1}}},                           // pointwise
      {2, 15, 16, 1, {{16, 4, 3, 2, 2}}},                  // strided and dilated
      {2, 3, 17, 1, {{7, 3, 1, 1}, {9, 3, 1, 1}}},         // two axes
      {1, 33, 18, 1, {{5, 3, 1, 1}, {6, 3, 2, 1}}},        // a patch beyond a chunk
      {3, 4, 6, 2, {{8, 3, 2, 1}, {7, 2, 1, 0, 2}}},       // groups
      {2, 17, 17, 17, {{6, 3, 1, 1}, {5, 3, 1, 1}}},       // depthwise
      {1, 4, 8, 4, {{20, 5, 1, 2}}},                       // two filters for each channel
      {2, 2, 3, 1, {{4, 2}, {5, 3, 2, 1}, {4, 2, 1, 1}}},  // three axes
      {3, 2, 2, 1, {{12, 2}, {11, 2}}},                    // more than 256 outputs
      {1, 2, 300, 1, {{4, 2}}},                            // more than 256 filters
      {2, 2, 2, 1, {{3, 2, 5, 1}, {3, 1, 2, 4}}},          // patches that see padding alone
      {1, 3, 18, 1, {{9, 3, 2, 1}, {70, 3, 2, 1}}},        // strided rows beyond a tile
      {2, 5, 5, 5, {{9, 3, 2, 1}, {140, 5, 2, 2}}},        // depthwise and strided
      {1, 3, 4, 1, {{9, 2, 3, 1, 2}, {20, 3, 3, 0, 2}}},  // strides that a dilation does not divide
      {1, 20, 40, 1, {{5, 1}, {9, 1}}},                   // pointwise over two axes
      {1, 4, 150, 1, {{3, 3, 1, 1}, {5, 3, 1, 1}}},       // many filters, few outputs
      {3, 6, 20, 1, {{2, 2}, {3, 3}}},                    // one output, which sees all
      {1, 40, 60, 2, {{4, 1, 2}, {4, 1, 2}}},             // groups that end inside of sixteen rows
      // Strides and dilations that no plane holds.
      {1, 2, 3, 1, {{5, 3, 1 << 20, 1}, {6, 2, 1 << 20, 1 << 20, 1 << 20}}},
      {1, 3, 3, 3, {{9, 2}, {6, 2, 1 << 20, 1 << 20, 1 << 20}}},
      // An axis with one input and one output, which sees the padding before it.
      {1, 1, 1, 1, {{1, 1, 3, 1}, {3}, {3}}},
      {2, 3, 18, 1, {{1, 1, 4, 1}, {5, 3, 1, 1}, {6, 2}}},
      {1, 4, 4, 4, {{1, 1, 3, 1}, {7, 3, 1, 1}, {9, 3}}},
  };
  return all;
}

std::string name_of(const Case& c, DType dtype, uint64_t variant) {
  std::string name = cat(dtype_name(dtype), ": ", c.samples, " samples, ", c.channels, " to ",
                         c.filters, " in ", c.groups, " groups");
  for (const Axis& a : c.axes) {
    name += cat(", [", a.in, " kernel ", a.kernel, " stride ", a.stride, " pad ", a.pad,
                " dilation ", a.dilation, " more ", a.more, "]");
  }
  return cat(name, ", variant ", variant);
}

// Rows as short as those of late layers and as long as those of early ones. Every second case has
// one channel per filter, or many filters: both have special kernels.
Case random_case(uint64_t seed) {
  Draws draws(seed);
  const auto draw = [&](int64_t least, int64_t most) {
    return least + draws.below(most - least + 1);
  };
  Case c{draw(1, 2), draw(1, 20), draw(1, 40), 1, {}};
  if (seed % 4 == 1) {
    c.groups = c.channels;
    c.filters = c.channels * draw(1, 2);
  } else if (seed % 4 == 2) {
    c.groups = draw(1, 3);
    c.channels *= c.groups, c.filters = draw(1, 3) * 16 * c.groups;
  }
  for (int64_t a = draw(seed % 8 == 3 ? 1 : 2, seed % 8 == 3 ? 3 : 2); a > 0; --a) {
    const bool pointwise = draw(0, 3) == 0;
    Axis axis{draw(1, a == 1 ? 40 : 12), pointwise ? 1 : draw(1, 5), draw(1, 3)};
    if (draw(0, 1) == 0) axis.stride = 1;
    axis.dilation = draw(1, 2);
    axis.pad = pointwise ? 0 : draw(0, 3);
    axis.more = draw(0, 3) == 0 ? 1 : 0;
    const int64_t reach = axis.dilation * (axis.kernel - 1) + 1;
    if (axis.in + 2 * axis.pad < reach) axis.in = reach;
    c.axes.push_back(axis);
  }
  return c;
}

// Few positions, much padding and long strides, on one to three axes: many windows contain no
// input.
Case padded_case(uint64_t seed) {
  Draws draws(seed);
  const auto draw = [&](int64_t least, int64_t most) {
    return least + draws.below(most - least + 1);
  };
  Case c{draw(1, 2), draw(1, 4), draw(1, 20), 1, {}};
  if (seed % 3 == 1) {
    c.groups = c.channels;
    c.filters = c.channels * draw(1, 2);
  }
  for (int64_t a = draw(1, 3); a > 0; --a) {
    Axis axis{draw(1, a == 1 ? 20 : 5), draw(1, 3), draw(1, 7), draw(0, 4), draw(1, 3)};
    if (draw(0, 1) == 0) axis.in = axis.kernel = 1;
    const int64_t reach = axis.dilation * (axis.kernel - 1) + 1;
    if (axis.in + 2 * axis.pad < reach) axis.in = reach;
    c.axes.push_back(axis);
  }
  return c;
}

Values weight_values(uint64_t variant) {
  return variant % 3 == 0 ? Values::smooth : Values::mixed;
}

void conform_conv_of(const Case& c, DType dtype, uint64_t variant) {
  const ConvShape s = shape_of(c);
  const Rows x(c.samples, s.channels * s.in_positions(), 3, variant, values_of(variant));
  const Packed w(dtype, s.filters, s.patch(), variant + 1, weight_values(variant));
  const Rows bias(1, s.filters, 0, variant + 2, Values::smooth);
  expect_same_bits(name_of(c, dtype, variant), [&](const Runner& run) {
    const Rows y(c.samples, s.filters * s.out_positions(), 1);
    ConvArgs args{x.tensor(), w.tensor(), {}, y.tensor(), s};
    if (variant % 4 < 2) args.bias = vector_of(bias);
    if (variant % 2 == 0) args.activation = Activation::silu;
    run(&Ops::conv, args);
    return image_of({&y});
  });
}

void conform_conv_dx_of(const Case& c, DType dtype, uint64_t variant) {
  const ConvShape s = shape_of(c);
  const Rows dy(c.samples, s.filters * s.out_positions(), 3, variant, values_of(variant));
  const Packed w(dtype, s.filters, s.patch(), variant + 1, weight_values(variant));
  const Rows bias(1, s.channels, 0, variant + 2, Values::smooth);
  for (bool accumulate : {false, true}) {
    expect_same_bits(name_of(c, dtype, variant) + (accumulate ? ", added" : ""),
                     [&](const Runner& run) {
                       const Rows dx = filled(c.samples, s.channels * s.in_positions(), 1);
                       ConvDxArgs args{dy.tensor(), w.tensor(), {}, dx.tensor(), s};
                       args.accumulate = accumulate;
                       if (!accumulate && variant % 4 < 2) args.bias = vector_of(bias);
                       if (!accumulate && variant % 2 == 0) args.activation = Activation::tanh;
                       run(&Ops::conv_dx, args);
                       return image_of({&dx});
                     });
  }
}

void conform_conv_dw_of(const Case& c, uint64_t variant) {
  const ConvShape s = shape_of(c);
  const Rows x(c.samples, s.channels * s.in_positions(), 2, variant, values_of(variant));
  const Rows dy(c.samples, s.filters * s.out_positions(), 3, variant + 1, values_of(variant));
  for (bool accumulate : {false, true}) {
    expect_same_bits(
        name_of(c, DType::f32, variant) + (accumulate ? ", added" : ""), [&](const Runner& run) {
          const Rows dw = filled(s.filters, s.patch(), 1);
          run(&Ops::conv_dw, ConvDwArgs{x.tensor(), dy.tensor(), dw.tensor(), s, accumulate});
          return image_of({&dw});
        });
  }
}

// Every case with f32 weights and each kind of values, and one case with each dtype.
template <class Body>
void each_case(Body body) {
  uint64_t variant = 0;
  for (const Case& c : cases()) {
    for (int i = 0; i < 4; ++i) body(c, DType::f32, variant++);
  }
  for (const DTypeInfo& info : dtype_table()) {
    body({2, 6, 18, 2, {{6, 3, 1, 1}, {5, 3, 2, 1}}}, info.dtype, variant++);
  }
  for (uint64_t seed = 1; seed <= 60; ++seed) body(padded_case(seed), DType::f32, seed);
}

}  // namespace

void conform_conv() {
  each_case(conform_conv_of);
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const auto dtypes = dtype_table();
    const DType dtype = seed % 3 == 0 ? dtypes[seed / 3 % dtypes.size()].dtype : DType::f32;
    conform_conv_of(random_case(seed), dtype, seed);
  }
}

void conform_conv_dx() {
  each_case(conform_conv_dx_of);
}

void conform_conv_dw() {
  uint64_t variant = 0;
  for (const Case& c : cases()) {
    for (int i = 0; i < 3; ++i) conform_conv_dw_of(c, variant++);
  }
  for (uint64_t seed = 1; seed <= 60; ++seed) conform_conv_dw_of(padded_case(seed), seed);
  // Many products: where the GPU has tiles and splits the sums.
  conform_conv_dw_of({3, 17, 33, 1, {{24, 3, 1, 1}, {17, 3, 1, 1}}}, variant++);
}

}  // namespace loom::core::test
