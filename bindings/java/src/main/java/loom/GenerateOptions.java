package loom;

import com.sun.jna.Memory;

/** How the next tokens are chosen; what is not set is the default of the library. */
public final class GenerateOptions {
  final Sys.GenerateOptions raw = new Sys.GenerateOptions();
  private Memory[] texts = {};
  private Memory list;

  public GenerateOptions maxTokens(long tokens) {
    raw.max_tokens = tokens;
    return this;
  }

  /** Logits are divided by it; 0 takes the likeliest token. */
  public GenerateOptions temperature(float temperature) {
    raw.temperature = temperature;
    return this;
  }

  /** Keep the k likeliest tokens; 0 keeps all. */
  public GenerateOptions topK(long k) {
    raw.top_k = k;
    return this;
  }

  /** Keep the fewest tokens that hold this share of the probability. */
  public GenerateOptions topP(float share) {
    raw.top_p = share;
    return this;
  }

  /** Keep those with at least this share of the best one's probability. */
  public GenerateOptions minP(float share) {
    raw.min_p = share;
    return this;
  }

  /** Equal seeds give equal texts, on any machine. */
  public GenerateOptions seed(long seed) {
    raw.seed = seed;
    return this;
  }

  /** Generation ends where one of these appears. */
  public GenerateOptions stop(String... stops) {
    texts = new Memory[stops.length];
    list = new Memory(8L * Math.max(1, stops.length));
    for (int i = 0; i < stops.length; ++i) {
      texts[i] = Handle.memory(stops[i]);
      list.setPointer(8L * i, texts[i]);
    }
    raw.stop = list;
    raw.stop_count = stops.length;
    return this;
  }

  /** Fills the log-probabilities. */
  public GenerateOptions logprobs(boolean wanted) {
    raw.logprobs = wanted ? 1 : 0;
    return this;
  }

  /** Whether marks of chats become text too, for Model.readReply(). */
  public GenerateOptions specialText(boolean wanted) {
    raw.special_text = wanted ? 1 : 0;
    return this;
  }
}
