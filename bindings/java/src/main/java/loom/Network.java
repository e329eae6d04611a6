package loom;

import com.sun.jna.Pointer;
import java.lang.ref.Reference;

/** Layers with their weights. Sessions keep the weights that it had when they were made. */
public final class Network extends Handle {
  private Network(Pointer raw) {
    super(raw, LIB::loom_network_free);
  }

  /** A description, as json() gives it. */
  public static Network fromJson(String json) {
    return new Network(made(out -> LIB.loom_network_from_json(null, text(json), null, out)));
  }

  /** The same; engine null: the shared one; seed: of starting weights. */
  public static Network fromJson(Engine engine, String json, long seed) {
    Sys.LoadOptions how = new Sys.LoadOptions();
    how.has_seed = 1;
    how.seed = seed;
    try {
      return new Network(made(out -> LIB.loom_network_from_json(rawOf(engine), text(json), how, out)));
    } finally {
      Reference.reachabilityFence(engine);
    }
  }

  /** .entity, .json, .onnx, .npz, .safetensors. */
  public static Network load(String path) {
    return new Network(made(out -> LIB.loom_network_load(null, text(path), null, out)));
  }

  /** The format is that of the ending. */
  public void save(String path) {
    call(raw -> LIB.loom_network_save(raw, text(path), null));
  }

  /** The description, without weights. */
  public String json() {
    return text(LIB::loom_network_json);
  }

  /** A table for people. */
  public String summary() {
    return text(LIB::loom_network_summary);
  }

  private Sys.NetworkInfo info() {
    Sys.NetworkInfo info = new Sys.NetworkInfo();
    call(raw -> LIB.loom_network_get_info(raw, info));
    return info;
  }

  /** The shape of one input. */
  public long[] input() {
    Sys.NetworkInfo info = info();
    return java.util.Arrays.copyOf(info.input, info.input_rank);
  }

  /** The shape of one output. */
  public long[] output() {
    Sys.NetworkInfo info = info();
    return java.util.Arrays.copyOf(info.output, info.output_rank);
  }

  /** Numbers; shared ones once. */
  public long parameters() {
    return info().parameters;
  }

  /** Inputs [n, ...] to float32 outputs [n, ...]. */
  public Tensor.Outputs predict(Tensor inputs) {
    try {
      return new Tensor.Outputs(given((raw, out) -> LIB.loom_network_predict(raw, inputs.raw, out)));
    } finally {
      Reference.reachabilityFence(inputs);
    }
  }

  /** Values of a parameter as float32. */
  public Tensor.Outputs parameter(String name) {
    return new Tensor.Outputs(given((raw, out) -> LIB.loom_network_parameter(raw, text(name), out)));
  }

  /** One user of the network. maxBatch: samples computed at a time; 0 means 1. */
  public Session session(long maxBatch, boolean stateful) {
    Sys.SessionOptions how = new Sys.SessionOptions();
    how.max_batch = maxBatch;
    how.stateful = stateful ? 1 : 0;
    return new Session(given((raw, out) -> LIB.loom_network_session(raw, how, out)));
  }

  /** The trainer changes the network, whose weights are up to date after every call. */
  public Trainer trainer(Trainer.Options options) {
    Pointer named = Named.options("trainer", options.texts);
    try {
      return new Trainer(
          given((raw, out) -> LIB.loom_trainer_create_with(raw, named, null, out)), this);
    } finally {
      LIB.loom_options_free(named);
    }
  }

  /** Runs a network, for one thread at a time. */
  public static final class Session extends Handle {
    private Session(Pointer raw) {
      super(raw, LIB::loom_session_free);
    }

    /** Inputs [n, ...] to float32 outputs [n, ...]. */
    public Tensor.Outputs run(Tensor inputs) {
      try {
        return new Tensor.Outputs(given((raw, out) -> LIB.loom_session_run(raw, inputs.raw, out)));
      } finally {
        Reference.reachabilityFence(inputs);
      }
    }

    /** The same into a float32 tensor of the shape that the outputs have. */
    public void runInto(Tensor inputs, Tensor outputs) {
      try {
        call(raw -> LIB.loom_session_run_into(raw, inputs.raw, outputs.raw));
      } finally {
        Reference.reachabilityFence(inputs);
        Reference.reachabilityFence(outputs);
      }
    }

    /** Stateful: begins new streams. */
    public void reset() {
      call(LIB::loom_session_reset);
    }
  }
}
