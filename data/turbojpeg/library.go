package turbojpeg

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "library.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// Library is an open library. It may be used concurrently.
type Library struct {
	name      string
	functions *C.struct_gb_turbojpeg
	decoders  sync.Pool
}

const errorSize = 1024

// Open opens the first of these libraries, paths or sonames, that can be opened. It stays open.
func Open(names ...string) (*Library, error) {
	var tried []string
	for _, name := range names {
		l, err := open(name)
		if err == nil {
			return l, nil
		}
		tried = append(tried, err.Error())
	}
	return nil, fmt.Errorf("turbojpeg: %w: %s\ninstall it (Debian: apt-get install libturbojpeg0; Fedora: dnf install turbojpeg), or put its folder in LD_LIBRARY_PATH",
		ErrNoLibrary, strings.Join(tried, "; "))
}

func open(name string) (*Library, error) {
	var text [errorSize]C.char
	l := &Library{name: name, functions: new(C.struct_gb_turbojpeg)}
	cName := C.CString(name)
	defer C.free(unsafe.Pointer(cName))
	if C.gb_turbojpeg_open(l.functions, cName, &text[0], errorSize) != 0 {
		return nil, errors.New(C.GoString(&text[0]))
	}
	return l, nil
}

// Name returns the path or soname of the library.
func (l *Library) Name() string { return l.name }
