/** The worker's side of groups of points, of several networks together, and of measures. */

import type { Calls } from "./calls.js";
import * as ffi from "./ffi.js";
import { after, type Later } from "./later.js";
import type { Scope, Tensor } from "./memory.js";
import type { Loaded } from "./module.js";
import { withOptions } from "./named.js";
import type { AnalysisOperations } from "./protocol.js";

type Operations<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (context: unknown, ...args: A) => Later<R> : never;
};

/** A list of 64-bit integers in memory of the module. */
export function integers(scope: Scope, m: Loaded, values: BigInt64Array): number {
  const at = scope.keep(m.memory.allocate(values.length * 8));
  new BigInt64Array(m.memory.memory.buffer, at, values.length).set(values);
  return at;
}
function doubles(scope: Scope, m: Loaded, values: Float64Array | null): number {
  if (values === null) return 0;
  const at = scope.keep(m.memory.allocate(values.length * 8));
  new Float64Array(m.memory.memory.buffer, at, values.length).set(values);
  return at;
}

/** `engine`: address of the engine, once it was started. */
export function analysisOperations(calls: Calls, engine: () => number): Operations<AnalysisOperations> {
  const ofTensors = (tensors: readonly Tensor[], body: (at: number, count: bigint, out: number, scope: Scope, m: Loaded) =>
    number): Tensor => calls.array(calls.out((scope, out, m) =>
    body(m.memory.tensors(scope, tensors), BigInt(tensors.length), out, scope, m)));
  const deviation = (handle: number): number => calls.at(handle, "deviation");
  const adaptation = (handle: number): number => calls.at(handle, "adaptation");
  return {
    kmeans: (_, points, options, start) => withOptions(calls, "kmeans", options, (named) => calls.scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(16)), report = m.memory.report(scope, ffi.loom_kmeans_report);
      m.memory.bytes(out, 16).fill(0);
      const x = m.memory.tensor(scope, points), first = start === null ? 0 : m.memory.tensor(scope, start);
      const how = m.memory.options(scope, ffi.loom_kmeans_options, {}, { options: named, start: first });
      return after(m.wait((f) => f.loom_kmeans(engine(), x, how, out, out + 8, report)), (status) => {
        calls.check(status);
        const { inertia, rounds, converged } = m.memory.read(ffi.loom_kmeans_report, report) as unknown as ffi.KmeansReport;
        const labels = calls.array(m.memory.readAddress(out)), centers = calls.array(m.memory.readAddress(out + 8));
        return { labels, centers, inertia, rounds, converged };
      });
    })),
    silhouette: (_, points, labels, distance) => calls.scoped((scope, m) => {
      const x = m.memory.tensor(scope, points), groups = integers(scope, m, labels);
      const out = scope.keep(m.memory.allocate(8)), count = BigInt(labels.length);
      calls.check(m.call((f) => f.loom_silhouette(engine(), x, groups, count, ffi.Distance[distance], out)));
      return m.memory.view.getFloat64(out, true);
    }),
    linkage: (_, points, options) => withOptions(calls, "linkage", options, (named) =>
      ofTensors([points], (x, _count, out, _scope, m) => m.call((f) => f.loom_linkage(engine(), x, named, out)))),
    linkageOfDistances: (_, distances, options) => withOptions(calls, "linkage", options, (named) =>
      ofTensors([distances], (x, _count, out, _scope, m) => m.call((f) => f.loom_linkage_of_distances(x, named, out)))),
    linkageCut: (_, merges, threshold, groups) => ofTensors([merges], (x, _count, out, _scope, m) =>
      m.call((f) => f.loom_linkage_cut(x, threshold, BigInt(groups), out))),

    complementaryPairs: (_, masks, least) => ofTensors([masks], (x, _count, out, _scope, m) =>
      m.call((f) => f.loom_complementary_pairs(x, least, out))),
    greedyCover: (_, masks, most) => ofTensors([masks], (x, _count, out, _scope, m) =>
      m.call((f) => f.loom_greedy_cover(x, BigInt(most), out))),
    majorityVote: (_, votes, weights) => ofTensors([votes], (x, _count, out, scope, m) => {
      const shares = doubles(scope, m, weights);
      return m.call((f) => f.loom_majority_vote(x, shares, out));
    }),
    softVote: (_, shares, weights) => ofTensors(shares, (x, count, out, scope, m) => {
      const factors = doubles(scope, m, weights);
      return m.call((f) => f.loom_soft_vote(x, count, factors, out));
    }),
    stackInputs: (_, shares) => ofTensors(shares, (x, count, out, _scope, m) =>
      m.call((f) => f.loom_stack_inputs(x, count, out))),
    stack: (_, shares, labels, options) => calls.add("network", withOptions(calls, "stack", options, (named) =>
      calls.out((scope, out, m) => {
        const x = m.memory.tensors(scope, shares), classes = integers(scope, m, labels);
        const [count, samples] = [BigInt(shares.length), BigInt(labels.length)];
        return m.wait((f) => f.loom_stack(engine(), x, count, classes, samples, named, out));
      }))),

    deviationCreate: (_, json) => calls.add("deviation", calls.out((scope, out, m) => {
      if (json === null) return m.call((f) => f.loom_deviation_create(out));
      const text = m.memory.text(scope, json);
      return m.call((f) => f.loom_deviation_from_json(text, out));
    })),
    deviationAdd: (_, handle, answers, truths) => calls.scoped((scope, m) => {
      const said = doubles(scope, m, answers), wanted = doubles(scope, m, truths);
      const count = BigInt(Math.min(answers.length, truths.length));
      calls.check(m.call((f) => f.loom_deviation_add(deviation(handle), said, wanted, count)));
    }),
    deviationAddClasses: (_, handle, called, classes) => calls.scoped((scope, m) => {
      const said = integers(scope, m, BigInt64Array.from(called.map(BigInt)));
      const wanted = integers(scope, m, BigInt64Array.from(classes.map(BigInt)));
      const count = BigInt(Math.min(called.length, classes.length));
      calls.check(m.call((f) => f.loom_deviation_add_classes(deviation(handle), said, wanted, count)));
    }),
    deviationJson: (_, handle) => calls.text((_scope, out, m) =>
      m.call((f) => f.loom_deviation_json(deviation(handle), out))),
    deviationBucket: (_, handle, name) => calls.array(calls.out((scope, out, m) => {
      const text = m.memory.text(scope, name);
      return m.call((f) => f.loom_deviation_bucket(deviation(handle), text, out));
    })),
    deviationWorst: (_, handle, count) => calls.array(calls.out((_scope, out, m) =>
      m.call((f) => f.loom_deviation_worst(deviation(handle), BigInt(count), out)))),

    adaptationCreate: (_, options) => calls.add("adaptation", calls.out((scope, out, m) =>
      m.call((f) => f.loom_adaptation_create(m.memory.options(scope, ffi.loom_adaptation_options, options), out)))),
    adaptationSchedule: (_, handle, at, task) => calls.scoped((_scope, m) =>
      calls.check(m.call((f) => f.loom_adaptation_schedule(adaptation(handle), at, BigInt(task))))),
    adaptationStart: (_, handle, task) => calls.scoped((_scope, m) =>
      calls.check(m.call((f) => f.loom_adaptation_start(adaptation(handle), BigInt(task))))),
    adaptationRecord: (_, handle, right) => calls.scoped((scope, m) => {
      const out = scope.keep(m.memory.allocate(16));
      calls.check(m.call((f) => f.loom_adaptation_record(adaptation(handle), right, out, out + 8)));
      return { task: Number(m.memory.view.getBigInt64(out, true)), over: m.memory.view.getInt32(out + 8, true) !== 0 };
    }),
    adaptationJson: (_, handle) => calls.text((_scope, out, m) =>
      m.call((f) => f.loom_adaptation_json(adaptation(handle), out))),
  };
}
