// Language models and conversations with them.
using System;
using System.Runtime.InteropServices;

namespace Loom
{
    /// <summary>How the next tokens are chosen; zeros are the defaults of the library.</summary>
    public sealed class GenerateSettings
    {
        /// <summary>0: 256.</summary>
        public long MaxTokens;
        /// <summary>0: the likeliest token; else logits are divided by it.</summary>
        public float Temperature;
        /// <summary>Keep the k likeliest tokens; 0 keeps all.</summary>
        public long TopK;
        /// <summary>Keep the fewest tokens that hold this share of the probability; 0 means
        /// 1.</summary>
        public float TopP;
        /// <summary>Keep those with at least this share of the best one's.</summary>
        public float MinP;
        /// <summary>Equal seeds give equal texts, on any machine.</summary>
        public ulong Seed;
        /// <summary>Generation ends where one of these appears.</summary>
        public string[] Stop = new string[0];
        public bool Logprobs;
        /// <summary>Marks of chats become text too, for Model.ReadReply.</summary>
        public bool SpecialText;
    }

    /// <summary>A token that was drawn.</summary>
    public sealed class Token
    {
        public readonly int Id;
        /// <summary>The text that it adds, in complete characters.</summary>
        public readonly string Text;
        public readonly float Logprob;

        internal Token(IntPtr at)
        {
            CToken raw = (CToken)Marshal.PtrToStructure(at, typeof(CToken));
            Id = raw.id;
            Text = Calls.Text(raw.text);
            Logprob = raw.logprob;
        }
    }

    /// <summary>The result of a generation.</summary>
    public sealed class Generation
    {
        public readonly string Text;
        public readonly int[] TokenIds;
        public readonly float[] Logprobs;
        public readonly Stop Stop;

        internal Generation(GenerationHandle raw)
        {
            using (raw)
            {
                IntPtr at;
                long count;
                Calls.Check(Sys.loom_generation_text(raw, out at, out count));
                Text = Calls.Text(at);
                Calls.Check(Sys.loom_generation_ids(raw, out at, out count));
                TokenIds = Calls.Ints(at, count);
                Calls.Check(Sys.loom_generation_logprobs(raw, out at, out count));
                Logprobs = Calls.Floats(at, count);
                CGenerationInfo info = CGenerationInfo.Sized();
                Calls.Check(Sys.loom_generation_get_info(raw, ref info));
                Stop = (Stop)info.stop;
            }
        }
    }

    /// <summary>A language model with its weights, tokenizer and chat template. It never changes.</summary>
    public sealed class Model : IDisposable
    {
        private readonly ModelHandle handle;

        private Model(ModelHandle handle)
        {
            this.handle = handle;
        }

        /// <summary>An .entity file, a GGUF file, or a Hugging Face folder.</summary>
        public static Model Load(string path, Engine engine = null)
        {
            using (Borrowed memory = new Borrowed())
            {
                CModelOptions how = CModelOptions.Sized();
                ModelHandle made;
                Calls.Check(Sys.loom_model_load(Engine.Of(engine), memory.Text(path), ref how, out made));
                return new Model(made);
            }
        }

        /// <summary>Logits per position.</summary>
        public long Vocab
        {
            get
            {
                CModelInfo info = CModelInfo.Sized();
                Calls.Check(Sys.loom_model_get_info(handle, ref info));
                return info.vocab;
            }
        }

        /// <summary>Ids, with the tokens that the tokenizer puts around a text.</summary>
        public int[] Tokenize(string words)
        {
            using (Borrowed memory = new Borrowed())
            {
                IntPtr text = memory.Text(words);
                return Calls.TakenIds((out IntPtr ids, out long count) =>
                    Sys.loom_model_tokenize(handle, text, 1, out ids, out count));
            }
        }

        /// <summary>Text of ids, without special tokens.</summary>
        public string Detokenize(int[] ids)
        {
            using (Borrowed memory = new Borrowed())
            {
                IntPtr list = memory.Pinned(ids);
                return Calls.TakenText((out IntPtr text) =>
                    Sys.loom_model_detokenize(handle, list, ids.Length, 1, out text));
            }
        }

        /// <summary>The conversation as the model's chat template writes it.</summary>
        public string RenderChat(Conversation conversation)
        {
            using (Borrowed memory = new Borrowed())
            {
                IntPtr messages = memory.Text(conversation.Messages);
                CChatOptions how = conversation.Options(memory);
                return Calls.TakenText((out IntPtr text) =>
                    Sys.loom_model_render_messages(handle, messages, ref how, out text));
            }
        }

        /// <summary>A reply to the prompt of RenderChat as a message of JSON: {"role", "content",
        /// "reasoning_content", "tool_calls"}. tools: those of the conversation; null: none.</summary>
        public string ReadReply(string reply, string prompt, string tools = null)
        {
            using (Borrowed memory = new Borrowed())
            {
                IntPtr words = memory.Text(reply), before = memory.Text(prompt), offered = Conversation.Or(memory, tools);
                return Calls.TakenText((out IntPtr text) =>
                    Sys.loom_model_read_reply(handle, words, before, offered, out text));
            }
        }

