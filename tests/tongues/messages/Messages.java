import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import loom.Conversation;
import loom.LoomException;
import loom.Model;

/** As messages.c. */
public final class Messages {
  public static void main(String[] words) throws Exception {
    BufferedReader input =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream output = new PrintStream(System.out, true, "UTF-8");
    String path = "", line;
    Model model = null;
    while ((line = input.readLine()) != null) {
      String[] fields = line.split("\t", -1);
      if (!fields[0].equals(path)) {
        if (model != null) model.close();
        path = fields[0];
        model = Model.load(path);
      }
      Conversation talk = Conversation.of(fields[2]).reply(!fields[1].contains("n"));
      talk.continueFinalMessage(fields[1].contains("c"));
      if (!fields[3].isEmpty()) talk.tools(fields[3]);
      if (!fields[4].isEmpty()) talk.variables(fields[4]);
      try {
        StringBuilder hex = new StringBuilder("ok ");
        for (byte b : model.renderChat(talk).getBytes(StandardCharsets.UTF_8)) {
          hex.append(String.format("%02x", b));
        }
        output.println(hex);
      } catch (LoomException error) {
        output.println("error " + error.getMessage());
      }
    }
    if (model != null) model.close();
  }
}
