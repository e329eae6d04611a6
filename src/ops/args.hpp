// Arguments of every op: trivially copyable, so a command list can hold them by value. Shapes: R
// rows, K inner width, N outputs, H heads, G kv heads, D head width, P positions, B samples. All
// activations are plain and of the backend's compute type (f32; f64 for the oracle of gradients)
// unless said otherwise. The order of every sum is that of docs/numerics.md; nothing else about an
// op may change its bits. An op named X_dx or X_dw is the gradient of X: d* is the derivative of
// the loss with respect to *. `accumulate` adds to what the output holds: old + new, once per
// value. `rows` (i32; empty: all, in order): the rows of a table that the op touches, each once at
// most; negative ones stand for none. What a struct says beside its fields: ops/operands.hpp.
#pragma once

#include "ops/args/attention.hpp"
#include "ops/args/elementwise.hpp"
#include "ops/args/layers.hpp"
#include "ops/args/moving.hpp"
#include "ops/args/products.hpp"
#include "ops/args/rows.hpp"
#include "ops/args/training.hpp"
