// kv_write. In caches of narrow types several positions share a word of keys. One invocation makes
// it, from its former value and all rows of the list that fall into it.
#include "backend/webgpu/kernels/attention/kv_write.hpp"
#include "backend/webgpu/kernels/attention/cache.hpp"
#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/kernels/places.hpp"
#include "base/text.hpp"

namespace loom::core::webgpu {
namespace {

constexpr Kernel kKvWrite{"kv_write", R"(
fn run(i: u32) {
  let r = i / p.cols;
  let c = i % p.cols;
  let head = c / p.head_width;
  let d = c % p.head_width;
  let position = position_of(r);
  let group = head * (p.capacity / 16u) + group_of(r, position / 16u);
  let place = group * 16u + position % 16u;
  let base = base_of(r);
  keys_set(base + (group * p.head_width + d) * 16u + position % 16u, k_at(r * p.k_s + c));
  values_set(base + place * p.head_width + d, v_at(r * p.v_s + c));
}
)"};

// For halves, an invocation makes a word. A word of keys has two positions; a position outside of
// the written range keeps its value. A word of values has two numbers of one position.
constexpr Kernel kKvWriteHalves{"kv_write_halves", R"(
fn run(i: u32) {
  if (i < p.key_words) {
    let c = i % p.cols;
    let word = p.first / 2u + i / p.cols;
    let group = c / p.head_width * (p.capacity / 16u) + word / 8u;
    let at = (group * p.head_width + c % p.head_width) * 8u + word % 8u;
    var made = keys_word(at);
    for (var position = 2u * word; position < 2u * word + 2u; position++) {
      if (position >= p.first && position < p.first + p.rows) {
        made = with_half(made, position, k_at((position - p.first) * p.k_s + c));
      }
    }
    keys_put(at, made);
    return;
  }
  let r = (i - p.key_words) / (p.cols / 2u);
  let c = (i - p.key_words) % (p.cols / 2u) * 2u;
  let row = c / p.head_width * p.capacity + p.first + r;
  let x = r * p.v_s + c;
  keep_values(row * p.head_width + c % p.head_width, v_at(x), v_at(x + 1u));
}
)"};

// A workgroup has one head of one row. It finds the rows that fall into the same words of keys,
// `unit` positions; the first of them writes for all. The cache's type defines keep_unit.
constexpr Kernel kKvWriteShared{"kv_write_shared", R"(
const absent = 0xffffffffu;
var<workgroup> of_unit: array<u32, unit>;
fn spot_of(row: u32) -> u32 {
  let position = position_of(row);
  return group_of(row, position / 16u) * 16u + position % 16u;
}
fn run(i: u32, lane: u32) {
  let row = i / p.kv_heads;
  let kv_head = i % p.kv_heads;
  cache_base = base_of(row);
  let own = spot_of(row);
  if (lane < unit) { of_unit[lane] = absent; }
  workgroupBarrier();
  for (var r = lane; r < p.rows; r += lanes) {
    let other = spot_of(r);
    if (other / unit == own / unit && base_of(r) == cache_base) { of_unit[other % unit] = r; }
  }
  workgroupBarrier();
  measure_unit(kv_head, lane);
  var leads = true;
  for (var u = 0u; u < own % unit; u++) { leads = leads && of_unit[u] == absent; }
  if (leads) { keep_unit(kv_head, own / unit * unit, lane); }
  others(row, kv_head, lane);
}
)"};

constexpr std::string_view kHalfUnits = R"(
fn measure_unit(kv_head: u32, lane: u32) {}
fn keep_unit(kv_head: u32, first: u32, lane: u32) {
  let group = kv_head * (p.capacity / 16u) + first / 16u;
  for (var d = lane; d < width; d += lanes) {
    let at = cache_base + (group * width + d) * 8u + first % 16u / 2u;
    var made = keys_word(at);
    for (var u = 0u; u < 2u; u++) {
      let r = of_unit[u];
      if (r != absent) { made = with_half(made, u, new_key(r, kv_head * width + d)); }
    }
    keys_put(at, made);
  }
  for (var d = 2u * lane; d < width; d += 2u * lanes) {
    let c = kv_head * width + d;
    for (var u = 0u; u < 2u; u++) {
      let r = of_unit[u];
      if (r == absent) { continue; }
      keep_values((kv_head * p.capacity + first + u) * width + d, new_value(r, c),
                  new_value(r, c + 1u));
    }
  }
}
)";

// Codes of q8_0 as in dtype/codecs/blocks.cpp. The step is the largest magnitude / 127, rounded to
// f16 only for storage. Codes are values times the inverse of the unrounded step, half away from
// zero. The two quotients are exact (divide_bits).
constexpr std::string_view kByteUnits = R"(
const blocks: u32 = width / 32u;
var<workgroup> inverses: array<f32, 8u * blocks>;
var<workgroup> steps: array<u32, 8u * blocks>;
fn new_number(side: u32, r: u32, c: u32) -> f32 {
  if (side == 0u) { return new_key(r, c); }
  return new_value(r, c);
}
fn measure_unit(kv_head: u32, lane: u32) {
  for (var t = lane; t < 8u * blocks; t += lanes) {
    let r = of_unit[t / blocks % 4u];
    if (r == absent) { continue; }
    var most = 0u;
    for (var d = 0u; d < 32u; d++) {
      let x = new_number(t / blocks / 4u, r, kv_head * width + t % blocks * 32u + d);
      let size = bitcast<u32>(x) & 0x7fffffffu;
      most = max(most, select(size, 0u, size >= 0x7f800000u));
    }
    let step = divide_bits(most, 0x42fe0000u);
    steps[t] = half_code(bitcast<f32>(step));
    inverses[t] = select(bitcast<f32>(divide_bits(0x3f800000u, step)), 0.0, step == 0u);
  }
  workgroupBarrier();
}
fn byte_code(x: f32, inverse: f32) -> u32 {
  let t = clamp(select(x * inverse, 0.0, is_nan(x)), -128.0, 127.0);
  let whole = i32(t);
  let rest = t - f32(whole);
  return u32(whole + i32(rest >= 0.5) - i32(rest <= -0.5)) & 255u;
}
fn keep_unit(kv_head: u32, first: u32, lane: u32) {
  let group = kv_head * (p.capacity / 16u) + first / 16u;
  for (var d = lane; d < width; d += lanes) {
    let at = cache_base + (group * width + d) * 4u + first % 16u / 4u;
    var made = keys_word(at);
    for (var u = 0u; u < 4u; u++) {
      let r = of_unit[u];
      if (r == absent) { continue; }
      let code = byte_code(new_key(r, kv_head * width + d), inverses[u * blocks + d / 32u]);
      made = (made & ~(255u << (8u * u))) | (code << (8u * u));
    }
    keys_put(at, made);
  }
  let row = kv_head * p.capacity + first;
  for (var i = lane; i < width; i += lanes) {
    let u = i / (width / 4u);
    let d = i % (width / 4u) * 4u;
    let r = of_unit[u];
    if (r == absent) { continue; }
    var made = 0u;
    for (var j = 0u; j < 4u; j++) {
      let x = new_value(r, kv_head * width + d + j);
      made |= byte_code(x, inverses[(4u + u) * blocks + d / 32u]) << (8u * j);
    }
    values_put(cache_base + ((row + u) * width + d) / 4u, made);
  }
  for (var i = lane; i < 2u * blocks; i += lanes) {
    let pair = i / blocks;
    let b = i % blocks;
    let key_at = cache_base + p.steps_at + ((group * blocks + b) * 16u + first % 16u) / 2u + pair;
    let value_at = cache_base + p.steps_at + (row + 2u * pair) * blocks / 2u + b;
    var key_word = keys_word(key_at);
    var value_word = values_word(value_at);
    for (var half = 0u; half < 2u; half++) {
      let mask = 0xffffu << (16u * half);
      let u = 2u * pair + half;
      if (of_unit[u] != absent) {
        key_word = (key_word & ~mask) | (steps[u * blocks + b] << (16u * half));
      }
      let j = 2u * b + half;
      let v = 2u * pair + j / blocks;
      if (of_unit[v] != absent) {
        value_word = (value_word & ~mask) | (steps[(4u + v) * blocks + j % blocks] << (16u * half));
      }
    }
    keys_put(key_at, key_word);
    values_put(value_at, value_word);
  }
}
)";

