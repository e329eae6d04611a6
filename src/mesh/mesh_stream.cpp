// Streams: a sample for every tick. On a device all inputs of a piece of a stream are uploaded at
// once. Its ticks run without host waits, and all results are downloaded at once.
#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "mesh/mesh_impl.hpp"

namespace loom::core {
namespace {

// The tick number in the form that ops use, exact in f32.
float mesh_step(int64_t tick) {
  return static_cast<float>(tick % (1 << 24));
}

MemoryRange rows_of(const Tensor& t, int64_t first, int64_t count) {
  const int64_t row = plain_bytes(t.dtype, Shape{t.shape.last()});
  return {t.data + first * row, count * row};
}

}  // namespace

// Sets the activity of slots without a value to NaN.
void Mesh::Impl::mark_empty(const Tensor& activity, int64_t first, int64_t count) const {
  const auto n = static_cast<size_t>(slots());
  for (int64_t i = 0; i < count; ++i) {
    float* row = activity.f32() + i * slots();
    for (size_t k = 0; k < n; ++k) {
      const bool empty = first_tick[k] == 0 || first + i < first_tick[k];
      if (empty || topology.slots()[k].delay) row[k] = std::numeric_limits<float>::quiet_NaN();
    }
  }
}

Status Mesh::Impl::stream_here(const Tensor& x, int64_t count, const Tensor& y,
                               const Tensor& activity) {
  const Shape& input = ports[0].shape;
  const auto out = static_cast<size_t>(topology.output());
  const auto keep = [&](const Tensor& from, const Tensor& to, int64_t row) -> Status {
    if (to.empty()) return {};
    LOOM_TRY(to_host(*ops, {from}));
    const int64_t bytes = plain_bytes(to.dtype, Shape{to.shape.count() / count});
    mesh_copy(from, tensor_at(to.data + row * bytes, from.dtype, from.shape));
    return {};
  };
  const int64_t begin = ticks;
  for (int64_t done = 0; done < count;) {
    const Tensor mine = part_of_tensor(x, done, input);
    if (block_fits(count - done)) {
      LOOM_TRY(run_block(mine));
      LOOM_TRY(keep(block.y, y, done));
      LOOM_TRY(keep(block.activity, activity, done));
      done += block_ticks;
      mesh_copy(part_of_tensor(x, done - 1, input), ports[0]);
      port_changed[0] = true;
      continue;
    }
    mesh_copy(mine, ports[0]);
    port_changed[0] = port_set[0] = true;
    LOOM_TRY(tick_once());
    LOOM_TRY(keep(sides[ticks % 2][out], y, done));
    LOOM_TRY(keep(single[ticks % 2].activity, activity, done));
    ++done;
  }
  if (!activity.empty()) mark_empty(activity, begin + 1, count);
  return {};
}

// Steps and samples are contiguous, so one upload suffices.
Status Mesh::Impl::send_tape(const Tensor& x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) tape.steps.f32()[i] = mesh_step(ticks + i);
  const Tensor rows = tensor_at(tape.x.data, x.dtype, Shape{count, ports[0].shape.count()});
  mesh_copy(tensor_at(x.data, x.dtype, rows.shape), rows);
  const MemoryRange last = rows_of(tape.x, 0, count);
  return ops->device->upload(tape.steps.data, last.begin + last.bytes - tape.steps.data);
}

Status Mesh::Impl::tick_of_tape(int64_t row) {
  Tick& t = single[(ticks + 1) % 2];
  Device& device = *ops->device;
  port_set[0] = true;
  port_changed[0] = false;
  LOOM_TRY(send_ports());
  LOOM_TRY(device.copy(rows_of(tape.x, row, 1), ports[0].data));
  LOOM_TRY(device.copy({tape.steps.data + row * 4, 4}, t.step.data));
  const std::vector<bool> fires = topology.firing(port_set, held);
  LOOM_TRY(run_parts(t, fires));
  fired(fires);
  const auto out = static_cast<size_t>(topology.output());
  LOOM_TRY(device.copy(range_of(sides[ticks % 2][out]), rows_of(tape.y, row, 1).begin));
  if (!run.activity) return {};
  return device.copy(range_of(t.activity), rows_of(tape.activity, row, 1).begin);
}

