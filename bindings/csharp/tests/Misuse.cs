// Wrong use is an exception by code, and what a callback throws comes out of the call.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using Loom;

public static class Misuse
{
    private const string Description = "{\"loom\": 1, \"grid\": [1,1,1,1], \"input\": [4], \"cells\": ["
        + "{\"at\":[0,0,0,0],\"type\":\"Dense\",\"in\":4,\"out\":3}]}";
    private static int passed, failed;

    private static void Check(bool holds, string what)
    {
        if (holds) ++passed;
        else ++failed;
        if (!holds) Console.WriteLine("not so: " + what);
    }

    private static void Fails(Action call, Code code, string words)
    {
        try
        {
            call();
            Check(false, "it did not fail: " + words);
        }
        catch (LoomException found)
        {
            Check(found.Code == code && found.Message.Contains(words), found.Code + " " + found.Message);
        }
    }

    private static void Disposed(Action call)
    {
        try
        {
            call();
            Check(false, "a disposed object was used");
        }
        catch (ObjectDisposedException)
        {
            Check(true, "");
        }
    }

    private static void DisposedObjectsAndNulls()
    {
        Tensor x = Tensor.Of(new float[4], 1, 4);
        Network net = Network.FromJson(Description);
        Session session = net.Session();
        session.Dispose();
        session.Dispose();
        Disposed(() => session.Run(x));
        net.Dispose();
        Disposed(() => net.Predict(x));
        Disposed(() => Check(net.Summary == "", "a summary"));
        Fails(() => Network.FromJson(null), Code.InvalidArgument, "null");
        Fails(() => Network.Load("a\0b"), Code.InvalidArgument, "NUL");
        using (Network other = Network.FromJson(Description))
            Fails(() => other.Predict(null), Code.InvalidArgument, "null");
    }

    // The hash of a new network after two epochs with these options.
    private static string HashWith(TrainOptions options)
    {
        Tensor x = Tensor.Of(Enumerable.Range(0, 32).Select(i => (i % 7) / 7f).ToArray(), 8, 4);
        Tensor y = Tensor.Of(new[] { 0, 1, 2, 0, 1, 2, 0, 1 }, 8);
        using (Network net = Network.FromJson(Description))
        using (Dataset data = new Dataset(x, y))
        using (Trainer trainer = net.Trainer(options))
        {
            trainer.Fit(data, new FitSettings { Epochs = 2 });
            return trainer.WeightsHash;
        }
    }

    private static void OptionsByName()
    {
        string plain = HashWith(new TrainOptions());
        TrainOptions[] others =
        {
            new TrainOptions { Freeze = new[] { "*/bias" } },
            new TrainOptions { RateFor = new Dictionary<string, double> { { "*/bias", 0.5 } } },
            new TrainOptions { ClassWeights = new[] { 1f, 2f, 3.5f } },
            new TrainOptions { Beta1 = 0 },
        };
        for (int i = 0; i < others.Length; ++i) Check(HashWith(others[i]) != plain, "options " + i + " change something");
        Fails(() => HashWith(new TrainOptions { Freeze = new[] { "a \"b\" \\" } }), Code.InvalidArgument, "a \"b\" \\");
        Fails(() => HashWith(new TrainOptions { LabelSmoothing = 2 }), Code.InvalidArgument,
            "label_smoothing is 2, must be 0 to 1");
    }

    private static void ShapesAndFiles()
    {
        using (Network net = Network.FromJson(Description))
        using (Session session = net.Session())
        {
            Fails(() => net.Predict(Tensor.Of(new float[5], 1, 5)), Code.InvalidArgument, "[1, 5]");
            Fails(() => Tensor.Of(new float[5], 2, 3), Code.InvalidArgument, "do not fill");
            Fails(() => Tensor.Of(new float[5], -1, -5), Code.InvalidArgument, "is invalid");
            Fails(() => net.Parameter("nothing"), Code.NotFound, "nothing");
            Tensor x = Tensor.Of(new float[] { 1, 2, 3, 4 }, 1, 4);
            float[] place = new float[3];
            session.RunInto(x, Tensor.Of(place, 1, 3));
            Check(place.SequenceEqual(net.Predict(x).Values), "RunInto is Run");
            Fails(() => session.RunInto(x, Tensor.Of(new float[2], 1, 2)), Code.InvalidArgument, "[1, 2]");
        }
        Fails(() => Network.Load("/nowhere/net.entity"), Code.NotFound, "/nowhere");
        Fails(() => Network.FromJson("{\"loom\": 1"), Code.BadFile, "");
        Fails(() => new Engine(isa: "abacus"), Code.Unsupported, "abacus");
    }

