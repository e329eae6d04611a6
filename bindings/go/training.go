package loom

/*
#include <loom.h>
#include <stdlib.h>
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// Dataset holds samples in memory, which never change.
type Dataset struct{ *object }

func newDataset(out *C.loom_dataset) *Dataset {
	return &Dataset{own(unsafe.Pointer(out), func(p unsafe.Pointer) { C.loom_dataset_free((*C.loom_dataset)(p)) })}
}

// NewDataset copies x [n, sample] and y: class labels as integers, [n], or targets as floats, [n, outputs].
func NewDataset(x, y Tensor) (*Dataset, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	rawX, err := x.pinned(&pins)
	if err != nil {
		return nil, err
	}
	rawY, err := y.pinned(&pins)
	if err != nil {
		return nil, err
	}
	var out *C.loom_dataset
	if err := call(func() C.loom_status { return C.loom_dataset_from_arrays(&rawX, &rawY, &out) }); err != nil {
		return nil, err
	}
	return newDataset(out), nil
}

// LoadDataset reads .csv, .npz, .npy, .safetensors or .idx as network takes its inputs.
func LoadDataset(path string, network *Network) (*Dataset, error) {
	words, err := text(path)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(words))
	defer runtime.KeepAlive(network)
	var out *C.loom_dataset
	err = call(func() C.loom_status { return C.loom_dataset_from_file(words, network.c(), nil, &out) })
	if err != nil {
		return nil, err
	}
	return newDataset(out), nil
}

func (d *Dataset) c() *C.loom_dataset {
	if d == nil {
		return nil
	}
	return (*C.loom_dataset)(d.raw())
}

// Samples tells how many there are.
func (d *Dataset) Samples() (int64, error) {
	defer runtime.KeepAlive(d)
	info := C.loom_dataset_info{struct_size: C.sizeof_loom_dataset_info}
	err := call(func() C.loom_status { return C.loom_dataset_get_info(d.c(), &info) })
	return int64(info.samples), err
}

// Epoch is one that is done.
type Epoch struct {
	Number             int64 // from 1
	TrainLoss          float64
	HasValidation      bool
	ValidationLoss     float64
	ValidationAccuracy float64 // 0 without labels
	Best               bool    // the least loss so far
}

func epochOf(raw *C.loom_epoch) Epoch {
	return Epoch{
		Number: int64(raw.number), TrainLoss: float64(raw.train_loss),
		HasValidation: raw.has_validation != 0, ValidationLoss: float64(raw.validation_loss),
		ValidationAccuracy: float64(raw.validation_accuracy), Best: raw.best != 0,
	}
}

// Step is what a training step gave.
type Step struct {
	Loss    float64
	Updated bool // false: gradients are being added up, or were not finite and were dropped
}

// Evaluation tells how well a network does.
type Evaluation struct {
	Loss                 float64
	Samples              int64
	HasAccuracy          bool
	Accuracy             float64
	HasMeanAbsoluteError bool
	MeanAbsoluteError    float64
}

// FitOptions: how long a fit goes on, and who looks on. A function that returns false ends it as
// CodeCancelled.
type FitOptions struct {
	Epochs    int64 // the total; 0 means 10
	EarlyStop int64 // epochs without a better loss; 0 disables it
	KeepBest  bool
	OnBatch   func(done, steps int64, loss float64) bool
	OnEpoch   func(Epoch) bool
}

// Trainer fits the weights of a network, from one goroutine at a time.
type Trainer struct {
	*object
	network *Network
}

// Trainer changes the network, whose weights are up to date after every call.
func (n *Network) Trainer(options TrainerOptions) (*Trainer, error) {
	defer runtime.KeepAlive(n)
	named, err := namedOptions("trainer", options.texts)
	if err != nil {
		return nil, err
	}
	defer C.loom_options_free(named)
	var out *C.loom_trainer
	if err := call(func() C.loom_status { return C.loom_trainer_create_with(n.c(), named, nil, &out) }); err != nil {
		return nil, err
	}
	free := func(p unsafe.Pointer) { C.loom_trainer_free((*C.loom_trainer)(p)) }
	return &Trainer{own(unsafe.Pointer(out), free), n}, nil
}

func (t *Trainer) c() *C.loom_trainer {
	if t == nil {
		return nil
	}
	return (*C.loom_trainer)(t.raw())
}

// Fit trains; one entry per epoch. validation may be nil.
func (t *Trainer) Fit(train, validation *Dataset, options FitOptions) ([]Epoch, error) {
	defer runtime.KeepAlive([]any{t, train, validation})
	how := C.loom_fit_options{struct_size: C.sizeof_loom_fit_options}
	how.epochs = C.int64_t(options.Epochs)
	how.early_stop = C.int64_t(options.EarlyStop)
	how.keep_best = flag(options.KeepBest)
	w := &watch{onBatch: options.OnBatch, onEpoch: options.OnEpoch}
	user, done := w.user()
	defer done()
	how.user = user
	if options.OnBatch != nil {
		how.on_batch = batchFn()
	}
	if options.OnEpoch != nil {
		how.on_epoch = epochFn()
	}
	var out *C.loom_history
	err := w.check(call(func() C.loom_status {
		return C.loom_trainer_fit(t.c(), train.c(), validation.c(), &how, &out)
	}))
	if err != nil {
		return nil, err
	}
	defer C.loom_history_free(out)
	return epochsOf(out)
}

func epochsOf(history *C.loom_history) ([]Epoch, error) {
	var count C.int64_t
	if err := call(func() C.loom_status { return C.loom_history_count(history, &count) }); err != nil {
		return nil, err
	}
	epochs := make([]Epoch, 0, int(count))
	for i := C.int64_t(0); i < count; i++ {
		raw := C.loom_epoch{struct_size: C.sizeof_loom_epoch}
		if err := call(func() C.loom_status { return C.loom_history_epoch(history, i, &raw) }); err != nil {
			return nil, err
		}
		epochs = append(epochs, epochOf(&raw))
	}
	return epochs, nil
}

// Step is one update from one batch: x [batch, sample], y as for NewDataset.
func (t *Trainer) Step(x, y Tensor) (Step, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	defer runtime.KeepAlive(t)
	rawX, err := x.pinned(&pins)
	if err != nil {
		return Step{}, err
	}
	rawY, err := y.pinned(&pins)
	if err != nil {
		return Step{}, err
	}
	out := C.loom_step_report{struct_size: C.sizeof_loom_step_report}
	err = call(func() C.loom_status { return C.loom_trainer_step(t.c(), &rawX, &rawY, nil, &out) })
	return Step{float64(out.loss), out.updated != 0}, err
}

// Evaluate tells loss, and accuracy or error.
func (t *Trainer) Evaluate(data *Dataset) (Evaluation, error) {
	defer runtime.KeepAlive([]any{t, data})
	out := C.loom_evaluation{struct_size: C.sizeof_loom_evaluation}
	err := call(func() C.loom_status { return C.loom_trainer_evaluate(t.c(), data.c(), &out, nil) })
	return Evaluation{
		Loss: float64(out.loss), Samples: int64(out.samples),
		HasAccuracy: out.has_accuracy != 0, Accuracy: float64(out.accuracy),
		HasMeanAbsoluteError: out.has_mean_absolute_error != 0,
		MeanAbsoluteError:    float64(out.mean_absolute_error),
	}, err
}

// WeightsHash is XXH3-128 of all parameters as float32, in their order.
func (t *Trainer) WeightsHash() (string, error) {
	defer runtime.KeepAlive(t)
	return takenText(func(out **C.char) C.loom_status { return C.loom_trainer_weights_hash(t.c(), out) })
}
