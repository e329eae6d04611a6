import loom.*;

/** Prints what a network, its training and a story come to, as tests/capi/bits.c does. */
public final class Bits {
  private static final String JSON = "{\"loom\": 1, \"grid\": [1,1,2,1], \"input\": [4], \"cells\": ["
      + "{\"at\":[0,0,0,0],\"type\":\"Dense\",\"in\":4,\"out\":16,\"activation\":\"tanh\"},"
      + "{\"at\":[0,0,1,0],\"type\":\"Dense\",\"in\":16,\"out\":3}]}";

  private static void printOutputs(Network net, Tensor x) {
    StringBuilder hex = new StringBuilder();
    for (float value : net.predict(x).values)
      hex.append(String.format("%08x", Integer.reverseBytes(Float.floatToRawIntBits(value))));
    System.out.println("outputs " + hex);
  }

  public static void main(String[] words) {
    float[] values = new float[240 * 4];
    int[] labels = new int[240];
    long state = 88172645463325252L;
    for (int i = 0; i < 240; ++i) {
      for (int k = 0; k < 4; ++k) {
        state = state * 6364136223846793005L + 1442695040888963407L;
        values[4 * i + k] = (float) (state >>> 40) / (float) (1 << 23) - 1.0f;
      }
      boolean first = values[4 * i] + values[4 * i + 1] > 0.3f;
      labels[i] = first ? 0 : values[4 * i + 2] - values[4 * i + 3] > 0 ? 1 : 2;
    }
    Tensor x = Tensor.of(values, 240, 4);
    try (Network net = Network.fromJson(null, JSON, 7);
        Dataset data = new Dataset(x, Tensor.of(labels, 240));
        Trainer trainer = net.trainer(new Trainer.Options().rate(1e-2))) {
      printOutputs(net, x);
      trainer.fit(data, new Trainer.FitOptions().epochs(3));
      System.out.println("trained " + trainer.weightsHash());
      printOutputs(net, x);
    }
    String path = System.getenv("LOOM_TEST_MODEL");
    StringBuilder story = new StringBuilder();
    try (Model model = Model.load(path == null ? "models/stories.entity" : path)) {
      model.stream("Once upon a time",
          new GenerateOptions().maxTokens(60).temperature(0.8f).seed(7), token -> {
            story.append(token.text);
            return true;
          });
    }
    System.out.println("story " + story);
  }
}
