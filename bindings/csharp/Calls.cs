// How the C interface is called: statuses, texts and lists that are handed over, and callbacks whose
// exceptions stay on this side.
using System;
using System.Runtime.InteropServices;
using System.Text;

namespace Loom
{
    /// <summary>One line: what, where, what to do; and its code.</summary>
    public sealed class LoomException : Exception
    {
        /// <summary>The kind of the failure.</summary>
        public Code Code { get; }

        internal LoomException(Code code, string message) : base(message)
        {
            Code = code;
        }

        internal static LoomException Invalid(string message)
        {
            return new LoomException(Code.InvalidArgument, message);
        }
    }

    internal static class Calls
    {
        internal delegate int TextCall(out IntPtr text);
        internal delegate int IdsCall(out IntPtr ids, out long count);

        private static readonly bool Fits = Matches();

        private static bool Matches()
        {
            if (Sys.loom_abi_version() == Sys.AbiVersion) return true;
            throw new DllNotFoundException("the library has another interface; take both from one release");
        }

        internal static void Check(int status)
        {
            if (status != 0 || !Fits) throw new LoomException((Code)status, Text(Sys.loom_last_error()));
        }

        internal static string Text(IntPtr at)
        {
            if (at == IntPtr.Zero) return "";
            int size = 0;
            while (Marshal.ReadByte(at, size) != 0) ++size;
            byte[] bytes = new byte[size];
            Marshal.Copy(at, bytes, 0, size);
            return Encoding.UTF8.GetString(bytes);
        }

        internal static string Field(byte[] from)
        {
            int size = Array.IndexOf(from, (byte)0);
            return Encoding.UTF8.GetString(from, 0, size < 0 ? from.Length : size);
        }

        internal static string TakenText(TextCall call)
        {
            IntPtr text;
            Check(call(out text));
            try
            {
                return Text(text);
            }
            finally
            {
                Sys.loom_free(text);
            }
        }

        internal static int[] TakenIds(IdsCall call)
        {
            IntPtr ids;
            long count;
            Check(call(out ids, out count));
            try
            {
                return Ints(ids, count);
            }
            finally
            {
                Sys.loom_free(ids);
            }
        }

        internal static int[] Ints(IntPtr at, long count)
        {
            int[] made = new int[count];
            if (count > 0) Marshal.Copy(at, made, 0, (int)count);
            return made;
        }

        internal static float[] Floats(IntPtr at, long count)
        {
            float[] made = new float[count];
            if (count > 0) Marshal.Copy(at, made, 0, (int)count);
            return made;
        }
    }

    /// <summary>Memory for one call: texts, lists and tensors as C takes them.</summary>
    internal sealed class Borrowed : IDisposable
    {
        private readonly System.Collections.Generic.List<IntPtr> memory =
            new System.Collections.Generic.List<IntPtr>();
        private readonly System.Collections.Generic.List<GCHandle> pinned =
            new System.Collections.Generic.List<GCHandle>();

        internal IntPtr Memory(int size)
        {
            IntPtr at = Marshal.AllocHGlobal(Math.Max(1, size));
            memory.Add(at);
            return at;
        }

        internal IntPtr Text(string from)
        {
            if (from == null) throw LoomException.Invalid("a text is null");
            if (from.IndexOf('\0') >= 0) throw LoomException.Invalid("a text for Loom cannot hold the character NUL");
            byte[] bytes = Encoding.UTF8.GetBytes(from + "\0");
            IntPtr at = Memory(bytes.Length);
            Marshal.Copy(bytes, 0, at, bytes.Length);
            return at;
        }

        internal IntPtr Texts(string[] from)
        {
            IntPtr at = Memory(IntPtr.Size * from.Length);
            for (int i = 0; i < from.Length; ++i) Marshal.WriteIntPtr(at, IntPtr.Size * i, Text(from[i]));
            return at;
        }

        internal IntPtr Pinned(Array values)
        {
            GCHandle handle = GCHandle.Alloc(values, GCHandleType.Pinned);
            pinned.Add(handle);
            return handle.AddrOfPinnedObject();
        }

        internal IntPtr Of(Tensor tensor)
        {
            if (tensor == null) return IntPtr.Zero;
            CTensor raw = new CTensor();
            raw.dtype = (int)tensor.Type;
            raw.rank = tensor.Shape.Length;
            raw.shape = Pinned(tensor.Shape);
            raw.data = Pinned(tensor.Values);
            IntPtr at = Memory(Marshal.SizeOf(typeof(CTensor)));
            Marshal.StructureToPtr(raw, at, false);
            return at;
        }

        public void Dispose()
        {
            foreach (IntPtr at in memory) Marshal.FreeHGlobal(at);
            foreach (GCHandle handle in pinned) handle.Free();
        }
    }

    /// <summary>The exception of a callback of one call; the call throws it again.</summary>
    internal sealed class Caught
    {
        private System.Runtime.ExceptionServices.ExceptionDispatchInfo thrown;

        /// <summary>The value that a callback returns to C; 0 means continue.</summary>
        internal int Run(Func<bool> callback)
        {
            try
            {
                return callback() ? 0 : 1;
            }
            catch (Exception any)
            {
                thrown = System.Runtime.ExceptionServices.ExceptionDispatchInfo.Capture(any);
                return 1;
            }
        }

        internal void Check(int status)
        {
            if (thrown != null) thrown.Throw();
            Calls.Check(status);
        }
    }
}
