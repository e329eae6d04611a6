package loom;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;

/** Numbers with a shape, copied into memory that the library can read; it goes with this object. */
public final class Tensor {
  final Sys.Tensor raw = new Sys.Tensor();
  private final Memory data;
  private final Memory shape;

  private Tensor(Types.DType dtype, long count, int size, long[] extents) {
    long expected = 1;
    for (long extent : extents) {
      if (extent < 0 || (extent > 0 && expected > Long.MAX_VALUE / extent))
        throw LoomException.invalid("the shape " + java.util.Arrays.toString(extents) + " is invalid");
      expected *= extent;
    }
    if (expected != count)
      throw LoomException.invalid(
          count + " numbers do not fill the shape " + java.util.Arrays.toString(extents));
    data = new Memory(Math.max(1, count * size));
    shape = new Memory(Math.max(8, 8L * extents.length));
    shape.write(0, extents, 0, extents.length);
    raw.dtype = dtype.number;
    raw.rank = extents.length;
    raw.shape = shape;
    raw.data = data;
  }

  public static Tensor of(float[] values, long... shape) {
    Tensor made = new Tensor(Types.DType.FLOAT32, values.length, 4, shape);
    made.data.write(0, values, 0, values.length);
    return made;
  }

  public static Tensor of(double[] values, long... shape) {
    Tensor made = new Tensor(Types.DType.FLOAT64, values.length, 8, shape);
    made.data.write(0, values, 0, values.length);
    return made;
  }

  public static Tensor of(int[] values, long... shape) {
    Tensor made = new Tensor(Types.DType.INT32, values.length, 4, shape);
    made.data.write(0, values, 0, values.length);
    return made;
  }

  public static Tensor of(long[] values, long... shape) {
    Tensor made = new Tensor(Types.DType.INT64, values.length, 8, shape);
    made.data.write(0, values, 0, values.length);
    return made;
  }

  public static Tensor of(byte[] values, long... shape) {
    Tensor made = new Tensor(Types.DType.INT8, values.length, 1, shape);
    made.data.write(0, values, 0, values.length);
    return made;
  }

  /** The extents. */
  public long[] shape() {
    return raw.rank == 0 ? new long[0] : shape.getLongArray(0, raw.rank);
  }

  /** The numbers of a float32 tensor: what a session wrote, where it was given as a place. */
  public float[] floats() {
    if (raw.dtype != Types.DType.FLOAT32.number) throw LoomException.invalid("the tensor is not float32");
    long count = 1;
    for (long extent : shape()) count *= extent;
    return data.getFloatArray(0, Math.toIntExact(count));
  }

  /** float32 outputs of the library, as an array of Java with its shape. */
  public static final class Outputs {
    public final long[] shape;
    public final float[] values;

    /** Takes an array of the library, and frees it. */
    Outputs(Pointer array) {
      try {
        Sys.Tensor view = new Sys.Tensor();
        Handle.check(Handle.LIB.loom_array_view(array, view));
        if (view.dtype != Types.DType.FLOAT32.number || view.strides != null)
          throw LoomException.invalid("the array is not float32 without gaps");
        shape = view.rank == 0 ? new long[0] : view.shape.getLongArray(0, view.rank);
        long count = 1;
        for (long extent : shape) count *= extent;
        values = view.data == null ? new float[0] : view.data.getFloatArray(0, Math.toIntExact(count));
      } finally {
        Handle.LIB.loom_array_free(array);
      }
    }
  }
}
