/** How far answers are off, and how fast a network that learns while it runs adapts to a new task. */

import { Closable } from "./link.js";

/** What DeviationMetrics.json() tells. */
export interface DeviationReport {
  readonly samples: number;
  readonly invalid: number;
  readonly failures: number;
  readonly score: number;
  readonly average_deviation: number;
  readonly accuracy: number;
  readonly buckets: Readonly<Record<string, unknown>>;
  readonly results: readonly Readonly<Record<string, number | null>>[];
}

function places(values: ArrayLike<number | bigint>): number[] {
  return Array.from(values, Number);
}

/** Deviation in percent of answers a from truths e: 100 |a - e| / |e| (docs/evaluation.md). */
export class DeviationMetrics extends Closable {
  add(answers: ArrayLike<number>, truths: ArrayLike<number>): Promise<void> {
    return this.link.ask("deviationAdd", [this.handle, Float64Array.from(answers), Float64Array.from(truths)]);
  }
  /** Classes: 0 if they are equal, else 100 percent. */
  addClass(called: ArrayLike<number>, classes: ArrayLike<number>): Promise<void> {
    return this.link.ask("deviationAddClasses", [this.handle, Array.from(called), Array.from(classes)]);
  }
  /** A text for Loom.deviationMetrics(). */
  json(): Promise<string> {
    return this.link.ask("deviationJson", [this.handle]);
  }
  /** The scores, the sizes of the buckets and all samples. */
  async summary(): Promise<DeviationReport> {
    return JSON.parse(await this.json()) as DeviationReport;
  }
  /** answer, truth and deviation of each, in the order they were added. */
  async samples(): Promise<DeviationReport["results"]> {
    return (await this.summary()).results;
  }
  /** Places of the samples by their deviation: "0-10%", ..., "100%+". */
  async buckets(): Promise<Record<string, number[]>> {
    const names = Object.keys((await this.summary()).buckets);
    return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await this.inBucket(name)] as const)));
  }
  /** Places of the samples of a bucket. */
  async inBucket(name: string): Promise<number[]> {
    return places((await this.link.ask("deviationBucket", [this.handle, name])).data);
  }
  /** Places of the samples that are off most, the earlier of equals first. */
  async worst(count: number): Promise<number[]> {
    return places((await this.link.ask("deviationWorst", [this.handle, count])).data);
  }
}

/** What AdaptationTracker.report() tells. */
export interface AdaptationReport {
  readonly outputs: number;
  readonly average: number;
  readonly variance: number;
  readonly least: number;
  readonly windows: readonly Readonly<Record<string, number>>[];
  readonly changes: readonly Readonly<Record<string, number>>[];
}

/** Accuracy by windows of time while tasks change. */
export class AdaptationTracker extends Closable {
  /** From `at` seconds on another task is in force. Before start(), in order. */
  schedule(at: number, task: number): Promise<void> {
    return this.link.ask("adaptationSchedule", [this.handle, at, task]);
  }
  /** The clock begins. */
  start(task: number): Promise<void> {
    return this.link.ask("adaptationStart", [this.handle, task]);
  }
  /** Counts an output in the window of now. Resolves to the task in force for it. */
  async record(right: boolean): Promise<number> {
    return (await this.link.ask("adaptationRecord", [this.handle, right ? 1 : 0])).task;
  }
  /** The task in force now. */
  async task(): Promise<number> {
    return (await this.link.ask("adaptationRecord", [this.handle, -1])).task;
  }
  /** Whether the duration has passed. */
  async over(): Promise<boolean> {
    return (await this.link.ask("adaptationRecord", [this.handle, -1])).over;
  }
  async report(): Promise<AdaptationReport> {
    return JSON.parse(await this.link.ask("adaptationJson", [this.handle])) as AdaptationReport;
  }
}
