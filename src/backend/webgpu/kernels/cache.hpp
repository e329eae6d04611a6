// Keys and values of a cache in kernels: floats, halves that lie in words by two, or bytes by
// four with a step per block.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// f32; f16 and bf16 with an even number of values per head; q8_0.
bool reads_cache(const KvCache& cache);

// Binds the cache to a call, as operands "keys" and "values". Its kernel sees, i counting numbers
// as they lie (KvCache),
//   key_number(i), value_number(i) -> f32
//   as_kept(x) -> f32          what the cache keeps of x; not of q8_0
// and with Access::update, but for q8_0,
//   keep_key(i, x)             by the only invocation that writes i or the other half of its word
//   keep_values(i, x, y)       i and i + 1, i even
// cache_base: words before the sequence that is meant, 0 until the kernel sets it.
// And for halves with_half(word, i, x), the word with x in the place of i. Who reads the other half
// of a word while it is written finds the same bits there as before.
Call& cache_numbers(Call& call, const KvCache& cache, Access access = Access::read);

}  // namespace loom::core::webgpu