Status Mesh::Impl::block_of_tape(int64_t row) {
  Device& device = *ops->device;
  for (size_t p = 1; p < ports.size(); ++p) {
    if (!block_changed[p]) continue;
    for (int64_t i = 0; i < block_ticks; ++i) {
      mesh_copy(ports[p], part_of_tensor(block.x[p], i, ports[p].shape));
    }
    LOOM_TRY(to_device(*ops, block.x[p]));
    block_changed[p] = false;
  }
  LOOM_TRY(device.copy(rows_of(tape.x, row, block_ticks), block.x[0].data));
  LOOM_TRY(device.copy({tape.steps.data + row * 4, block_ticks * 4}, block.steps.data));
  Recorder& recorder = block.program->recorder();
  LOOM_TRY(recorder.run());
  passed(block_ticks);
  LOOM_TRY(device.copy(range_of(block.y), rows_of(tape.y, row, 1).begin));
  if (!run.activity) return {};
  return device.copy(range_of(block.activity), rows_of(tape.activity, row, 1).begin);
}

Status Mesh::Impl::stream_there(const Tensor& x, int64_t count, const Tensor& y,
                                const Tensor& activity) {
  const Shape& input = ports[0].shape;
  for (int64_t done = 0; done < count;) {
    const int64_t some = std::min(count - done, tape.ticks), begin = ticks;
    LOOM_TRY(send_tape(part_of_tensor(x, done, input), some));
    {
      const Gathering gathering(run.gather);
      for (int64_t i = 0; i < some;) {
        const bool whole = block_fits(some - i);
        LOOM_TRY(whole ? block_of_tape(i) : tick_of_tape(i));
        i += whole ? block_ticks : 1;
      }
    }
    std::vector<MemoryRange> results;
    if (!y.empty()) results.push_back(rows_of(tape.y, 0, some));
    if (!activity.empty()) results.push_back(rows_of(tape.activity, 0, some));
    if (!results.empty()) LOOM_TRY(ops->device->download(results));
    const auto keep = [&](const Tensor& from, const Tensor& to) {
      if (to.empty()) return;
      const Shape rows{some, from.shape.last()};
      const int64_t bytes = plain_bytes(from.dtype, Shape{rows.last()});
      mesh_copy(tensor_at(from.data, from.dtype, rows),
                tensor_at(to.data + done * bytes, from.dtype, rows));
    };
    keep(tape.y, y);
    keep(tape.activity, activity);
    if (!activity.empty()) {
      mark_empty(part_of_tensor(activity, done, Shape{slots()}), begin + 1, some);
    }
    done += some;
  }
  mesh_copy(part_of_tensor(x, count - 1, input), ports[0]);
  port_changed[0] = true;
  return {};
}

Status Mesh::stream(const Tensor& x, int64_t count, const Tensor& y, const Tensor& activity) {
  Impl& s = *impl_;
  const Shape& result = s.result();
  const Shape& input = s.ports[0].shape;
  if (count < 1 || x.shape.count() != count * input.count() ||
      (!y.empty() && y.shape.count() != count * result.count())) {
    return invalid(cat(count, " ticks take ", input.after(count).str(), " and give ",
                       result.after(count).str(), "; got ", x.shape.str(), " and ", y.shape.str()));
  }
  if (!activity.empty() && !s.run.activity) {
    return invalid("the mesh was made without a record of activity; ask for it in create()");
  }
  if (!activity.empty() && activity.shape.count() != count * s.slots()) {
    return invalid(cat(count, " ticks of ", s.slots(), " slots have an activity ",
                       Shape{count, s.slots()}.str(), ", got ", activity.shape.str()));
  }
  const bool there = s.tape.ticks > 0 && count > 1;
  return there ? s.stream_there(x, count, y, activity) : s.stream_here(x, count, y, activity);
}

}  // namespace loom::core