        /// <summary>A conversation. context: positions; 0 means the model's, at most
        /// 2048.</summary>
        public ModelSession Session(long context = 0)
        {
            CModelSessionOptions how = CModelSessionOptions.Sized();
            how.context = context;
            ModelSessionHandle made;
            Calls.Check(Sys.loom_model_start(handle, ref how, out made));
            return new ModelSession(made);
        }

        /// <summary>New text after a prompt, in a session of its own.</summary>
        public Generation Generate(string prompt, GenerateSettings settings)
        {
            return Stream(prompt, settings, null);
        }

        /// <summary>The same, token by token; false stops.</summary>
        public Generation Stream(string prompt, GenerateSettings settings, Func<Token, bool> onToken)
        {
            using (ModelSession session = Session()) return session.Stream(prompt, settings, onToken);
        }

        /// <summary>The next turn of a conversation, written with the model's own template. With tools the text is
        /// one for ReadReply.</summary>
        public Generation Chat(Conversation conversation, GenerateSettings settings, Func<Token, bool> onToken = null)
        {
            int[] prompt;
            using (Borrowed memory = new Borrowed())
            {
                IntPtr words = memory.Text(RenderChat(conversation));
                prompt = Calls.TakenIds((out IntPtr ids, out long count) =>
                    Sys.loom_model_tokenize(handle, words, 0, out ids, out count));
            }
            bool special = settings.SpecialText || conversation.Tools != null;
            using (ModelSession session = Session()) return session.Stream(prompt, settings, onToken, special);
        }

        public void Dispose()
        {
            handle.Dispose();
        }
    }

    /// <summary>One conversation, for one thread at a time.</summary>
    public sealed class ModelSession : IDisposable
    {
        private delegate int Call(ref CGenerateOptions how, out GenerationHandle made);

        private readonly ModelSessionHandle handle;

        internal ModelSession(ModelSessionHandle handle)
        {
            this.handle = handle;
        }

        /// <summary>Reads tokens.</summary>
        public void Feed(params int[] ids)
        {
            using (Borrowed memory = new Borrowed())
                Calls.Check(Sys.loom_model_session_feed(handle, memory.Pinned(ids), ids.Length));
        }

        /// <summary>Logits [vocab] after the last token fed; none before the first.</summary>
        public float[] Logits
        {
            get
            {
                IntPtr at;
                long count;
                Calls.Check(Sys.loom_model_session_logits(handle, out at, out count));
                return Calls.Floats(at, count);
            }
        }

        /// <summary>Forgets everything from `position` on.</summary>
        public void Rewind(long position)
        {
            Calls.Check(Sys.loom_model_session_rewind(handle, position));
        }

        /// <summary>Reads the prompt, then draws tokens; onToken may be null, and stops by giving false.</summary>
        public Generation Stream(string prompt, GenerateSettings settings, Func<Token, bool> onToken)
        {
            using (Borrowed memory = new Borrowed())
            {
                IntPtr text = memory.Text(prompt);
                Call call = (ref CGenerateOptions how, out GenerationHandle made) =>
                    Sys.loom_model_session_generate(handle, text, ref how, out made);
                return Run(memory, settings, onToken, settings.SpecialText, call);
            }
        }

        /// <summary>The same for a prompt of tokens.</summary>
        public Generation Stream(int[] prompt, GenerateSettings settings, Func<Token, bool> onToken)
        {
            return Stream(prompt, settings, onToken, settings.SpecialText);
        }

        internal Generation Stream(int[] prompt, GenerateSettings settings, Func<Token, bool> onToken, bool special)
        {
            using (Borrowed memory = new Borrowed())
            {
                IntPtr ids = memory.Pinned(prompt);
                Call call = (ref CGenerateOptions how, out GenerationHandle made) =>
                    Sys.loom_model_session_generate_ids(handle, ids, prompt.Length, ref how, out made);
                return Run(memory, settings, onToken, special, call);
            }
        }

        private static Generation Run(
            Borrowed memory, GenerateSettings settings, Func<Token, bool> onToken, bool special, Call call)
        {
            Caught caught = new Caught();
            CGenerateOptions how = CGenerateOptions.Sized();
            how.max_tokens = settings.MaxTokens;
            how.temperature = settings.Temperature;
            how.top_k = settings.TopK;
            how.top_p = settings.TopP;
            how.min_p = settings.MinP;
            how.seed = settings.Seed;
            how.stop = memory.Texts(settings.Stop);
            how.stop_count = settings.Stop.Length;
            how.logprobs = settings.Logprobs ? 1 : 0;
            how.special_text = special ? 1 : 0;
            if (onToken != null) how.on_token = (user, at) => caught.Run(() => onToken(new Token(at)));
            GenerationHandle made;
            int status = call(ref how, out made);
            GC.KeepAlive(how);
            using (made)
            {
                caught.Check(status);
                return new Generation(made);
            }
        }

        public void Dispose()
        {
            handle.Dispose();
        }
    }
}
