package loom;

import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/** Fits the weights of a network, from one thread at a time. */
public final class Trainer extends Handle {
  private final Network network;

  Trainer(Pointer raw, Network network) {
    super(raw, LIB::loom_trainer_free);
    this.network = network;
  }

  /** How a network is trained; what is not set is the default of the library. */
  public static final class Options extends TrainerSettings<Options> {
    @Override
    Options self() {
      return this;
    }
  }

  /** How long a fit goes on, and who looks on. */
  public static final class FitOptions {
    private long epochs;
    private long earlyStop;
    private Predicate<Epoch> onEpoch;
    private OnBatch onBatch;

    /** The total; 0 means 10. */
    public FitOptions epochs(long epochs) {
      this.epochs = epochs;
      return this;
    }

    /** Epochs without a better loss; 0 disables it. */
    public FitOptions earlyStop(long epochs) {
      earlyStop = epochs;
      return this;
    }

    /** After each epoch; false ends the call as cancelled. */
    public FitOptions onEpoch(Predicate<Epoch> function) {
      onEpoch = function;
      return this;
    }

    /** After each batch; false ends the call as cancelled. */
    public FitOptions onBatch(OnBatch function) {
      onBatch = function;
      return this;
    }
  }

  /** Receives the batches done, the batches in all, and the loss. */
  public interface OnBatch {
    boolean done(long done, long steps, double loss);
  }

  /** An epoch that is done. Validation is NaN where there are no such data. */
  public static final class Epoch {
    public final long number;
    public final double trainLoss;
    public final double validationLoss;
    public final double validationAccuracy;
    public final boolean best;

    private Epoch(Sys.Epoch raw) {
      number = raw.number;
      trainLoss = raw.train_loss;
      validationLoss = raw.has_validation != 0 ? raw.validation_loss : Double.NaN;
      validationAccuracy = raw.has_validation_accuracy != 0 ? raw.validation_accuracy : Double.NaN;
      best = raw.best != 0;
    }
  }

  /** The result of a training step. */
  public static final class Step {
    public final double loss;
    /** False: gradients are being added up, or were not finite and were dropped. */
    public final boolean updated;

    private Step(Sys.StepReport raw) {
      loss = raw.loss;
      updated = raw.updated != 0;
    }
  }

  /** How well a network does; NaN: what there is nothing to compare with. */
  public static final class Evaluation {
    public final double loss;
    public final long samples;
    public final double accuracy;
    public final double meanAbsoluteError;

    private Evaluation(Sys.Evaluation raw) {
      loss = raw.loss;
      samples = raw.samples;
      accuracy = raw.has_accuracy != 0 ? raw.accuracy : Double.NaN;
      meanAbsoluteError = raw.has_mean_absolute_error != 0 ? raw.mean_absolute_error : Double.NaN;
    }
  }

  /** The network as it is now. */
  public Network network() {
    return network;
  }

  /** Trains; one entry per epoch. */
  public List<Epoch> fit(Dataset train, FitOptions options) {
    return fit(train, null, options);
  }

  /** The same with data to validate on, which may be null. */
  public List<Epoch> fit(Dataset train, Dataset validation, FitOptions options) {
    Caught caught = new Caught();
    Sys.FitOptions how = new Sys.FitOptions();
    how.epochs = options.epochs;
    how.early_stop = options.earlyStop;
    if (options.onEpoch != null)
      how.on_epoch = (user, at) -> caught.run(() -> options.onEpoch.test(new Epoch(new Sys.Epoch(at))));
    if (options.onBatch != null)
      how.on_batch =
          (user, done, steps, loss) -> caught.run(() -> options.onBatch.done(done, steps, loss));
    Pointer history;
    try {
      history = given((raw, out) -> LIB.loom_trainer_fit(raw, train.raw(), rawOf(validation), how, out));
    } catch (LoomException failed) {
      caught.check();
      throw failed;
    } finally {
      Reference.reachabilityFence(train);
      Reference.reachabilityFence(validation);
    }
    return epochs(history);
  }

  private static List<Epoch> epochs(Pointer history) {
    try {
      LongByReference count = new LongByReference();
      check(LIB.loom_history_count(history, count));
      List<Epoch> epochs = new ArrayList<>();
      for (long i = 0; i < count.getValue(); ++i) {
        Sys.Epoch raw = new Sys.Epoch();
        check(LIB.loom_history_epoch(history, i, raw));
        epochs.add(new Epoch(raw));
      }
      return epochs;
    } finally {
      LIB.loom_history_free(history);
    }
  }

  /** One update from one batch: x [batch, sample], y as for Dataset. */
  public Step step(Tensor x, Tensor y) {
    Sys.StepReport out = new Sys.StepReport();
    try {
      call(raw -> LIB.loom_trainer_step(raw, x.raw, y.raw, null, out));
    } finally {
      Reference.reachabilityFence(x);
      Reference.reachabilityFence(y);
    }
    return new Step(out);
  }

  /** Loss, and accuracy or error. */
  public Evaluation evaluate(Dataset data) {
    Sys.Evaluation out = new Sys.Evaluation();
    try {
      call(raw -> LIB.loom_trainer_evaluate(raw, data.raw(), out, null));
    } finally {
      Reference.reachabilityFence(data);
    }
    return new Evaluation(out);
  }

  /** XXH3-128 of all parameters as float32, in their order. */
  public String weightsHash() {
    return text(LIB::loom_trainer_weights_hash);
  }
}
