//! Data sets and training.

use crate::calls::{c_text, check, taken_text, user, Caught, Owned};
use crate::network::path_text;
use crate::tensor::report;
use crate::{sys, Array, Error, Network, Result, Tensor, TrainerOptions};
use std::ffi::c_void;
use std::path::Path;

/// Samples in memory, which never change.
pub struct Dataset {
    raw: Owned<sys::loom_dataset>,
}

impl Dataset {
    /// x: [n, sample]. y: class labels as integers, [n], or targets as floats, [n, outputs].
    pub fn new(x: &Tensor<'_>, y: Option<&Tensor<'_>>) -> Result<Self> {
        let y = y.map_or(std::ptr::null(), |y| y.raw());
        // SAFETY: the tensors borrow their memory; values are copied.
        let raw = Owned::from(sys::loom_dataset_free, |out| unsafe {
            sys::loom_dataset_from_arrays(x.raw(), y, out)
        })?;
        Ok(Dataset { raw })
    }

    /// .csv, .npz, .npy, .safetensors, .idx, read as `network` takes its inputs.
    pub fn load(path: impl AsRef<Path>, network: &Network) -> Result<Self> {
        let path = path_text(path.as_ref())?;
        // SAFETY: the path lives during the call.
        let raw = Owned::from(sys::loom_dataset_free, |out| unsafe {
            sys::loom_dataset_from_file(path.as_ptr(), network.raw.get(), std::ptr::null(), out)
        })?;
        Ok(Dataset { raw })
    }

    /// How many samples there are.
    pub fn samples(&self) -> Result<i64> {
        // SAFETY: the size of the struct is set.
        let info: sys::loom_dataset_info =
            report(|out| unsafe { sys::loom_dataset_get_info(self.raw.get(), out) })?;
        Ok(info.samples)
    }

    /// Inputs [n, sample].
    pub fn x(&self) -> Result<Array> {
        // SAFETY: the handle is ours.
        Array::from(|out| unsafe { sys::loom_dataset_x(self.raw.get(), out) })
    }
}

/// An epoch that is done.
#[derive(Clone, Debug)]
pub struct Epoch {
    /// From 1.
    pub number: i64,
    /// Mean over its batches.
    pub train_loss: f64,
    /// Where there are validation data.
    pub validation_loss: Option<f64>,
    /// Where they have labels.
    pub validation_accuracy: Option<f64>,
    /// The least loss so far.
    pub best: bool,
}

impl Epoch {
    fn of(raw: &sys::loom_epoch) -> Self {
        Epoch {
            number: raw.number,
            train_loss: raw.train_loss,
            validation_loss: (raw.has_validation != 0).then_some(raw.validation_loss),
            validation_accuracy: (raw.has_validation_accuracy != 0)
                .then_some(raw.validation_accuracy),
            best: raw.best != 0,
        }
    }
}

/// The result of a training step.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The loss of the batch.
    pub loss: f64,
    /// False: gradients are being added up, or were not finite and were dropped.
    pub updated: bool,
}

/// How well a network does.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Mean over the samples.
    pub loss: f64,
    /// How many.
    pub samples: i64,
    /// Share of labels that have the largest output; None: there are no labels.
    pub accuracy: Option<f64>,
    /// Over all outputs; None: there are no targets.
    pub mean_absolute_error: Option<f64>,
}

type BatchFn<'f> = Box<dyn FnMut(i64, i64, f64) -> bool + 'f>;
type EpochFn<'f> = Box<dyn FnMut(&Epoch) -> bool + 'f>;

/// How long a fit goes on, and who looks on.
#[derive(Default)]
pub struct FitOptions<'f> {
    /// The total; 0 means 10.
    pub epochs: i64,
    /// Epochs without a better loss; 0 disables it.
    pub early_stop: i64,
    /// At the end the network has the best weights, not the last.
    pub keep_best: bool,
    /// (done, steps, loss) after each batch; false ends the call as cancelled.
    pub on_batch: Option<BatchFn<'f>>,
    /// After each epoch; false ends the call as cancelled.
    pub on_epoch: Option<EpochFn<'f>>,
}

#[derive(Default)]
struct Watch<'f> {
    on_batch: Option<BatchFn<'f>>,
    on_epoch: Option<EpochFn<'f>>,
    caught: Caught,
}

unsafe extern "C" fn batch_done(to: *mut c_void, done: i64, steps: i64, loss: f64) -> i32 {
    // SAFETY: fit() hands out its Watch, which has no other user meanwhile.
    let watch: &mut Watch = unsafe { user(to) };
    let on_batch = &mut watch.on_batch;
    watch.caught.run(|| on_batch.as_mut().map_or(true, |f| f(done, steps, loss)))
}

unsafe extern "C" fn epoch_done(to: *mut c_void, epoch: *const sys::loom_epoch) -> i32 {
    // SAFETY: fit() hands out its Watch; the epoch is borrowed during the callback.
    let (watch, epoch): (&mut Watch, _) = unsafe { (user(to), Epoch::of(&*epoch)) };
    let on_epoch = &mut watch.on_epoch;
    watch.caught.run(|| on_epoch.as_mut().map_or(true, |f| f(&epoch)))
}