constexpr std::string_view kGiven = R"(
fn new_key(r: u32, c: u32) -> f32 { return k_at(r * p.k_s + c); }
fn new_value(r: u32, c: u32) -> f32 { return v_at(r * p.v_s + c); }
fn others(row: u32, kv_head: u32, lane: u32) {}
)";

// Keys are rotated as they are read. The queries of a head that shares them are rotated in the same
// kernel.
constexpr std::string_view kTurned = R"(
fn turned(a: f32, b: f32, position: u32, j: u32) -> vec2<f32> {
  let cosine = cos_at(position * p.cos_s + j);
  let sine = p.sign * sin_at(position * p.sin_s + j);
  return vec2(a * cosine - b * sine, a * sine + b * cosine);
}
fn new_key(r: u32, c: u32) -> f32 {
  let d = c % width;
  let begin = r * p.k_s + c - d;
  if (d >= 2u * p.half) { return k_at(begin + d); }
  let j = d % p.half;
  let both = turned(k_at(begin + j), k_at(begin + j + p.half), position_of(r), j);
  return select(both.x, both.y, d >= p.half);
}
fn new_value(r: u32, c: u32) -> f32 { return v_at(r * p.v_s + c); }
fn others(row: u32, kv_head: u32, lane: u32) {
  let units = width - p.half;
  for (var i = lane; i < p.share * units; i += lanes) {
    let c = (kv_head * p.share + i / units) * width;
    let j = i % units;
    if (j >= p.half) {
      y_set(row * p.y_s + c + j + p.half, q_at(row * p.q_s + c + j + p.half));
      continue;
    }
    let x = row * p.q_s + c + j;
    let both = turned(q_at(x), q_at(x + p.half), position_of(row), j);
    y_set(row * p.y_s + c + j, both.x);
    y_set(row * p.y_s + c + j + p.half, both.y);
  }
  for (var d = lane; has_kept && d < width; d += lanes) {
    kept_set(row * p.kept_row + kv_head * width + d, new_key(row, kv_head * width + d));
  }
}
)";

