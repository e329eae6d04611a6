import java.util.List;
import loom.*;

/** Wrong use is an exception by code, and what a callback throws comes out of the call. */
public final class Misuse {
  private static final String JSON = "{\"loom\": 1, \"grid\": [1,1,1,1], \"input\": [4], \"cells\": ["
      + "{\"at\":[0,0,0,0],\"type\":\"Dense\",\"in\":4,\"out\":3}]}";
  private static int passed;
  private static int failed;

  private static void check(boolean holds, String what) {
    if (holds) {
      ++passed;
    } else {
      ++failed;
      System.out.println("not so: " + what);
    }
  }

  private static void fails(Runnable call, Types.Code code, String words) {
    try {
      call.run();
      check(false, "it did not fail: " + words);
    } catch (LoomException found) {
      check(found.code == code && found.getMessage().contains(words), found.code + " " + found);
    }
  }

  private static void closed(Runnable call) {
    try {
      call.run();
      check(false, "a closed object was used");
    } catch (IllegalStateException found) {
      check(found.getMessage().contains("is closed"), found.toString());
    }
  }

  private static void closedObjectsAndNulls() {
    Tensor x = Tensor.of(new float[4], 1, 4);
    Network net = Network.fromJson(JSON);
    Network.Session session = net.session(0, false);
    session.close();
    session.close();
    closed(() -> session.run(x));
    net.close();
    closed(() -> net.predict(x));
    closed(net::summary);
    fails(() -> Network.fromJson(null), Types.Code.INVALID_ARGUMENT, "null");
    fails(() -> Network.load("a\0b"), Types.Code.INVALID_ARGUMENT, "NUL");
  }

  /** The hash of a new network after two epochs with these options. */
  private static String hashWith(Trainer.Options options) {
    float[] values = new float[32];
    for (int i = 0; i < 32; ++i) values[i] = (i % 7) / 7f;
    Tensor x = Tensor.of(values, 8, 4);
    Tensor y = Tensor.of(new int[] {0, 1, 2, 0, 1, 2, 0, 1}, 8);
    try (Network net = Network.fromJson(JSON);
        Dataset data = new Dataset(x, y);
        Trainer trainer = net.trainer(options)) {
      trainer.fit(data, new Trainer.FitOptions().epochs(2));
      return trainer.weightsHash();
    }
  }

  private static void optionsByName() {
    String plain = hashWith(new Trainer.Options());
    List<Trainer.Options> others =
        List.of(
            new Trainer.Options().freeze("*/bias"),
            new Trainer.Options().rateFor(java.util.Map.of("*/bias", 0.5)),
            new Trainer.Options().classWeights(1, 2, 3.5f),
            new Trainer.Options().beta1(0));
    for (Trainer.Options options : others)
      check(!hashWith(options).equals(plain), "options change something");
    fails(() -> hashWith(new Trainer.Options().freeze("a \"b\" \\")),
        Types.Code.INVALID_ARGUMENT, "a \"b\" \\");
    fails(() -> hashWith(new Trainer.Options().labelSmoothing(2)),
        Types.Code.INVALID_ARGUMENT, "label_smoothing is 2.0, must be 0 to 1");
  }

  private static void shapesAndFiles() {
    try (Network net = Network.fromJson(JSON)) {
      fails(() -> net.predict(Tensor.of(new float[5], 1, 5)), Types.Code.INVALID_ARGUMENT, "[1, 5]");
      fails(() -> Tensor.of(new float[5], 2, 3), Types.Code.INVALID_ARGUMENT, "do not fill");
      fails(() -> Tensor.of(new float[5], -1, -5), Types.Code.INVALID_ARGUMENT, "is invalid");
      fails(() -> net.parameter("nothing"), Types.Code.NOT_FOUND, "nothing");
      try (Network.Session session = net.session(0, false)) {
        Tensor x = Tensor.of(new float[] {1, 2, 3, 4}, 1, 4);
        Tensor place = Tensor.of(new float[3], 1, 3);
        session.runInto(x, place);
        check(java.util.Arrays.equals(place.floats(), net.predict(x).values), "runInto is run");
        fails(() -> session.runInto(x, Tensor.of(new float[2], 1, 2)),
            Types.Code.INVALID_ARGUMENT, "[1, 2]");
      }
    }
    fails(() -> Network.load("/nowhere/net.entity"), Types.Code.NOT_FOUND, "/nowhere");
    fails(() -> Network.fromJson("{\"loom\": 1"), Types.Code.BAD_FILE, "");
    fails(() -> new Engine(new Engine.Options().isa("abacus")), Types.Code.UNSUPPORTED, "abacus");
  }

