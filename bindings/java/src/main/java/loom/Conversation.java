package loom;

import java.util.List;

/** A conversation as chat templates read it; what is not set is the default of the library. */
public final class Conversation {
  final Sys.ChatOptions raw = new Sys.ChatOptions();
  final String messages;
  String tools;

  private Conversation(String messages) {
    this.messages = Handle.text(messages);
  }

  /**
   * Messages as JSON in the shape of OpenAI's clients: [{"role", "content" (text, null or a list of
   * parts), "tool_calls", "tool_call_id", "name", "reasoning_content"}] and any member that the
   * template reads.
   */
  public static Conversation of(String messages) {
    return new Conversation(messages);
  }

  /** Turns of text. */
  public static Conversation of(List<Model.Turn> turns) {
    StringBuilder json = new StringBuilder("[");
    for (Model.Turn turn : turns) {
      json.append(json.length() == 1 ? "{\"role\":" : ",{\"role\":");
      quote(json, turn.role);
      json.append(",\"content\":");
      quote(json, turn.content);
      json.append('}');
    }
    return new Conversation(json.append(']').toString());
  }

  private static void quote(StringBuilder json, String text) {
    json.append('"');
    for (char c : Handle.text(text).toCharArray()) {
      if (c == '"' || c == '\\') json.append('\\').append(c);
      else if (c < 0x20) json.append(String.format("\\u%04x", (int) c));
      else json.append(c);
    }
    json.append('"');
  }

  /** Functions that the model may call: a JSON array. */
  public Conversation tools(String json) {
    tools = Handle.text(json);
    raw.tools = Handle.memory(json);
    return this;
  }

  /** A JSON array that some templates quote. */
  public Conversation documents(String json) {
    raw.documents = Handle.memory(json);
    return this;
  }

  /** A JSON object of template variables: {"enable_thinking": false}. */
  public Conversation variables(String json) {
    raw.variables = Handle.memory(json);
    return this;
  }

  /** The day that a template may tell, "2024-07-26". The default is today, in UTC. */
  public Conversation date(String date) {
    raw.date = Handle.memory(date);
    return this;
  }

  /** Whether the prompt ends where the assistant's reply begins; true by default. */
  public Conversation reply(boolean begins) {
    raw.no_reply = begins ? 0 : 1;
    return this;
  }

  /** Whether the prompt ends after the text of the last message, which the model continues. */
  public Conversation continueFinalMessage(boolean continues) {
    raw.continue_final_message = continues ? 1 : 0;
    return this;
  }
}
