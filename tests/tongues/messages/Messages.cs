using System;
using System.IO;
using System.Text;
using Loom;

/// <summary>As messages.c.</summary>
public static class Messages
{
    private static string Some(string text)
    {
        return text.Length == 0 ? null : text;
    }

    public static int Main()
    {
        StreamReader input = new StreamReader(Console.OpenStandardInput(), new UTF8Encoding(false));
        StreamWriter output = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false)) { AutoFlush = true };
        string path = "", line;
        Model model = null;
        while ((line = input.ReadLine()) != null)
        {
            string[] fields = line.Split('\t');
            if (fields[0] != path)
            {
                if (model != null) model.Dispose();
                path = fields[0];
                model = Model.Load(path);
            }
            Conversation talk = fields[2];
            talk.NoReply = fields[1].Contains("n");
            talk.ContinueFinalMessage = fields[1].Contains("c");
            talk.Tools = Some(fields[3]);
            talk.Variables = Some(fields[4]);
            try
            {
                byte[] bytes = Encoding.UTF8.GetBytes(model.RenderChat(talk));
                output.WriteLine("ok " + BitConverter.ToString(bytes).Replace("-", "").ToLowerInvariant());
            }
            catch (LoomException error)
            {
                output.WriteLine("error " + error.Message);
            }
        }
        return 0;
    }
}
