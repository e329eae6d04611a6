/** The worker's part of populations, genomes and meshes, and of comparing two networks. */

import type { Calls } from "./calls.js";
import * as ffi from "./ffi.js";
import type { Later } from "./later.js";
import type { EvolutionOperations } from "./protocol.js";

type Operations<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (context: unknown, ...args: A) => Later<R> : never;
};

/** `engine`: address of the engine, once it was started. */
export function evolutionOperations(calls: Calls, engine: () => number): Operations<EvolutionOperations> {
  return {
    populationCreate: (_, options) => calls.add("population", calls.out((scope, out, m) =>
      m.call((f) => f.loom_population_create(m.memory.options(scope, ffi.loom_neat_options, options), out)))),
    populationInfo: (_, handle) => calls.report(ffi.loom_population_info, (at, m) =>
      m.call((f) => f.loom_population_get_info(calls.at(handle, "population"), at))),
    populationReport: (_, handle, generation) => calls.report(ffi.loom_population_report, (at, m) =>
      m.call((f) => f.loom_population_report_of(calls.at(handle, "population"), BigInt(generation), at))),
    populationRun: (_, handle, inputs) => calls.array(calls.out((scope, out, m) => {
      const x = m.memory.tensor(scope, inputs);
      return m.call((f) => f.loom_population_run(calls.at(handle, "population"), x, out));
    })),
    populationTell: (_, handle, fitness) => calls.scoped((scope, m) => {
      const list = scope.keep(m.memory.allocate(fitness.length * 8));
      new Float64Array(m.memory.memory.buffer, list, fitness.length).set(fitness);
      calls.check(m.call((f) =>
        f.loom_population_tell(calls.at(handle, "population"), list, BigInt(fitness.length))));
    }),
    populationGenome: (_, handle, index) => calls.add("genome", calls.out((_scope, out, m) =>
      m.call((f) => f.loom_population_genome(calls.at(handle, "population"), BigInt(index), out)))),
    populationBest: (_, handle) => calls.add("genome", calls.out((_scope, out, m) =>
      m.call((f) => f.loom_population_best(calls.at(handle, "population"), out)))),

    genomeInfo: (_, handle) => calls.report(ffi.loom_genome_info, (at, m) =>
      m.call((f) => f.loom_genome_get_info(calls.at(handle, "genome"), at))),
    genomeRun: (_, handle, inputs) => calls.array(calls.out((scope, out, m) => {
      const x = m.memory.tensor(scope, inputs);
      return m.call((f) => f.loom_genome_run(calls.at(handle, "genome"), x, out));
    })),
    genomeReset: (_, handle) => calls.scoped((_scope, m) =>
      calls.check(m.call((f) => f.loom_genome_reset(calls.at(handle, "genome"))))),
    genomeJson: (_, handle) => calls.text((_scope, out, m) =>
      m.call((f) => f.loom_genome_json(calls.at(handle, "genome"), out))),
    genomeNetwork: (_, handle) => calls.add("network", calls.out((_scope, out, m) =>
      m.wait((f) => f.loom_genome_network(calls.at(handle, "genome"), engine(), out)))),

    networkCompareDna: (_, a, b, mode) => {
      const [first, second] = [calls.at(a, "network"), calls.at(b, "network")];
      return calls.text((_scope, out, m) =>
        m.wait((f) => f.loom_network_compare_dna(first, second, ffi.DnaMode[mode], out)));
    },
    networkDna: (_, handle, at) => calls.array(calls.out((scope, out, m) => {
      const cell = m.memory.text(scope, at);
      return m.wait((f) => f.loom_network_dna(calls.at(handle, "network"), cell, out));
    })),
    networkSplice: (_, a, b, options) => {
      const [first, second] = [calls.at(a, "network"), calls.at(b, "network")];
      return calls.add("network", calls.out((scope, out, m) =>
        m.wait((f) => f.loom_network_splice(first, second,
          m.memory.options(scope, ffi.loom_splice_options, options), out))));
    },

    networkWithAdapter: (_, handle, options) => calls.add("network", calls.out((scope, out, m) => {
      const how = m.memory.options(scope, ffi.loom_adapter_options, options);
      return m.wait((f) => f.loom_network_with_adapter(calls.at(handle, "network"), how, out));
    })),
    networkMergeAdapters: (_, handle) => calls.add("network", calls.out((_scope, out, m) =>
      m.wait((f) => f.loom_network_merge_adapters(calls.at(handle, "network"), out)))),

    meshCreate: (_, network, options) => calls.add("mesh", calls.out((scope, out, m) => {
      const how = m.memory.options(scope, ffi.loom_mesh_options, options);
      return m.wait((f) => f.loom_mesh_create(calls.at(network, "network"), how, out));
    })),
    meshInfo: (_, handle) => calls.report(ffi.loom_mesh_info, (at, m) =>
      m.call((f) => f.loom_mesh_get_info(calls.at(handle, "mesh"), at))),
    meshSetInput: (_, handle, inputs) => calls.done((scope, m) => {
      const x = m.memory.tensor(scope, inputs);
      return m.wait((f) => f.loom_mesh_set_input(calls.at(handle, "mesh"), x));
    }),
    meshTick: (_, handle, count) => calls.done((_scope, m) =>
      m.wait((f) => f.loom_mesh_tick(calls.at(handle, "mesh"), BigInt(count)))),
    meshOutput: (_, handle) => calls.array(calls.out((_scope, out, m) =>
      m.wait((f) => f.loom_mesh_output(calls.at(handle, "mesh"), out)))),
    meshReset: (_, handle) => calls.done((_scope, m) => m.wait((f) => f.loom_mesh_reset(calls.at(handle, "mesh")))),
  };
}
