package loom;

import com.sun.jna.Pointer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/** Options by name: each value as a text. */
final class Named {
  private Named() {}

  /** Options of that kind, which the caller frees. */
  static Pointer options(String kind, Map<String, String> texts) {
    Pointer made = Handle.made(out -> Handle.LIB.loom_options_new(Handle.text(kind), out));
    try {
      for (Map.Entry<String, String> option : texts.entrySet())
        Handle.check(
            Handle.LIB.loom_options_set(
                made, Handle.text(option.getKey()), Handle.text(option.getValue())));
      return made;
    } catch (RuntimeException failed) {
      Handle.LIB.loom_options_free(made);
      throw failed;
    }
  }

  static String of(long[] values) {
    return LongStream.of(values).mapToObj(Long::toString).collect(Collectors.joining(","));
  }

  static String of(float[] values) {
    List<String> items = new ArrayList<>();
    for (float value : values) items.add(Float.toString(value));
    return String.join(",", items);
  }

  static String of(String[] values) {
    List<String> items = new ArrayList<>();
    for (String value : values)
      items.add('"' + value.replace("\\", "\\\\").replace("\"", "\\\"") + '"');
    return "[" + String.join(", ", items) + "]";
  }

  static String of(Map<String, Double> values) {
    return of(
        values.entrySet().stream()
            .map(pair -> pair.getKey() + "=" + pair.getValue())
            .toArray(String[]::new));
  }
}
