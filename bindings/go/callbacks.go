package loom

/*
#include <loom.h>
#include <stdlib.h>

int32_t loomGoToken(void *user, loom_token *token);
int32_t loomGoBatch(void *user, int64_t done, int64_t steps, double loss);
int32_t loomGoEpoch(void *user, loom_epoch *epoch);
*/
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

// watch is what C calls back: functions of the caller, and the panic of one of them, which goes on
// once C has returned.
type watch struct {
	onToken  func(Token) bool
	onBatch  func(done, steps int64, loss float64) bool
	onEpoch  func(Epoch) bool
	panicked any
}

// user is memory of C that holds the handle of a watch; done() gives both back.
func (w *watch) user() (unsafe.Pointer, func()) {
	handle := cgo.NewHandle(w)
	memory := C.malloc(C.size_t(unsafe.Sizeof(handle)))
	*(*cgo.Handle)(memory) = handle
	return memory, func() {
		handle.Delete()
		C.free(memory)
	}
}

// check is called after C has returned.
func (w *watch) check(err error) error {
	if w.panicked != nil {
		panic(w.panicked)
	}
	return err
}

// run calls a function of the caller. It returns 0 to continue.
func run(user unsafe.Pointer, function func(*watch) bool) (status C.int32_t) {
	w := (*(*cgo.Handle)(user)).Value().(*watch)
	defer func() {
		if panicked := recover(); panicked != nil {
			w.panicked = panicked
			status = 1
		}
	}()
	if function(w) {
		return 0
	}
	return 1
}

//export loomGoToken
func loomGoToken(user unsafe.Pointer, token *C.loom_token) C.int32_t {
	return run(user, func(w *watch) bool {
		return w.onToken(Token{int32(token.id), C.GoString(token.text), float32(token.logprob)})
	})
}

//export loomGoBatch
func loomGoBatch(user unsafe.Pointer, done, steps C.int64_t, loss C.double) C.int32_t {
	return run(user, func(w *watch) bool { return w.onBatch(int64(done), int64(steps), float64(loss)) })
}

//export loomGoEpoch
func loomGoEpoch(user unsafe.Pointer, epoch *C.loom_epoch) C.int32_t {
	return run(user, func(w *watch) bool { return w.onEpoch(epochOf(epoch)) })
}

// The functions of C that call these; their constness is C's.
func tokenFn() C.loom_token_fn { return C.loom_token_fn(unsafe.Pointer(C.loomGoToken)) }
func batchFn() C.loom_batch_fn { return C.loom_batch_fn(unsafe.Pointer(C.loomGoBatch)) }
func epochFn() C.loom_epoch_fn { return C.loom_epoch_fn(unsafe.Pointer(C.loomGoEpoch)) }
