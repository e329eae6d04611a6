// Options by name: each value as a text.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;

namespace Loom
{
    internal static class Named
    {
        /// <summary>Options of that kind; texts sets each that is not the default.</summary>
        internal static OptionsHandle Options(string kind, Action<Action<string, string>> texts)
        {
            using (Borrowed memory = new Borrowed())
            {
                OptionsHandle made;
                Calls.Check(Sys.loom_options_new(memory.Text(kind), out made));
                texts((name, text) => Calls.Check(Sys.loom_options_set(made, memory.Text(name), memory.Text(text))));
                return made;
            }
        }

        internal static string Of(IFormattable value)
        {
            bool real = value is float || value is double;
            return value.ToString(real ? "R" : null, CultureInfo.InvariantCulture);
        }

        internal static string Of(long[] values)
        {
            return string.Join(",", values.Select(v => Of(v)));
        }

        internal static string Of(float[] values)
        {
            return string.Join(",", values.Select(v => Of(v)));
        }

        internal static string Of(string[] values)
        {
            return "[" + string.Join(", ", values.Select(v =>
                "\"" + v.Replace("\\", "\\\\").Replace("\"", "\\\"") + "\"")) + "]";
        }

        internal static string Of(Dictionary<string, double> values)
        {
            return Of(values.Select(pair => pair.Key + "=" + Of(pair.Value)).ToArray());
        }
    }
}
