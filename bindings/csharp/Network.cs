// Engines, tensors and networks.
using System;
using System.Runtime.InteropServices;

namespace Loom
{
    /// <summary>Threads, instruction set, device. Models and networks keep their engine alive.</summary>
    public sealed class Engine : IDisposable
    {
        internal readonly EngineHandle Handle;

        /// <summary>threads 0: all cores; isa null: the best one here.</summary>
        public Engine(int threads = 0, string isa = null, Device device = Device.Cpu)
        {
            using (Borrowed memory = new Borrowed())
            {
                CEngineOptions how = CEngineOptions.Sized();
                how.threads = threads;
                how.device = (int)device;
                if (isa != null) how.isa = memory.Text(isa);
                Calls.Check(Sys.loom_engine_create(ref how, out Handle));
            }
        }

        /// <summary>As they run, after the limit of cores.</summary>
        public int Threads
        {
            get
            {
                CEngineInfo info = CEngineInfo.Sized();
                Calls.Check(Sys.loom_engine_get_info(Handle, ref info));
                return info.threads;
            }
        }

        /// <summary>The version of the library that runs.</summary>
        public static string Version { get { return Calls.Text(Sys.loom_version()); } }

        internal static EngineHandle Of(Engine engine)
        {
            return engine == null ? new EngineHandle() : engine.Handle;
        }

        public void Dispose()
        {
            Handle.Dispose();
        }
    }

    /// <summary>Numbers of the caller with a shape, one row after the other.</summary>
    public sealed class Tensor
    {
        internal readonly DType Type;
        internal readonly Array Values;
        internal readonly long[] Shape;

        private Tensor(DType type, Array values, long[] shape)
        {
            long count = 1;
            foreach (long extent in shape)
            {
                if (extent < 0 || (extent > 0 && count > long.MaxValue / extent))
                    throw LoomException.Invalid("the shape [" + string.Join(", ", shape) + "] is invalid");
                count *= extent;
            }
            if (count != values.LongLength)
                throw LoomException.Invalid(
                    values.LongLength + " numbers do not fill the shape [" + string.Join(", ", shape) + "]");
            Type = type;
            Values = values;
            Shape = shape;
        }

        public static Tensor Of(float[] values, params long[] shape)
        {
            return new Tensor(DType.Float32, values, shape);
        }

        public static Tensor Of(double[] values, params long[] shape)
        {
            return new Tensor(DType.Float64, values, shape);
        }

        public static Tensor Of(int[] values, params long[] shape)
        {
            return new Tensor(DType.Int32, values, shape);
        }

        public static Tensor Of(long[] values, params long[] shape)
        {
            return new Tensor(DType.Int64, values, shape);
        }

        public static Tensor Of(byte[] values, params long[] shape)
        {
            return new Tensor(DType.Uint8, values, shape);
        }
    }

    /// <summary>float32 outputs of the library, as an array of C# with its shape.</summary>
    public sealed class Outputs
    {
        public readonly long[] Shape;
        public readonly float[] Values;

        internal Outputs(ArrayHandle array)
        {
            using (array)
            using (Borrowed memory = new Borrowed())
            {
                IntPtr at = memory.Memory(Marshal.SizeOf(typeof(CTensor)));
                Calls.Check(Sys.loom_array_view(array, at));
                CTensor view = (CTensor)Marshal.PtrToStructure(at, typeof(CTensor));
                if (view.dtype != (int)DType.Float32 || view.strides != IntPtr.Zero)
                    throw LoomException.Invalid("the array is not float32 without gaps");
                Shape = new long[view.rank];
                if (view.rank > 0) Marshal.Copy(view.shape, Shape, 0, view.rank);
                long count = 1;
                foreach (long extent in Shape) count *= extent;
                Values = Calls.Floats(view.data, view.data == IntPtr.Zero ? 0 : count);
            }
        }
    }

    /// <summary>Layers with their weights. Sessions keep the weights that it had when they were made.</summary>
    public sealed class Network : IDisposable
    {
        internal readonly NetworkHandle Handle;

        private Network(NetworkHandle handle)
        {
            Handle = handle;
        }

        /// <summary>A description, as Json gives it. seed: of starting weights; null: 1.</summary>
        public static Network FromJson(string json, ulong? seed = null, Engine engine = null)
        {
            using (Borrowed memory = new Borrowed())
            {
                CLoadOptions how = CLoadOptions.Sized();
                how.has_seed = seed.HasValue ? 1 : 0;
                how.seed = seed.GetValueOrDefault();
                NetworkHandle made;
                Calls.Check(Sys.loom_network_from_json(Engine.Of(engine), memory.Text(json), ref how, out made));
                return new Network(made);
            }
        }

