package loom

/*
#include <loom.h>
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Element lists the number types that tensors of Go have.
type Element interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// Tensor holds numbers of the caller, one row after the other.
type Tensor struct {
	dtype  DType
	shape  []int64
	data   unsafe.Pointer
	count  int
	keeper any
}

func dtypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return DTypeFloat32
	case float64:
		return DTypeFloat64
	case int8:
		return DTypeInt8
	case int16:
		return DTypeInt16
	case int32:
		return DTypeInt32
	case int64:
		return DTypeInt64
	case uint8:
		return DTypeUint8
	case uint16:
		return DTypeUint16
	case uint32:
		return DTypeUint32
	}
	return DTypeUint64
}

// NewTensor is a view of data; a shape that data does not fill is an error of the call it is for.
func NewTensor[T Element](data []T, shape ...int64) Tensor {
	made := Tensor{dtype: dtypeOf[T](), shape: shape, count: len(data), keeper: data}
	if len(data) > 0 {
		made.data = unsafe.Pointer(&data[0])
	}
	return made
}

// pinned is the tensor as C takes it; its memory stays in place until pins are given back.
func (t Tensor) pinned(pins *runtime.Pinner) (C.loom_tensor, error) {
	count := int64(1)
	for _, extent := range t.shape {
		if extent < 0 || (extent > 0 && count > int64(^uint64(0)>>1)/extent) {
			return C.loom_tensor{}, invalid(fmt.Sprintf("the shape %v is invalid", t.shape))
		}
		count *= extent
	}
	if count != int64(t.count) {
		return C.loom_tensor{}, invalid(fmt.Sprintf("%d numbers do not fill the shape %v", t.count, t.shape))
	}
	raw := C.loom_tensor{dtype: C.loom_dtype(t.dtype), rank: C.int32_t(len(t.shape)), data: t.data}
	if t.data != nil {
		pins.Pin(t.data)
	}
	if len(t.shape) > 0 {
		pins.Pin(&t.shape[0])
		raw.shape = (*C.int64_t)(unsafe.Pointer(&t.shape[0]))
	}
	return raw, nil
}

// Array holds numbers that the library owns.
type Array struct{ *object }

func newArray(function func(out **C.loom_array) C.loom_status) (*Array, error) {
	var out *C.loom_array
	if err := call(func() C.loom_status { return function(&out) }); err != nil {
		return nil, err
	}
	return &Array{own(unsafe.Pointer(out), func(p unsafe.Pointer) { C.loom_array_free((*C.loom_array)(p)) })}, nil
}

func (a *Array) view() (C.loom_tensor, error) {
	var view C.loom_tensor
	err := call(func() C.loom_status { return C.loom_array_view((*C.loom_array)(a.raw()), &view) })
	return view, err
}

// Shape is a copy of the extents.
func (a *Array) Shape() ([]int64, error) {
	view, err := a.view()
	if err != nil || view.rank == 0 {
		return nil, err
	}
	shape := append([]int64(nil), unsafe.Slice((*int64)(unsafe.Pointer(view.shape)), int(view.rank))...)
	runtime.KeepAlive(a)
	return shape, nil
}

// Float32 is a copy of the numbers, which have to be of that type without gaps, as outputs are.
func (a *Array) Float32() ([]float32, error) {
	view, err := a.view()
	if err != nil {
		return nil, err
	}
	if view.dtype != C.LOOM_FLOAT32 || view.strides != nil {
		return nil, invalid(fmt.Sprintf("the array holds %v, not float32 without gaps", DType(view.dtype)))
	}
	count := int64(1)
	for _, extent := range unsafe.Slice((*int64)(unsafe.Pointer(view.shape)), int(view.rank)) {
		count *= extent
	}
	if view.data == nil || count == 0 {
		return nil, nil
	}
	values := append([]float32(nil), unsafe.Slice((*float32)(view.data), int(count))...)
	runtime.KeepAlive(a)
	return values, nil
}