  private static void stepsAndFiles(String folder) {
    float[] values = new float[32];
    for (int i = 0; i < 32; ++i) values[i] = (i % 7) / 7f;
    Tensor x = Tensor.of(values, 8, 4);
    Tensor y = Tensor.of(new int[] {0, 1, 2, 0, 1, 2, 0, 1}, 8);
    try (Engine engine = new Engine(new Engine.Options().threads(1));
        Network net = Network.fromJson(engine, JSON, 1);
        Trainer trainer = net.trainer(new Trainer.Options().optimizer(Types.Optimizer.SGD))) {
      check(engine.threads() == 1, "threads");
      Trainer.Step step = trainer.step(x, y);
      check(step.updated && step.loss > 0, "a step");
      String before = trainer.weightsHash();
      trainer.step(x, y);
      check(!before.equals(trainer.weightsHash()), "a step changes the weights");
      net.save(folder + "/java.entity");
      try (Network loaded = Network.load(folder + "/java.entity")) {
        check(java.util.Arrays.equals(loaded.predict(x).values, net.predict(x).values), "a loaded network");
        check(loaded.output()[0] == 3 && loaded.parameters() == 15, "what it is");
      }
    }
  }

  private static void callbacks() {
    Tensor x = Tensor.of(new float[16], 4, 4);
    try (Network net = Network.fromJson(JSON);
        Dataset data = new Dataset(x, Tensor.of(new int[] {0, 1, 2, 0}, 4));
        Trainer trainer = net.trainer(new Trainer.Options())) {
      int[] seen = {0};
      fails(() -> trainer.fit(data, new Trainer.FitOptions().epochs(5).onEpoch(e -> ++seen[0] < 2)),
          Types.Code.CANCELLED, "");
      check(seen[0] == 2, "epochs seen");
      RuntimeException mine = new RuntimeException("mine");
      try {
        trainer.fit(data, new Trainer.FitOptions().onBatch((done, steps, loss) -> {
          throw mine;
        }));
        check(false, "what a callback throws was lost");
      } catch (RuntimeException found) {
        check(found == mine, "another exception: " + found);
      }
      check(trainer.fit(data, new Trainer.FitOptions().epochs(2)).size() == 2, "it goes on");
      check(trainer.evaluate(data).samples == 4 && data.samples() == 4, "samples");
    }
  }

  private static void models(String path) {
    try (Model model = Model.load(path)) {
      GenerateOptions options = new GenerateOptions().maxTokens(8).stop("never to be seen").logprobs(true);
      Model.Generation whole = model.generate("One day", options);
      check(whole.logprobs.length == whole.tokenIds.length, "logprobs");
      RuntimeException mine = new RuntimeException("mine");
      try {
        model.stream("One day", options, token -> {
          throw mine;
        });
        check(false, "what a callback throws was lost");
      } catch (RuntimeException found) {
        check(found == mine, "another exception: " + found);
      }
      StringBuilder seen = new StringBuilder();
      Model.Generation stopped =
          model.stream("One day", options, token -> seen.append(token.text).length() < 8);
      check(stopped.stop == Types.Stop.CANCELLED && whole.text.startsWith(seen.toString()), "stopped");
      int[] ids = model.tokenize("One day");
      check(model.detokenize(ids).trim().equals("One day"), "tokens");
      try (Model.Session session = model.session(64)) {
        session.feed(ids);
        check(session.logits().length == model.vocab(), "logits");
        fails(() -> session.feed(new int[] {1 << 30}), Types.Code.OUT_OF_RANGE, "");
        fails(() -> session.rewind(99), Types.Code.OUT_OF_RANGE, "99");
      }
      List<Model.Turn> turns = List.of(new Model.Turn("user", "Hello"));
      check(model.renderChat(turns).contains("Hello"), "a chat");
      check(model.chat(turns, options, null).tokenIds.length <= 8, "a reply");
      fails(() -> model.renderChat(List.of()), Types.Code.INVALID_ARGUMENT, "at least one message");
      String parts = "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": 5}]}]";
      fails(() -> model.renderChat(Conversation.of(parts)), Types.Code.INVALID_ARGUMENT,
          "messages[0].content[0].text must be a text; got 5");
      Model.Turn once = new Model.Turn("assistant", "\"Once\"");
      String text = model.renderChat(
          Conversation.of(List.of(turns.get(0), once)).continueFinalMessage(true));
      check(text.endsWith("\"Once\""), "a continued message");
      check(model.readReply("Hi", text, null).equals("{\"role\":\"assistant\",\"content\":\"Hi\"}"),
          "a reply");
    }
  }

  public static void main(String[] words) {
    closedObjectsAndNulls();
    optionsByName();
    shapesAndFiles();
    stepsAndFiles(words[0]);
    callbacks();
    models(System.getenv("LOOM_TEST_MODEL"));
    System.out.println(passed + " passed, " + failed + " failed");
    System.exit(failed == 0 ? 0 : 1);
  }
}
