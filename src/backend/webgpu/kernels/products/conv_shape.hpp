// The shared part of the convolution kernels: products of matrices that are gathered on the fly.
// Per group of channels and filters:
//            rows      columns            terms in summation order.
//   conv     filters   samples x outputs  channels x taps.
//   conv_dx  channels  samples x inputs   taps x filters.
//   conv_dw  filters   channels x taps    samples x outputs.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

struct ConvProduct {
  int64_t rows = 0, columns = 0, terms = 0;
};

// Adds the shape as constants, these numbers as values, and functions of positions and taps.
Call& conv_shape(Call& call, const ConvShape& s, const ConvProduct& product);
// Functions for the inputs of output `n` (over samples): output_place(n, count, group),
// patch_term(k, count), seen(place, term).
extern const std::string_view kConvSeen;
// Functions for the outputs of input `n` (over samples): input_place(), tap_term(), reached().
extern const std::string_view kConvReached;

// Small products without tiles: an invocation or a workgroup computes whole values. False if tiles
// are better.
bool conv_is_direct(const ConvProduct& product);
bool conv_dx_is_direct(const ConvProduct& product);
bool conv_dw_is_direct(const ConvProduct& product);
Status conv_direct(Frame& frame, const ConvArgs& args, const ConvProduct& product);
Status conv_dx_direct(Frame& frame, const ConvDxArgs& args, const ConvProduct& product);
Status conv_dw_direct(Frame& frame, const ConvDwArgs& args, const ConvProduct& product);
// The operands and values that all kernels of an op have.
Call& conv_operands(Call& call, const ConvArgs& args, const ConvProduct& product);
Call& conv_dx_operands(Call& call, const ConvDxArgs& args, const ConvProduct& product);
Call& conv_dw_operands(Call& call, const ConvDwArgs& args, const ConvProduct& product);

}  // namespace loom::core::webgpu