void turn(Call& call, const RopeWrite& run) {
  const RopeArgs& q = *run.q;
  const int64_t width = run.write->cache.head_dim;
  call.text(kTurned)
      .read("k", run.k->x)
      .read("q", q.x)
      .read("cos", q.cos)
      .read("sin", q.sin)
      .write("y", q.y)
      .write("kept", run.kept)
      .value("kept_row", run.kept.row_stride)
      .value("share", q.heads / run.write->cache.kv_heads)
      .value("half", (q.rotary_dim > 0 ? q.rotary_dim : width) / 2)
      .value("sign", q.inverse ? -1.0f : 1.0f);
}

}  // namespace

Status kv_write_shared(Frame& frame, const KvWriteArgs& args, const RopeWrite* rope) {
  const KvCache& cache = args.cache;
  const bool bytes = dtype_info(cache.dtype).block > 0;
  Call call(frame, kKvWriteShared);
  at_positions(cache_numbers(call, cache, Access::update), args.row_positions, args.first, 0,
               &cache);
  call.text(bytes ? kByteUnits : kHalfUnits);
  if (rope != nullptr) {
    turn(call, *rope);
  } else {
    call.text(kGiven).read("k", args.k);
  }
  return call.read("v", args.v)
      .value("rows", args.k.rows())
      .value("kv_heads", cache.kv_heads)
      .value("capacity", cache.capacity)
      .constant("width", cache.head_dim)
      .constant("unit", bytes ? 4 : 2)
      .lanes(64)
      .rows(args.k.rows() * cache.kv_heads);
}

Status known_cache(std::string_view op, const KvCache& cache) {
  if (reads_cache(cache)) return {};
  return unsupported(cat(op, ": no kernel for a cache of ", cache.head_dim, " numbers per head in ",
                         dtype_name(cache.dtype)));
}

namespace kernels {

Status kv_write(Frame& frame, const KvWriteArgs& args) {
  LOOM_TRY(known_cache("kv_write", args.cache));
  if (args.k.rows() == 0) return {};
  const KvCache& cache = args.cache;
  const int64_t rows = args.k.rows(), cols = args.k.cols();
  const bool floats = cache.dtype == DType::f32;
  const bool blocks = dtype_info(cache.dtype).block > 0;
  if (blocks || (!floats && !args.row_positions.empty())) return kv_write_shared(frame, args);
  Call call(frame, floats ? kKvWrite : kKvWriteHalves);
  cache_numbers(call, cache, Access::update)
      .read("k", args.k)
      .read("v", args.v)
      .value("cols", cols)
      .value("head_width", cache.head_dim)
      .value("capacity", cache.capacity);
  if (floats)
    return at_positions(call, args.row_positions, args.first, 0, &cache).items(rows * cols);
  call.value("first", args.first);
  const int64_t key_words = ((args.first + rows - 1) / 2 - args.first / 2 + 1) * cols;
  return call.value("rows", rows)
      .value("key_words", key_words)
      .items(key_words + rows * (cols / 2));
}

}  // namespace kernels
}  // namespace loom::core::webgpu
