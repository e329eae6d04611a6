// Package loom runs, trains and asks networks and language models of the engine Loom.
//
// Values of the library are freed by Close, or by the collector. Tensors of the caller are read in
// place, during a call. A call that fails returns an *Error with a code and one line of text. Equal
// calls give the same bits as in C, C++ and Python.
package loom

/*
#cgo LDFLAGS: -lloom
#include <loom.h>
#include <stdlib.h>
*/
import "C"

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// Error is one line: what, where, what to do; and its code.
type Error struct {
	Code    Code
	Message string
}

func (e *Error) Error() string { return e.Message }

func invalid(message string) error { return &Error{CodeInvalidArgument, message} }

// call runs one function of C and reads its error on the same thread.
func call(function func() C.loom_status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if status := function(); status != C.LOOM_OK {
		return &Error{Code(status), C.GoString(C.loom_last_error())}
	}
	return nil
}

// Version is that of the library that runs.
func Version() string { return C.GoString(C.loom_version()) }

func init() {
	if C.loom_abi_version() != abiVersion {
		panic("loom: the library has another interface than this package; take both from one release")
	}
}

// object owns a handle of the library.
type object struct {
	handle atomic.Uintptr
	free   func(unsafe.Pointer)
}

// own takes a handle. The collector frees it if the caller does not close it.
func own(handle unsafe.Pointer, free func(unsafe.Pointer)) *object {
	made := &object{free: free}
	made.handle.Store(uintptr(handle))
	runtime.SetFinalizer(made, (*object).Close)
	return made
}

// Close frees the memory. Closing twice is fine; any other use is an error from now on.
func (o *object) Close() {
	if o == nil {
		return
	}
	if handle := o.handle.Swap(0); handle != 0 {
		runtime.SetFinalizer(o, nil)
		o.free(pointer(handle))
	}
}

// raw is the handle; null, which the library refuses, where it was closed.
func (o *object) raw() unsafe.Pointer {
	if o == nil {
		return nil
	}
	return pointer(o.handle.Load())
}

// pointer makes a handle what C takes: a number of the library's table, never an address.
func pointer(handle uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&handle)) }

// text is a copy for C; free it with C.free.
func text(from string) (*C.char, error) {
	for i := 0; i < len(from); i++ {
		if from[i] == 0 {
			return nil, invalid("a text for Loom cannot hold the character NUL")
		}
	}
	return C.CString(from), nil
}

// takenText calls what hands a text over.
func takenText(function func(out **C.char) C.loom_status) (string, error) {
	var out *C.char
	if err := call(func() C.loom_status { return function(&out) }); err != nil {
		return "", err
	}
	defer C.loom_free(unsafe.Pointer(out))
	return C.GoString(out), nil
}

// takenIDs calls what hands a list of ids over.
func takenIDs(function func(ids **C.int32_t, count *C.int64_t) C.loom_status) ([]int32, error) {
	var ids *C.int32_t
	var count C.int64_t
	if err := call(func() C.loom_status { return function(&ids, &count) }); err != nil {
		return nil, err
	}
	defer C.loom_free(unsafe.Pointer(ids))
	return append([]int32(nil), unsafe.Slice((*int32)(unsafe.Pointer(ids)), int(count))...), nil
}

func flag(value bool) C.int32_t {
	if value {
		return 1
	}
	return 0
}

// EngineOptions: how an engine computes. Zero: all cores, the best instruction set, the CPU.
type EngineOptions struct {
	Threads      int
	ExactThreads bool   // so many also beyond the cores
	ISA          string // "scalar", "avx2", ...; "" means the best one here
	Activations  Activations
	Device       Device
}

// EngineInfo is what an engine is.
type EngineInfo struct {
	Threads, Cores int
	ISA, Device    string
}

// Engine holds threads, instruction set and device. Models and networks keep it alive.
type Engine struct{ *object }

// NewEngine fails where an instruction set or a GPU is asked for that is not here.
func NewEngine(options EngineOptions) (*Engine, error) {
	how := C.loom_engine_options{struct_size: C.sizeof_loom_engine_options}
	how.threads = C.int32_t(options.Threads)
	how.exact_threads = flag(options.ExactThreads)
	how.activations = C.loom_activations(options.Activations)
	how.device = C.loom_device(options.Device)
	if options.ISA != "" {
		isa, err := text(options.ISA)
		if err != nil {
			return nil, err
		}
		defer C.free(unsafe.Pointer(isa))
		how.isa = isa
	}
	var out *C.loom_engine
	if err := call(func() C.loom_status { return C.loom_engine_create(&how, &out) }); err != nil {
		return nil, err
	}
	return &Engine{own(unsafe.Pointer(out), func(p unsafe.Pointer) { C.loom_engine_free((*C.loom_engine)(p)) })}, nil
}

// Info tells threads, instruction set and device.
func (e *Engine) Info() (EngineInfo, error) {
	info := C.loom_engine_info{struct_size: C.sizeof_loom_engine_info}
	err := call(func() C.loom_status { return C.loom_engine_get_info((*C.loom_engine)(e.raw()), &info) })
	runtime.KeepAlive(e)
	return EngineInfo{int(info.threads), int(info.cores), C.GoString(&info.isa[0]), C.GoString(&info.device[0])}, err
}

// rawEngine is null, which means the shared engine, where none is given.
func rawEngine(engine *Engine) *C.loom_engine {
	if engine == nil {
		return nil
	}
	return (*C.loom_engine)(engine.raw())
}
