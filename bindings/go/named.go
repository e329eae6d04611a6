package loom

// Options by name: each value as a text.

/*
#include <stdlib.h>
#include <loom.h>
*/
import "C"

import (
	"fmt"
	"sort"
	"strings"
	"unsafe"
)

// namedOptions makes options of that kind, which the caller frees; texts sets each that is not the default.
func namedOptions(kind string, texts func(set func(name, text string))) (*C.loom_options, error) {
	word := C.CString(kind)
	defer C.free(unsafe.Pointer(word))
	var out *C.loom_options
	err := call(func() C.loom_status { return C.loom_options_new(word, &out) })
	if err != nil {
		return nil, err
	}
	texts(func(name, text string) {
		if err != nil {
			return
		}
		first, second := C.CString(name), C.CString(text)
		defer C.free(unsafe.Pointer(first))
		defer C.free(unsafe.Pointer(second))
		err = call(func() C.loom_status { return C.loom_options_set(out, first, second) })
	})
	if err != nil {
		C.loom_options_free(out)
		return nil, err
	}
	return out, nil
}

func numbersText[T int64 | float32](values []T) string {
	items := make([]string, len(values))
	for i, value := range values {
		items[i] = fmt.Sprint(value)
	}
	return strings.Join(items, ",")
}

func textsText(values []string) string {
	items := make([]string, len(values))
	for i, value := range values {
		items[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// ratesText has the patterns in their order as texts: of several that match, the last counts.
func ratesText(values map[string]float64) string {
	items := make([]string, 0, len(values))
	for pattern, factor := range values {
		items = append(items, fmt.Sprintf("%s=%v", pattern, factor))
	}
	sort.Strings(items)
	return textsText(items)
}
