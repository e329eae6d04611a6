// Keys and values of a cache in kernels: floats, halves (two per word), or bytes (four per word)
// with a step per block.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// f32; f16 and bf16 with an even number of values per head; q8_0.
bool reads_cache(const KvCache& cache);

// Binds the cache to a call, as operands "keys" and "values". The index i counts numbers in storage
// order (KvCache). The kernel sees:
//   key_number(i), value_number(i) -> f32.
//   as_kept(x) -> f32          x as the cache stores it; not for q8_0.
// With Access::update, except for q8_0, it also sees:
//   keep_key(i, x)             from the only invocation that writes i or its word's other half.
//   keep_values(i, x, y)       for i and i + 1, i even.
// cache_base is the number of words before the current sequence, 0 until the kernel sets it. For
// halves there is also with_half(word, i, x), the word with x as half i. The other half of a word
// can be read during the write; its bits do not change.
Call& cache_numbers(Call& call, const KvCache& cache, Access access = Access::read);

}  // namespace loom::core::webgpu
