// Prints what a network, its training and a story come to, as tests/capi/bits.c does.
using System;
using System.Text;
using Loom;

public static class Bits
{
    private const string Description =
        "{\"loom\": 1, \"grid\": [1,1,2,1], \"input\": [4], \"cells\": ["
        + "{\"at\":[0,0,0,0],\"type\":\"Dense\",\"in\":4,\"out\":16,\"activation\":\"tanh\"},"
        + "{\"at\":[0,0,1,0],\"type\":\"Dense\",\"in\":16,\"out\":3}]}";

    private static void PrintOutputs(Network net, Tensor x)
    {
        StringBuilder hex = new StringBuilder();
        foreach (float value in net.Predict(x).Values)
            foreach (byte part in BitConverter.GetBytes(value)) hex.Append(part.ToString("x2"));
        Console.Write("outputs " + hex + "\n");
    }

    public static void Main()
    {
        Console.OutputEncoding = new UTF8Encoding(false);
        float[] values = new float[240 * 4];
        int[] labels = new int[240];
        ulong state = 88172645463325252;
        for (int i = 0; i < 240; ++i)
        {
            for (int k = 0; k < 4; ++k)
            {
                state = unchecked(state * 6364136223846793005 + 1442695040888963407);
                values[4 * i + k] = (float)((float)(state >> 40) / (float)(1 << 23)) - 1.0f;
            }
            float sum = values[4 * i] + values[4 * i + 1];
            labels[i] = sum > 0.3f ? 0 : values[4 * i + 2] - values[4 * i + 3] > 0 ? 1 : 2;
        }
        Tensor x = Tensor.Of(values, 240, 4);
        using (Network net = Network.FromJson(Description, 7))
        using (Dataset data = new Dataset(x, Tensor.Of(labels, 240)))
        using (Trainer trainer = net.Trainer(new TrainOptions { Rate = 1e-2 }))
        {
            PrintOutputs(net, x);
            trainer.Fit(data, new FitSettings { Epochs = 3 });
            Console.Write("trained " + trainer.WeightsHash + "\n");
            PrintOutputs(net, x);
        }
        StringBuilder story = new StringBuilder();
        string path = Environment.GetEnvironmentVariable("LOOM_TEST_MODEL") ?? "models/stories.entity";
        GenerateSettings settings = new GenerateSettings { MaxTokens = 60, Temperature = 0.8f, Seed = 7 };
        using (Model model = Model.Load(path))
            model.Stream("Once upon a time", settings, token =>
            {
                story.Append(token.Text);
                return true;
            });
        Console.Write("story " + story + "\n");
    }
}