    private static void StepsAndFiles(string folder)
    {
        Tensor x = Tensor.Of(Enumerable.Range(0, 32).Select(i => (i % 7) / 7f).ToArray(), 8, 4);
        Tensor y = Tensor.Of(new int[] { 0, 1, 2, 0, 1, 2, 0, 1 }, 8);
        using (Engine engine = new Engine(threads: 1))
        using (Network net = Network.FromJson(Description, 1, engine))
        using (Trainer trainer = net.Trainer(new TrainOptions { Optimizer = Optimizer.Sgd }))
        {
            Check(engine.Threads == 1, "threads");
            Step step = trainer.Step(x, y);
            Check(step.Updated && step.Loss > 0, "a step");
            string before = trainer.WeightsHash;
            trainer.Step(x, y);
            Check(before != trainer.WeightsHash, "a step changes the weights");
            net.Save(folder + "/csharp.entity");
            using (Network loaded = Network.Load(folder + "/csharp.entity"))
            {
                Check(loaded.Predict(x).Values.SequenceEqual(net.Predict(x).Values), "a loaded network");
                Check(loaded.Output[0] == 3 && loaded.Parameters == 15, "what it is");
            }
        }
    }

    private static void Callbacks()
    {
        using (Network net = Network.FromJson(Description))
        using (Dataset data = new Dataset(Tensor.Of(new float[16], 4, 4), Tensor.Of(new int[] { 0, 1, 2, 0 }, 4)))
        using (Trainer trainer = net.Trainer(new TrainOptions()))
        {
            int seen = 0;
            FitSettings stop = new FitSettings { Epochs = 5, OnEpoch = epoch => ++seen < 2 };
            Fails(() => trainer.Fit(data, stop), Code.Cancelled, "");
            Check(seen == 2, "epochs seen");
            FitSettings throws = new FitSettings { OnBatch = (a, b, c) => { throw new FormatException("mine"); } };
            try
            {
                trainer.Fit(data, throws);
                Check(false, "what a callback throws was lost");
            }
            catch (FormatException found)
            {
                Check(found.Message == "mine", found.Message);
            }
            Check(trainer.Fit(data, new FitSettings { Epochs = 2 }).Count == 2, "it goes on");
            Check(trainer.Evaluate(data).Samples == 4 && data.Samples == 4, "samples");
        }
    }

    private static void Models(string path)
    {
        using (Model model = Model.Load(path))
        {
            GenerateSettings settings =
                new GenerateSettings { MaxTokens = 8, Stop = new[] { "never to be seen" }, Logprobs = true };
            Generation whole = model.Generate("One day", settings);
            Check(whole.Logprobs.Length == whole.TokenIds.Length, "logprobs");
            try
            {
                model.Stream("One day", settings, token => { throw new FormatException("mine"); });
                Check(false, "what a callback throws was lost");
            }
            catch (FormatException found)
            {
                Check(found.Message == "mine", found.Message);
            }
            StringBuilder seen = new StringBuilder();
            Generation stopped = model.Stream("One day", settings, t => seen.Append(t.Text).Length < 8);
            Check(stopped.Stop == Stop.Cancelled && whole.Text.StartsWith(seen.ToString()), "stopped");
            int[] ids = model.Tokenize("One day");
            Check(model.Detokenize(ids).Trim() == "One day", "tokens");
            using (ModelSession session = model.Session(64))
            {
                session.Feed(ids);
                Check(session.Logits.Length == model.Vocab, "logits");
                Fails(() => session.Feed(1 << 30), Code.OutOfRange, "");
                Fails(() => session.Rewind(99), Code.OutOfRange, "99");
            }
            Turn[] turns = { new Turn("user", "Hello") };
            Check(model.RenderChat(turns).Contains("Hello"), "a chat");
            Check(model.Chat(turns, settings).TokenIds.Length <= 8, "a reply");
            Fails(() => model.RenderChat(new Turn[0]), Code.InvalidArgument, "at least one message");
            const string parts = "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": 5}]}]";
            Fails(() => model.RenderChat(parts), Code.InvalidArgument, "messages[0].content[0].text must be a text; got 5");
            Conversation continued = new[] { turns[0], new Turn("assistant", "\"Once\"") };
            continued.ContinueFinalMessage = true;
            string text = model.RenderChat(continued);
            Check(text.EndsWith("\"Once\""), "a continued message");
            Check(model.ReadReply("Hi", text) == "{\"role\":\"assistant\",\"content\":\"Hi\"}", "a reply");
        }
    }

    public static int Main(string[] words)
    {
        DisposedObjectsAndNulls();
        OptionsByName();
        ShapesAndFiles();
        StepsAndFiles(words[0]);
        Callbacks();
        Models(Environment.GetEnvironmentVariable("LOOM_TEST_MODEL"));
        Console.WriteLine(passed + " passed, " + failed + " failed");
        return failed == 0 ? 0 : 1;
    }
}
