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

// LoadOptions: how a network is made or read.
type LoadOptions struct {
	Engine *Engine // nil: the shared one
	Seed   *uint64 // of weights that the file does not have; nil: 1
}

// NetworkInfo is what a network is. Shapes are those of one sample.
type NetworkInfo struct {
	Input, Output      []int64
	Layers, Parameters int64
	DType              DType
	Loss               string // that it was trained with; "" if it was not trained
}

// Network: layers with their weights. Training changes it; sessions keep the weights that it had when
// they were made.
type Network struct{ *object }

func (options LoadOptions) raw() C.loom_load_options {
	how := C.loom_load_options{struct_size: C.sizeof_loom_load_options}
	if options.Seed != nil {
		how.has_seed, how.seed = 1, C.uint64_t(*options.Seed)
	}
	return how
}

func newNetwork(function func(out **C.loom_network) C.loom_status) (*Network, error) {
	var out *C.loom_network
	if err := call(func() C.loom_status { return function(&out) }); err != nil {
		return nil, err
	}
	return &Network{own(unsafe.Pointer(out), func(p unsafe.Pointer) { C.loom_network_free((*C.loom_network)(p)) })}, nil
}

// NetworkFromJSON makes a network of a description, as JSON gives it.
func NetworkFromJSON(json string, options LoadOptions) (*Network, error) {
	words, err := text(json)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(words))
	how := options.raw()
	defer runtime.KeepAlive(options.Engine)
	return newNetwork(func(out **C.loom_network) C.loom_status {
		return C.loom_network_from_json(rawEngine(options.Engine), words, &how, out)
	})
}

// LoadNetwork reads .entity, .json, .onnx, .npz or .safetensors.
func LoadNetwork(path string, options LoadOptions) (*Network, error) {
	words, err := text(path)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(words))
	how := options.raw()
	defer runtime.KeepAlive(options.Engine)
	return newNetwork(func(out **C.loom_network) C.loom_status {
		return C.loom_network_load(rawEngine(options.Engine), words, &how, out)
	})
}

// Save writes the format of the ending.
func (n *Network) Save(path string) error {
	words, err := text(path)
	if err != nil {
		return err
	}
	defer C.free(unsafe.Pointer(words))
	defer runtime.KeepAlive(n)
	return call(func() C.loom_status { return C.loom_network_save(n.c(), words, nil) })
}

func (n *Network) c() *C.loom_network {
	if n == nil {
		return nil
	}
	return (*C.loom_network)(n.raw())
}

// JSON is the description, without weights.
func (n *Network) JSON() (string, error) {
	defer runtime.KeepAlive(n)
	return takenText(func(out **C.char) C.loom_status { return C.loom_network_json(n.c(), out) })
}

// Summary is a table for people.
func (n *Network) Summary() (string, error) {
	defer runtime.KeepAlive(n)
	return takenText(func(out **C.char) C.loom_status { return C.loom_network_summary(n.c(), out) })
}

func extents(from *C.int64_t, rank C.int32_t) []int64 {
	return append([]int64(nil), unsafe.Slice((*int64)(unsafe.Pointer(from)), int(rank))...)
}

// Info tells shapes, sizes and the number type.
func (n *Network) Info() (NetworkInfo, error) {
	defer runtime.KeepAlive(n)
	info := C.loom_network_info{struct_size: C.sizeof_loom_network_info}
	if err := call(func() C.loom_status { return C.loom_network_get_info(n.c(), &info) }); err != nil {
		return NetworkInfo{}, err
	}
	return NetworkInfo{
		Input: extents(&info.input[0], info.input_rank), Output: extents(&info.output[0], info.output_rank),
		Layers: int64(info.layers), Parameters: int64(info.parameters), DType: DType(info.dtype),
		Loss: C.GoString(&info.loss[0]),
	}, nil
}

// Predict gives float32 outputs [n, ...] of inputs [n, ...].
func (n *Network) Predict(inputs Tensor) (*Array, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	defer runtime.KeepAlive(n)
	x, err := inputs.pinned(&pins)
	if err != nil {
		return nil, err
	}
	return newArray(func(out **C.loom_array) C.loom_status { return C.loom_network_predict(n.c(), &x, out) })
}

// Parameter gives values of a parameter as float32.
func (n *Network) Parameter(name string) (*Array, error) {
	words, err := text(name)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(words))
	defer runtime.KeepAlive(n)
	return newArray(func(out **C.loom_array) C.loom_status { return C.loom_network_parameter(n.c(), words, out) })
}

// SessionOptions: how a network is run.
type SessionOptions struct {
	MaxBatch         int64 // samples computed at a time; changes speed, never bits; 0 means 1
	FloatActivations bool  // inputs of integer weights are never rounded to 8 bits
	Stateful         bool  // each call goes on where the one before ended
	MaxSteps         int64 // stateful: steps that caches hold; 0 means those of one input
}

// Session runs a network, from one goroutine at a time.
type Session struct{ *object }

// Session takes all memory a run needs.
func (n *Network) Session(options SessionOptions) (*Session, error) {
	defer runtime.KeepAlive(n)
	how := C.loom_session_options{struct_size: C.sizeof_loom_session_options}
	how.max_batch = C.int64_t(options.MaxBatch)
	how.float_activations = flag(options.FloatActivations)
	how.stateful = flag(options.Stateful)
	how.max_steps = C.int64_t(options.MaxSteps)
	var out *C.loom_session
	if err := call(func() C.loom_status { return C.loom_network_session(n.c(), &how, &out) }); err != nil {
		return nil, err
	}
	return &Session{own(unsafe.Pointer(out), func(p unsafe.Pointer) { C.loom_session_free((*C.loom_session)(p)) })}, nil
}

// Run gives float32 outputs [n, ...] of inputs [n, ...].
func (s *Session) Run(inputs Tensor) (*Array, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	defer runtime.KeepAlive(s)
	x, err := inputs.pinned(&pins)
	if err != nil {
		return nil, err
	}
	return newArray(func(out **C.loom_array) C.loom_status {
		return C.loom_session_run((*C.loom_session)(s.raw()), &x, out)
	})
}

// RunInto is the same into memory of the caller, of the shape that the outputs have.
func (s *Session) RunInto(inputs, outputs Tensor) error {
	var pins runtime.Pinner
	defer pins.Unpin()
	defer runtime.KeepAlive(s)
	x, err := inputs.pinned(&pins)
	if err != nil {
		return err
	}
	y, err := outputs.pinned(&pins)
	if err != nil {
		return err
	}
	return call(func() C.loom_status { return C.loom_session_run_into((*C.loom_session)(s.raw()), &x, &y) })
}

// Reset begins new streams.
func (s *Session) Reset() error {
	defer runtime.KeepAlive(s)
	return call(func() C.loom_status { return C.loom_session_reset((*C.loom_session)(s.raw())) })
}