/// Fits the weights of a network, which it borrows; they are up to date after every call.
pub struct Trainer<'n> {
    raw: Owned<sys::loom_trainer>,
    network: &'n mut Network,
}

impl<'n> Trainer<'n> {
    /// Errors: invalid_argument, naming the option.
    pub fn new(network: &'n mut Network, options: &TrainerOptions) -> Result<Self> {
        let kind = c_text("trainer")?;
        // SAFETY: the text lives during the call.
        let named = Owned::from(sys::loom_options_free, |out| unsafe {
            sys::loom_options_new(kind.as_ptr(), out)
        })?;
        for (name, text) in options.texts() {
            let (name, text) = (c_text(name)?, c_text(&text)?);
            // SAFETY: the texts live during the call.
            check(unsafe { sys::loom_options_set(named.get(), name.as_ptr(), text.as_ptr()) })?;
        }
        // SAFETY: the options live during the call, which copies them.
        let raw = Owned::from(sys::loom_trainer_free, |out| unsafe {
            sys::loom_trainer_create_with(network.raw.get(), named.get(), std::ptr::null_mut(), out)
        })?;
        Ok(Trainer { raw, network })
    }

    /// The network as it is now.
    pub fn network(&self) -> &Network {
        self.network
    }

    /// Trains; one entry per epoch. Errors: cancelled (a closure said so; what was trained stays).
    pub fn fit(
        &mut self,
        train: &Dataset,
        validation: Option<&Dataset>,
        options: FitOptions<'_>,
    ) -> Result<Vec<Epoch>> {
        let mut how = sys::loom_fit_options { ..Default::default() };
        how.epochs = options.epochs;
        how.early_stop = options.early_stop;
        how.keep_best = i32::from(options.keep_best);
        let mut watch = Watch {
            on_batch: options.on_batch,
            on_epoch: options.on_epoch,
            caught: Caught::default(),
        };
        if watch.on_batch.is_some() {
            how.on_batch = Some(batch_done);
        }
        if watch.on_epoch.is_some() {
            how.on_epoch = Some(epoch_done);
        }
        how.user = std::ptr::addr_of_mut!(watch).cast();
        let validation = validation.map_or(std::ptr::null(), |data| data.raw.get().cast_const());
        let mut out = std::ptr::null_mut();
        // SAFETY: data, options and `watch` live during the call.
        let status = unsafe {
            sys::loom_trainer_fit(self.raw.get(), train.raw.get(), validation, &how, &mut out)
        };
        watch.caught.check(status)?;
        epochs_of(out)
    }

    /// One update from one batch: x [batch, sample], y as for [`Dataset::new`].
    pub fn step(&mut self, x: &Tensor<'_>, y: &Tensor<'_>) -> Result<Step> {
        // SAFETY: the tensors borrow their memory.
        let found: sys::loom_step_report = report(|out| unsafe {
            sys::loom_trainer_step(self.raw.get(), x.raw(), y.raw(), std::ptr::null(), out)
        })?;
        Ok(Step { loss: found.loss, updated: found.updated != 0 })
    }

    /// Loss, and accuracy or error.
    pub fn evaluate(&mut self, data: &Dataset) -> Result<Evaluation> {
        // SAFETY: the handles are ours.
        let found: sys::loom_evaluation = report(|out| unsafe {
            sys::loom_trainer_evaluate(self.raw.get(), data.raw.get(), out, std::ptr::null_mut())
        })?;
        Ok(Evaluation {
            loss: found.loss,
            samples: found.samples,
            accuracy: (found.has_accuracy != 0).then_some(found.accuracy),
            mean_absolute_error: (found.has_mean_absolute_error != 0)
                .then_some(found.mean_absolute_error),
        })
    }

    /// XXH3-128 of all parameters as float32, in their order.
    pub fn weights_hash(&self) -> Result<String> {
        // SAFETY: the handle is ours.
        taken_text(|out| unsafe { sys::loom_trainer_weights_hash(self.raw.get(), out) })
    }
}

fn epochs_of(history: *mut sys::loom_history) -> Result<Vec<Epoch>> {
    let history = Owned::from(sys::loom_history_free, |out| {
        // SAFETY: `out` is the place of Owned::from().
        unsafe { *out = history };
        sys::LOOM_OK
    })?;
    let mut count = 0;
    // SAFETY: the handle is ours.
    check(unsafe { sys::loom_history_count(history.get(), &mut count) })?;
    (0..count)
        .map(|i| {
            // SAFETY: the size of the struct is set.
            let raw: sys::loom_epoch =
                report(|out| unsafe { sys::loom_history_epoch(history.get(), i, out) })?;
            Ok::<_, Error>(Epoch::of(&raw))
        })
        .collect()
}
