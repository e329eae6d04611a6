package loom;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import java.util.List;
import java.util.function.Predicate;

/** A language model with its weights, tokenizer and chat template. It never changes. */
public final class Model extends Handle {
  private Model(Pointer raw) {
    super(raw, LIB::loom_model_free);
  }

  /** An .entity file, a GGUF file, or a Hugging Face folder. */
  public static Model load(String path) {
    return new Model(made(out -> LIB.loom_model_load(null, text(path), null, out)));
  }

  /** A token that was drawn. */
  public static final class Token {
    public final int id;
    /** The text that it adds, in complete characters. */
    public final String text;
    /** With GenerateOptions.logprobs(). */
    public final float logprob;

    private Token(Sys.Token raw) {
      id = raw.id;
      text = raw.text.getString(0, "UTF-8");
      logprob = raw.logprob;
    }
  }

  /** The result of a generation. */
  public static final class Generation {
    public final String text;
    public final int[] tokenIds;
    public final float[] logprobs;
    /** Null for a reason of a newer library. */
    public final Types.Stop stop;

    /** Takes a generation of the library, and frees it. */
    private Generation(Pointer raw) {
      try {
        PointerByReference at = new PointerByReference();
        LongByReference count = new LongByReference();
        check(LIB.loom_generation_text(raw, at, count));
        text = at.getValue().getString(0, "UTF-8");
        check(LIB.loom_generation_ids(raw, at, count));
        int ids = (int) count.getValue();
        tokenIds = ids == 0 ? new int[0] : at.getValue().getIntArray(0, ids);
        check(LIB.loom_generation_logprobs(raw, at, count));
        int scores = (int) count.getValue();
        logprobs = scores == 0 ? new float[0] : at.getValue().getFloatArray(0, scores);
        Sys.GenerationInfo info = new Sys.GenerationInfo();
        check(LIB.loom_generation_get_info(raw, info));
        stop = Types.Stop.of(info.stop);
      } finally {
        LIB.loom_generation_free(raw);
      }
    }
  }

  /** A message of text: "system", "user" or "assistant", and its text. */
  public static final class Turn {
    final String role;
    final String content;

    public Turn(String role, String content) {
      this.role = role;
      this.content = content;
    }
  }

  /** Logits per position. */
  public long vocab() {
    Sys.ModelInfo info = new Sys.ModelInfo();
    call(raw -> LIB.loom_model_get_info(raw, info));
    return info.vocab;
  }

  /** Ids, with the tokens that the tokenizer puts around a text. */
  public int[] tokenize(String words) {
    return ids((raw, ids, count) -> LIB.loom_model_tokenize(raw, text(words), 1, ids, count));
  }

  /** Text of ids, without special tokens. */
  public String detokenize(int[] ids) {
    Memory list = memory(ids);
    return text((raw, out) -> LIB.loom_model_detokenize(raw, list, ids.length, 1, out));
  }

  /** The conversation as the model's chat template writes it. */
  public String renderChat(Conversation conversation) {
    return text((raw, out) -> LIB.loom_model_render_messages(
        raw, conversation.messages, conversation.raw, out));
  }

  /** The same for turns of text. */
  public String renderChat(List<Turn> turns) {
    return renderChat(Conversation.of(turns));
  }

  /**
   * A reply to the prompt of renderChat() as a message of JSON: {"role", "content",
   * "reasoning_content", "tool_calls"}. tools: those of the conversation; null: none.
   */
  public String readReply(String reply, String prompt, String tools) {
    return text((raw, out) ->
        LIB.loom_model_read_reply(raw, text(reply), text(prompt), tools, out));
  }

  /** A conversation. context: positions; 0 means the model's, at most 2048. */
  public Session session(long context) {
    Sys.ModelSessionOptions how = new Sys.ModelSessionOptions();
    how.context = context;
    return new Session(given((raw, out) -> LIB.loom_model_start(raw, how, out)));
  }

  /** New text after a prompt, in a session of its own. */
  public Generation generate(String prompt, GenerateOptions options) {
    return stream(prompt, options, null);
  }

  /** The same, token by token; false stops. */
  public Generation stream(String prompt, GenerateOptions options, Predicate<Token> onToken) {
    try (Session session = session(0)) {
      return session.stream(prompt, options, onToken);
    }
  }

  /**
   * The next turn of a conversation, written with the model's own template. With tools the text is
   * one for readReply().
   */
  public Generation chat(
      Conversation conversation, GenerateOptions options, Predicate<Token> onToken) {
    String words = text(renderChat(conversation));
    int[] prompt = ids((raw, ids, count) -> LIB.loom_model_tokenize(raw, words, 0, ids, count));
    int special = options.raw.special_text;
    if (conversation.tools != null) options.raw.special_text = 1;
    try (Session session = session(0)) {
      return session.stream(prompt, options, onToken);
    } finally {
      options.raw.special_text = special;
    }
  }

  /** The same for turns of text. */
  public Generation chat(List<Turn> turns, GenerateOptions options, Predicate<Token> onToken) {
    return chat(Conversation.of(turns), options, onToken);
  }

  /** One conversation, for one thread at a time. */
  public static final class Session extends Handle {
    private Session(Pointer raw) {
      super(raw, LIB::loom_model_session_free);
    }

    /** Reads tokens. */
    public void feed(int[] ids) {
      Memory list = memory(ids);
      call(raw -> LIB.loom_model_session_feed(raw, list, ids.length));
    }

    /** Logits [vocab] after the last token fed; none before the first. */
    public float[] logits() {
      LongByReference count = new LongByReference();
      Pointer at = given((raw, out) -> LIB.loom_model_session_logits(raw, out, count));
      return count.getValue() == 0 ? new float[0] : at.getFloatArray(0, (int) count.getValue());
    }

    /** Forgets everything from `position` on. */
    public void rewind(long position) {
      call(raw -> LIB.loom_model_session_rewind(raw, position));
    }

    /** Reads the prompt, then draws tokens; onToken may be null, and stops by giving false. */
    public Generation stream(String prompt, GenerateOptions options, Predicate<Token> onToken) {
      String words = text(prompt);
      return run(onToken, options,
          (raw, out) -> LIB.loom_model_session_generate(raw, words, options.raw, out));
    }

    /** The same for a prompt of tokens. */
    public Generation stream(int[] prompt, GenerateOptions options, Predicate<Token> onToken) {
      Memory list = memory(prompt);
      return run(onToken, options, (raw, out) ->
          LIB.loom_model_session_generate_ids(raw, list, prompt.length, options.raw, out));
    }

    private Generation run(Predicate<Token> onToken, GenerateOptions options,
        java.util.function.BiFunction<Pointer, PointerByReference, Integer> function) {
      Caught caught = new Caught();
      options.raw.on_token = onToken == null
          ? null
          : (user, at) -> caught.run(() -> onToken.test(new Token(new Sys.Token(at))));
      Generation made = new Generation(given(function));
      caught.check();
      return made;
    }
  }
}