        /// <summary>.entity, .json, .onnx, .npz, .safetensors.</summary>
        public static Network Load(string path, Engine engine = null)
        {
            using (Borrowed memory = new Borrowed())
            {
                CLoadOptions how = CLoadOptions.Sized();
                NetworkHandle made;
                Calls.Check(Sys.loom_network_load(Engine.Of(engine), memory.Text(path), ref how, out made));
                return new Network(made);
            }
        }

        /// <summary>The format is that of the ending.</summary>
        public void Save(string path)
        {
            using (Borrowed memory = new Borrowed())
            {
                CSaveOptions how = CSaveOptions.Sized();
                Calls.Check(Sys.loom_network_save(Handle, memory.Text(path), ref how));
            }
        }

        /// <summary>The description, without weights.</summary>
        public string Json
        {
            get { return Calls.TakenText((out IntPtr text) => Sys.loom_network_json(Handle, out text)); }
        }

        /// <summary>A table for people.</summary>
        public string Summary
        {
            get { return Calls.TakenText((out IntPtr text) => Sys.loom_network_summary(Handle, out text)); }
        }

        private CNetworkInfo Info()
        {
            CNetworkInfo info = CNetworkInfo.Sized();
            Calls.Check(Sys.loom_network_get_info(Handle, ref info));
            return info;
        }

        /// <summary>Numbers; shared ones once.</summary>
        public long Parameters { get { return Info().parameters; } }

        /// <summary>The shape of one output.</summary>
        public long[] Output
        {
            get
            {
                CNetworkInfo info = Info();
                long[] shape = new long[info.output_rank];
                Array.Copy(info.output, shape, shape.Length);
                return shape;
            }
        }

        /// <summary>Inputs [n, ...] to float32 outputs [n, ...].</summary>
        public Outputs Predict(Tensor inputs)
        {
            using (Borrowed memory = new Borrowed())
            {
                ArrayHandle made;
                Calls.Check(Sys.loom_network_predict(Handle, memory.Of(inputs), out made));
                return new Outputs(made);
            }
        }

        /// <summary>Values of a parameter as float32.</summary>
        public Outputs Parameter(string name)
        {
            using (Borrowed memory = new Borrowed())
            {
                ArrayHandle made;
                Calls.Check(Sys.loom_network_parameter(Handle, memory.Text(name), out made));
                return new Outputs(made);
            }
        }

        /// <summary>One user of the network. maxBatch: samples computed at a time; 0 means
        /// 1.</summary>
        public Session Session(long maxBatch = 0, bool stateful = false)
        {
            CSessionOptions how = CSessionOptions.Sized();
            how.max_batch = maxBatch;
            how.stateful = stateful ? 1 : 0;
            SessionHandle made;
            Calls.Check(Sys.loom_network_session(Handle, ref how, out made));
            return new Session(made);
        }

        /// <summary>Changes the network, whose weights are up to date after every call.</summary>
        public Trainer Trainer(TrainOptions options)
        {
            return new Trainer(this, options);
        }

        public void Dispose()
        {
            Handle.Dispose();
        }
    }

    /// <summary>Runs a network, for one thread at a time.</summary>
    public sealed class Session : IDisposable
    {
        private readonly SessionHandle handle;

        internal Session(SessionHandle handle)
        {
            this.handle = handle;
        }

        /// <summary>Inputs [n, ...] to float32 outputs [n, ...].</summary>
        public Outputs Run(Tensor inputs)
        {
            using (Borrowed memory = new Borrowed())
            {
                ArrayHandle made;
                Calls.Check(Sys.loom_session_run(handle, memory.Of(inputs), out made));
                return new Outputs(made);
            }
        }

        /// <summary>The same into an array of the shape that the outputs have.</summary>
        public void RunInto(Tensor inputs, Tensor outputs)
        {
            using (Borrowed memory = new Borrowed())
                Calls.Check(Sys.loom_session_run_into(handle, memory.Of(inputs), memory.Of(outputs)));
        }

        /// <summary>Stateful: begins new streams.</summary>
        public void Reset()
        {
            Calls.Check(Sys.loom_session_reset(handle));
        }

        public void Dispose()
        {
            handle.Dispose();
        }
    }
}
