package loom;

import java.lang.ref.Reference;

/** Samples in memory, which never change. */
public final class Dataset extends Handle {
  /** x: [n, sample]. y: class labels as integers, [n], or targets as floats, [n, outputs]; or null. */
  public Dataset(Tensor x, Tensor y) {
    super(made(out -> LIB.loom_dataset_from_arrays(x.raw, y == null ? null : y.raw, out)),
        LIB::loom_dataset_free);
    Reference.reachabilityFence(x);
    Reference.reachabilityFence(y);
  }

  /** .csv, .npz, .npy, .safetensors, .idx, read as `network` takes its inputs. */
  public Dataset(String path, Network network) {
    super(network.given((raw, out) -> LIB.loom_dataset_from_file(text(path), raw, null, out)),
        LIB::loom_dataset_free);
  }

  /** How many there are. */
  public long samples() {
    Sys.DatasetInfo info = new Sys.DatasetInfo();
    call(raw -> LIB.loom_dataset_get_info(raw, info));
    return info.samples;
  }
}
