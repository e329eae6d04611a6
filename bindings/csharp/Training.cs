// Data sets and training.
using System;
using System.Collections.Generic;

namespace Loom
{
    /// <summary>Samples in memory, which never change.</summary>
    public sealed class Dataset : IDisposable
    {
        internal readonly DatasetHandle Handle;

        /// <summary>x: [n, sample]. y: class labels as integers, [n], or targets as floats, [n, outputs].</summary>
        public Dataset(Tensor x, Tensor y)
        {
            using (Borrowed memory = new Borrowed())
                Calls.Check(Sys.loom_dataset_from_arrays(memory.Of(x), memory.Of(y), out Handle));
        }

        /// <summary>.csv, .npz, .npy, .safetensors, .idx, read as the network takes its inputs.</summary>
        public Dataset(string path, Network network)
        {
            using (Borrowed memory = new Borrowed())
            {
                CDatasetOptions how = CDatasetOptions.Sized();
                Calls.Check(Sys.loom_dataset_from_file(memory.Text(path), network.Handle, ref how, out Handle));
            }
        }

        /// <summary>How many there are.</summary>
        public long Samples
        {
            get
            {
                CDatasetInfo info = CDatasetInfo.Sized();
                Calls.Check(Sys.loom_dataset_get_info(Handle, ref info));
                return info.samples;
            }
        }

        public void Dispose()
        {
            Handle.Dispose();
        }
    }

    /// <summary>Length and callbacks of a fit. If a callback returns false, it is cancelled.</summary>
    public sealed class FitSettings
    {
        /// <summary>The total; 0 means 10.</summary>
        public long Epochs;
        /// <summary>Epochs without a better loss; 0 disables it.</summary>
        public long EarlyStop;
        public Func<Epoch, bool> OnEpoch;
        /// <summary>Batches done, batches in all, loss.</summary>
        public Func<long, long, double, bool> OnBatch;
    }

    /// <summary>An epoch that is done; null: there are no such data.</summary>
    public sealed class Epoch
    {
        public readonly long Number;
        public readonly double TrainLoss;
        public readonly double? ValidationLoss;
        public readonly double? ValidationAccuracy;
        public readonly bool Best;

        internal Epoch(CEpoch raw)
        {
            Number = raw.number;
            TrainLoss = raw.train_loss;
            if (raw.has_validation != 0) ValidationLoss = raw.validation_loss;
            if (raw.has_validation_accuracy != 0) ValidationAccuracy = raw.validation_accuracy;
            Best = raw.best != 0;
        }
    }

    /// <summary>The result of a training step.</summary>
    public struct Step
    {
        public double Loss;
        /// <summary>False: gradients are being added up, or were not finite and were dropped.</summary>
        public bool Updated;
    }

    /// <summary>How well a network does; null: there is nothing to compare with.</summary>
    public sealed class Evaluation
    {
        public double Loss;
        public long Samples;
        public double? Accuracy;
        public double? MeanAbsoluteError;
    }

    /// <summary>Fits the weights of a network, from one thread at a time.</summary>
    public sealed class Trainer : IDisposable
    {
        private readonly TrainerHandle handle;

        /// <summary>The network as it is now.</summary>
        public Network Network { get; }

        internal Trainer(Network network, TrainOptions options)
        {
            using (OptionsHandle named = Named.Options("trainer", options.Texts))
                Calls.Check(Sys.loom_trainer_create_with(network.Handle, named, new EngineHandle(), out handle));
            Network = network;
        }

        /// <summary>Trains; one entry per epoch. validation may be null.</summary>
        public List<Epoch> Fit(Dataset train, FitSettings settings, Dataset validation = null)
        {
            Caught caught = new Caught();
            CFitOptions how = CFitOptions.Sized();
            how.epochs = settings.Epochs;
            how.early_stop = settings.EarlyStop;
            if (settings.OnEpoch != null)
                how.on_epoch = (user, at) => caught.Run(() => settings.OnEpoch(new Epoch(
                    (CEpoch)System.Runtime.InteropServices.Marshal.PtrToStructure(at, typeof(CEpoch)))));
            if (settings.OnBatch != null)
                how.on_batch = (user, done, steps, loss) => caught.Run(() => settings.OnBatch(done, steps, loss));
            DatasetHandle other = validation == null ? new DatasetHandle() : validation.Handle;
            HistoryHandle history;
            int status = Sys.loom_trainer_fit(handle, train.Handle, other, ref how, out history);
            GC.KeepAlive(how);
            caught.Check(status);
            using (history) return Epochs(history);
        }

        private static List<Epoch> Epochs(HistoryHandle history)
        {
            long count;
            Calls.Check(Sys.loom_history_count(history, out count));
            List<Epoch> epochs = new List<Epoch>();
            for (long i = 0; i < count; ++i)
            {
                CEpoch raw = CEpoch.Sized();
                Calls.Check(Sys.loom_history_epoch(history, i, ref raw));
                epochs.Add(new Epoch(raw));
            }
            return epochs;
        }

        /// <summary>One update from one batch: x [batch, sample], y as for Dataset.</summary>
        public Step Step(Tensor x, Tensor y)
        {
            using (Borrowed memory = new Borrowed())
            {
                CStepReport raw = CStepReport.Sized();
                Calls.Check(Sys.loom_trainer_step(handle, memory.Of(x), memory.Of(y), IntPtr.Zero, ref raw));
                return new Step { Loss = raw.loss, Updated = raw.updated != 0 };
            }
        }

        /// <summary>Loss, and accuracy or error.</summary>
        public Evaluation Evaluate(Dataset data)
        {
            CEvaluation raw = CEvaluation.Sized();
            ArrayHandle confusion;
            Calls.Check(Sys.loom_trainer_evaluate(handle, data.Handle, ref raw, out confusion));
            confusion.Dispose();
            Evaluation made = new Evaluation { Loss = raw.loss, Samples = raw.samples };
            if (raw.has_accuracy != 0) made.Accuracy = raw.accuracy;
            if (raw.has_mean_absolute_error != 0) made.MeanAbsoluteError = raw.mean_absolute_error;
            return made;
        }

        /// <summary>XXH3-128 of all parameters as float32, in their order.</summary>
        public string WeightsHash
        {
            get { return Calls.TakenText((out IntPtr text) => Sys.loom_trainer_weights_hash(handle, out text)); }
        }

        public void Dispose()
        {
            handle.Dispose();
        }
    }
}
