using System;
using System.Text;

namespace Loom
{
    /// <summary>A message of text: "system", "user" or "assistant", and its text.</summary>
    public sealed class Turn
    {
        public readonly string Role;
        public readonly string Content;

        public Turn(string role, string content)
        {
            Role = role;
            Content = content;
        }
    }

    /// <summary>A conversation as chat templates read it, made from turns of text or from messages as JSON.</summary>
    public sealed class Conversation
    {
        /// <summary>JSON in the shape of OpenAI's clients: [{"role", "content" (text, null or a list of parts),
        /// "tool_calls", "tool_call_id", "name", "reasoning_content"}] and any member that the template
        /// reads.</summary>
        public string Messages;
        /// <summary>Functions that the model may call: a JSON array; null: none.</summary>
        public string Tools;
        /// <summary>A JSON array that some templates quote; null: none.</summary>
        public string Documents;
        /// <summary>A JSON object of template variables: {"enable_thinking": false}; null: none.</summary>
        public string Variables;
        /// <summary>The day that a template may tell, "2024-07-26"; null: today, in UTC.</summary>
        public string Date;
        /// <summary>The prompt does not end where the assistant's reply begins.</summary>
        public bool NoReply;
        /// <summary>The prompt ends after the text of the last message, which the model continues.</summary>
        public bool ContinueFinalMessage;

        public static implicit operator Conversation(string messages)
        {
            return new Conversation { Messages = messages };
        }

        public static implicit operator Conversation(Turn[] turns)
        {
            StringBuilder json = new StringBuilder("[");
            foreach (Turn turn in turns)
            {
                json.Append(json.Length == 1 ? "{\"role\":" : ",{\"role\":");
                Quote(json, turn.Role);
                json.Append(",\"content\":");
                Quote(json, turn.Content);
                json.Append('}');
            }
            return new Conversation { Messages = json.Append(']').ToString() };
        }

        private static void Quote(StringBuilder json, string text)
        {
            if (text == null) throw LoomException.Invalid("a text of a turn is null");
            json.Append('"');
            foreach (char c in text)
            {
                if (c == '"' || c == '\\') json.Append('\\').Append(c);
                else if (c < 0x20) json.AppendFormat("\\u{0:x4}", (int)c);
                else json.Append(c);
            }
            json.Append('"');
        }

        internal CChatOptions Options(Borrowed memory)
        {
            CChatOptions how = CChatOptions.Sized();
            how.tools = Or(memory, Tools);
            how.documents = Or(memory, Documents);
            how.variables = Or(memory, Variables);
            how.date = Or(memory, Date);
            how.no_reply = NoReply ? 1 : 0;
            how.continue_final_message = ContinueFinalMessage ? 1 : 0;
            return how;
        }

        internal static IntPtr Or(Borrowed memory, string text)
        {
            return text == null ? IntPtr.Zero : memory.Text(text);
        }
    }
}
