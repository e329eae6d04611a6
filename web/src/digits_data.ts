/** The handwritten digits that come with the site: images of 28 x 28, and what they show. */

import { tensor, type Dataset, type Loom, type Network } from "@loom-engine/loom";

import { ownFile } from "./engine";

async function unpacked(path: string): Promise<Uint8Array> {
  const response = await fetch(ownFile(path));
  if (!response.ok || response.body === null) throw new Error(`${path} cannot be had (${response.status})`);
  const stream = response.body.pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** part: "" trains, "-test" tests. */
export async function digits(loom: Loom, network: Network, part: "" | "-test"): Promise<Dataset> {
  const images = await loom.loadDataset(ownFile(`data/digits${part}.gz`), { network, inputsOnly: true });
  const labels = (await unpacked(`data/digit-labels${part}.gz`)).subarray(8);
  try {
    return await loom.dataset(await images.x(), tensor(Int32Array.from(labels)));
  } finally {
    images.close();
  }
}
