/** The worker's side of sessions, data sets, trainers and meshes besides running and training. */

import { integers } from "./analysis_server.js";
import type { Calls } from "./calls.js";
import * as ffi from "./ffi.js";
import type { Later } from "./later.js";
import { textList } from "./language_server.js";
import type { Loaded } from "./module.js";
import type { Handle, RunOperations } from "./protocol.js";

type Operations<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (context: unknown, ...args: A) => Later<R> : never;
};

export function runOperations(calls: Calls): Operations<RunOperations> {
  /** The integer that a call writes to its last argument. */
  const number = (body: (m: Loaded, out: number) => number): number => calls.scoped((scope, m) => {
    const out = scope.keep(m.memory.allocate(8));
    calls.check(body(m, out));
    return Number(m.memory.view.getBigInt64(out, true));
  });
  const session = (handle: Handle): number => calls.at(handle, "session");
  return {
    sessionSetLengths: (_, handle, lengths) => calls.scoped((scope, m) => {
      const list = integers(scope, m, BigInt64Array.from(lengths.map(BigInt)));
      calls.check(m.call((f) => f.loom_session_set_lengths(session(handle), list, BigInt(lengths.length))));
    }),
    sessionStates: (_, handle) => {
      const count = number((m, out) => m.call((f) => f.loom_session_state_count(session(handle), out)));
      return Array.from({ length: count }, (_v, i) => calls.array(calls.out((_scope, out, m) =>
        m.call((f) => f.loom_session_state(session(handle), BigInt(i), out)))));
    },
    sessionSetStates: (_, handle, states) => calls.scoped((scope, m) => {
      const list = m.memory.tensors(scope, states);
      calls.check(m.call((f) => f.loom_session_set_states(session(handle), list, BigInt(states.length))));
    }),
    sessionNumber: (_, handle, what) => number((m, out) =>
      m.call((f) => f[`loom_session_${what}`](session(handle), out))),
    datasetJson: (_, handle) => calls.text((_scope, out, m) =>
      m.call((f) => f.loom_dataset_json(calls.at(handle, "dataset"), out))),
    datasetFold: (_, handle, fold, count, options) => calls.scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(16)), how = m.memory.options(scope, ffi.loom_split_options, options);
      const data = calls.at(handle, "dataset");
      calls.check(m.call((f) => f.loom_dataset_fold(data, BigInt(fold), BigInt(count), how, out, out + 8)));
      const part = (at: number): Handle => calls.add("dataset", m.memory.readAddress(at));
      return [part(out), part(out + 8)];
    }),
    trainerNumber: (_, handle, what) => number((m, out) =>
      m.call((f) => f[`loom_trainer_${what}`](calls.at(handle, "trainer"), out))),
    trainerCalibrate: (_, handle, data) => calls.text((_scope, out, m) =>
      m.wait((f) => f.loom_trainer_calibrate(calls.at(handle, "trainer"), calls.at(data, "dataset"), 0, 0, out))),
    meshCells: (_, handle) => calls.text((_scope, out, m) =>
      m.call((f) => f.loom_mesh_cells(calls.at(handle, "mesh"), out))),
    meshRun: (_, handle, ports, samples) => calls.array(calls.out((scope, out, m) => {
      const names = textList(scope, m, ports), list = m.memory.tensors(scope, samples);
      return m.wait((f) => f.loom_mesh_run(calls.at(handle, "mesh"), names, list, BigInt(samples.length), out));
    })),
    meshActivity: (_, handle) => calls.array(calls.out((_scope, out, m) =>
      m.call((f) => f.loom_mesh_activity(calls.at(handle, "mesh"), out)))),
  };
}
