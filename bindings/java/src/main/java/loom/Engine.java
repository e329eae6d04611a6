package loom;

/** Threads, instruction set, device. Models and networks keep their engine alive. */
public final class Engine extends Handle {
  /** How an engine computes. The default: all cores, the best instruction set, the CPU. */
  public static final class Options {
    private final Sys.EngineOptions raw = new Sys.EngineOptions();
    private com.sun.jna.Memory isa;

    /** Lanes of work, the caller's included; 0 means all cores. */
    public Options threads(int threads) {
      raw.threads = threads;
      return this;
    }

    /** "scalar", "avx2", ... */
    public Options isa(String name) {
      isa = memory(name);
      raw.isa = isa;
      return this;
    }

    public Options device(Types.Device device) {
      raw.device = device.number;
      return this;
    }

    public Options activations(Types.Activations activations) {
      raw.activations = activations.number;
      return this;
    }
  }

  /** Errors: an instruction set or a GPU that is not here. */
  public Engine(Options options) {
    super(made(out -> LIB.loom_engine_create(options.raw, out)), LIB::loom_engine_free);
  }

  /** All cores, the CPU. */
  public Engine() {
    this(new Options());
  }

  private Sys.EngineInfo info() {
    Sys.EngineInfo info = new Sys.EngineInfo();
    call(raw -> LIB.loom_engine_get_info(raw, info));
    return info;
  }

  /** As they run, after the limit of cores. */
  public int threads() {
    return info().threads;
  }

  /** The instruction set in use. */
  public String isa() {
    return field(info().isa);
  }

  /** The version of the library that runs. */
  public static String version() {
    return LIB.loom_version();
  }
}
