// Packed weights (R16) in kernels: one decode snippet per family of number types, read as they lie.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// How the packed matrix `w` is bound: as 32-bit words, or as vec4<u32> for kernels that read whole
// lines of it.
enum class WeightView : uint8_t { words, quads };

// Binds the packed matrix `w` to a call, as an operand "w". Its kernel sees
//   w_at(row, k) -> f32            value k of row `row`, rounded to f32 once
//   w_block(row, k) -> mat4x4<f32> rows row .. row + 3, columns k .. k + 3, both multiples of 4:
//                                  column j of the result is k + j; zero beyond the last k
//   w_tile(base, lane, k)          the same; base = w_base(row), lane = row % 16
//   w_packed(base, lane, k) -> Packed, w_tile_of(packed, base, lane, k)   the same in two moves:
//   what
//                                  is read, and what is made of it, for kernels that fetch ahead
// for rows and k that the matrix has; w_block also for padding rows of the last group. Types with
// integer levels (and nf4), but those of reads_spans(), have more:
//   w_line(base, lane, k)          index of the word that holds the codes of k .. k + 3, k % 4 == 0
//   w_codes(word, k)               those codes, one a byte
//   w_levels(codes)                (not nf4) their levels as four signed bytes, but too large by
//   w_offsets(base, lane)          this much, for four rows, lane % 4 == 0
//   w_values(codes, offset)        their levels (nf4: values) as vec4<f32>
//   w_steps(base, lane, k)         what multiplies the levels of four rows, lane % 4 == 0
//   w_step_words(base, lane, k), w_steps_of(words, lane)   the same in two moves
// wide types but those of the f64 path
//   w_raw(base, lane, k), w_of_raw(words, base, lane)      values of four rows at one k, likewise
// types of reads_spans()
//   w_fetch(base, lane, k) -> Codes, w_codes_of(codes, k) -> vec4<u32>   codes of k .. k + 3 of
//   four
//                                  rows, one a byte, in two moves
//   w_around(base, lane, k) -> Around, w_span_of(around, lane, k) -> Span   zero, scale and shift
//   of
//                                  four rows: a value is (code - w_bias - zero) * scale + shift;
//                                  what is around codes is that of 32 k, a span may be half of
//                                  them. w_zeros, w_shifts: whether zero, shift may be other than 0
//   w_tile_in(span, codes, k)      w_tile_of(), where the span is known
// and for all types
//   w_word(i), w_pair(i), w_words(i)   1, 2 or 4 words from i, which is a multiple of that
Call& weights(Call& call, const Tensor& w, WeightView view = WeightView::words);

// Types that kernels read four rows at one k: wide ones. Of the others they read 32 k at a time.
bool reads_rows(DType dtype);
// Types with codes in two planes, zeros of blocks or super-blocks.
bool reads_spans(DType dtype);
// Types whose integer levels kernels read; the others have no kernel for quantized activations.
bool reads_levels(DType dtype);
// Types that a kernel packs. Super-blocks are a search in f64, which a device has no numbers for;
// the others that it leaves out have codes in two planes or zeros per block.
bool packs(DType dtype);
// What those say that have none.
Error no_levels(std::string_view kernel, DType dtype);

}  // namespace loom::core::webgpu
