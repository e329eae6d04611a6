package loom;

import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.ToIntFunction;

/** An object of the library. close() frees it at once; else the collector frees it. */
public abstract class Handle implements AutoCloseable {
  static final Sys LIB = open();
  private static final Cleaner CLEANER = Cleaner.create();

  /** Frees the handle, once; it refers to no Handle, so that the collector can find those. */
  private static final class State implements Runnable {
    private Pointer raw;
    private final Consumer<Pointer> free;

    State(Pointer raw, Consumer<Pointer> free) {
      this.raw = raw;
      this.free = free;
    }

    @Override
    public synchronized void run() {
      if (raw != null) free.accept(raw);
      raw = null;
    }

    synchronized Pointer get() {
      return raw;
    }
  }

  private final State state;
  private final Cleaner.Cleanable cleanable;

  Handle(Pointer raw, Consumer<Pointer> free) {
    state = new State(raw, free);
    cleanable = CLEANER.register(this, state);
  }

  private static Sys open() {
    Sys lib = Native.load("loom", Sys.class,
        Map.of(com.sun.jna.Library.OPTION_STRING_ENCODING, StandardCharsets.UTF_8.name()));
    if (lib.loom_abi_version() != Sys.ABI_VERSION)
      throw new UnsatisfiedLinkError("the library has another interface; take both from one release");
    return lib;
  }

  /** Frees the memory. Closing twice is fine; any other use is an IllegalStateException from now on. */
  @Override
  public void close() {
    cleanable.clean();
  }

  final Pointer raw() {
    Pointer raw = state.get();
    if (raw == null) throw new IllegalStateException("this " + getClass().getSimpleName() + " is closed");
    return raw;
  }

  /** A call on this object, which is not collected while it runs. */
  final void call(ToIntFunction<Pointer> function) {
    try {
      check(function.applyAsInt(raw()));
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** A call that writes an address to its last argument. */
  final Pointer given(BiFunction<Pointer, PointerByReference, Integer> function) {
    PointerByReference out = new PointerByReference();
    call(raw -> function.apply(raw, out));
    return out.getValue();
  }

  /** A call that hands a text over. */
  final String text(BiFunction<Pointer, PointerByReference, Integer> function) {
    Pointer out = given(function);
    try {
      return out.getString(0, "UTF-8");
    } finally {
      LIB.loom_free(out);
    }
  }

  /** A call that hands a list of ids over. */
  interface Ids {
    int call(Pointer raw, PointerByReference ids, LongByReference count);
  }

  final int[] ids(Ids function) {
    LongByReference count = new LongByReference();
    Pointer out = given((raw, ids) -> function.call(raw, ids, count));
    try {
      return count.getValue() == 0 ? new int[0] : out.getIntArray(0, (int) count.getValue());
    } finally {
      LIB.loom_free(out);
    }
  }

  static Pointer made(Function<PointerByReference, Integer> function) {
    PointerByReference out = new PointerByReference();
    check(function.apply(out));
    return out.getValue();
  }

  static void check(int status) {
    if (status == 0) return;
    Types.Code code = Types.Code.of(status);
    throw new LoomException(code == null ? Types.Code.INTERNAL : code, LIB.loom_last_error());
  }

  static Pointer rawOf(Handle handle) {
    return handle == null ? null : handle.raw();
  }

  /** A text for C, which cannot hold NUL. */
  static String text(String from) {
    if (from == null) throw LoomException.invalid("a text is null");
    if (from.indexOf('\0') >= 0) throw LoomException.invalid("a text for Loom cannot hold the character NUL");
    return from;
  }

  static Memory memory(String from) {
    byte[] bytes = text(from).getBytes(StandardCharsets.UTF_8);
    Memory memory = new Memory(bytes.length + 1L);
    memory.write(0, bytes, 0, bytes.length);
    memory.setByte(bytes.length, (byte) 0);
    return memory;
  }

  static Memory memory(int[] from) {
    Memory memory = new Memory(Math.max(4L, 4L * from.length));
    memory.write(0, from, 0, from.length);
    return memory;
  }

  static String field(byte[] from) {
    int size = 0;
    while (size < from.length && from[size] != 0) ++size;
    return new String(from, 0, size, StandardCharsets.UTF_8);
  }

  /** The exception of a callback of one call; the call throws it again. */
  static final class Caught {
    private Throwable thrown;

    /** The value that a callback returns to C; 0 means continue. */
    int run(java.util.function.BooleanSupplier callback) {
      try {
        return callback.getAsBoolean() ? 0 : 1;
      } catch (Throwable any) {
        thrown = any;
        return 1;
      }
    }

    void check() {
      if (thrown != null) Caught.<RuntimeException>rethrow(thrown);
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> void rethrow(Throwable any) throws T {
      throw (T) any;
    }
  }
}
