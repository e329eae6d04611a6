// Arguments of every op: trivially copyable, so a command list can hold them by value. Shapes: R
// rows, K inner width, N outputs, H heads, G kv heads, D head width, P positions, B samples. All
// activations are plain and have the backend's compute type (f32; f64 for the oracle of gradients)
// unless stated otherwise. docs/numerics.md defines the order of every sum; nothing else about an
// op may change its bits. An op named X_dx or X_dw is the gradient of X: d* is the derivative of
// the loss with respect to *. `accumulate` adds to the former output: old + new, once per value.
// `rows` (i32; empty means all, in order): the rows of a table that the op touches, each at most
// once; negative ones are ignored. ops/operands.hpp defines the other members of a struct.
#pragma once

#include "ops/args/attention.hpp"
#include "ops/args/elementwise.hpp"
#include "ops/args/experts.hpp"
#include "ops/args/layers.hpp"
#include "ops/args/moving.hpp"
#include "ops/args/products.hpp"
#include "ops/args/recurrence.hpp"
#include "ops/args/rows.hpp"
#include "ops/args/training.hpp"
