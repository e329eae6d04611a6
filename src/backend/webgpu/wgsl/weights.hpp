// Packed weights (R16) in kernels: one decode snippet per family of number types. Weights are read
// in place.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// The binding of the packed matrix `w`: 32-bit words, or vec4<u32> for kernels that read whole
// lines.
enum class WeightView : uint8_t { words, quads };

// Binds the packed matrix `w` to a call, as an operand "w". Its kernel sees:
//   w_at(row, k) -> f32            value k of row `row`, rounded to f32 once.
//   w_block(row, k) -> mat4x4<f32> rows row .. row + 3, columns k .. k + 3, both multiples of 4;
//                                  column j of the result is k + j; zero past the last k.
//   w_tile(base, lane, k)          the same; base = w_base(row), lane = row % 16.
//   w_packed(base, lane, k) -> Packed, w_tile_of(packed, base, lane, k)   the same in two moves:
//                                  load, then convert, for kernels that prefetch.
// These take rows and k of the matrix; w_block also takes padding rows of the last group. Types
// with integer levels (and nf4), except those of reads_spans(), also have:
//   w_line(base, lane, k)          index of the word with the codes of k .. k + 3; k % 4 == 0.
//   w_codes(word, k)               these codes, one per byte.
//   w_levels(codes)                (not nf4) their levels as four signed bytes, plus an offset.
//   w_offsets(base, lane)          that offset, for four rows; lane % 4 == 0.
//   w_values(codes, offset)        their levels (nf4: values) as vec4<f32>.
//   w_steps(base, lane, k)         the multipliers of the levels of four rows; lane % 4 == 0.
//   w_step_words(base, lane, k), w_steps_of(words, lane)   the same in two moves.
// Wide types, except those of the f64 path, have:
//   w_raw(base, lane, k), w_of_raw(words, base, lane)      values of four rows at one k, likewise.
// Types of reads_spans() have:
//   w_fetch(base, lane, k) -> Codes, w_codes_of(codes, k) -> vec4<u32>   codes of k .. k + 3;
//                                  four rows, one per byte, in two moves.
//   w_around(base, lane, k) -> Around, w_span_of(around, lane, k) -> Span   zero, scale, shift;
//                                  four rows. A value is (code - w_bias - zero) * scale + shift.
//                                  Around covers 32 k; a span may be half of them.
//                                  w_zeros, w_shifts: whether zero, shift may be nonzero.
//   w_tile_in(span, codes, k)      w_tile_of() with a known span.
// All types have:
//   w_word(i), w_pair(i), w_words(i)   1, 2 or 4 words from i, which is a multiple of that.
Call& weights(Call& call, const Tensor& w, WeightView view = WeightView::words);

// Types that kernels read four rows at one k: wide ones. Other types are read 32 k at a time.
bool reads_rows(DType dtype);
// Types with codes in two planes, zeros of blocks or super-blocks.
bool reads_spans(DType dtype);
// Types whose integer levels kernels read. Others have no kernel for quantized activations.
bool reads_levels(DType dtype);
// Types that a kernel packs. Super-blocks need a search in f64, which devices lack. The other
// unsupported types have codes in two planes or zeros per block.
bool packs(DType dtype);
// The error for types without integer levels.
Error no_levels(std::string_view kernel, DType dtype);

}  // namespace loom::core::webgpu
