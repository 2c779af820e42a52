//go:build !(linux && amd64)

package plugin

import (
	"context"
	"fmt"
	"runtime"
)

func getNvidia(context.Context, string, Options) error {
	return fmt.Errorf("there is no CUDA plugin for %s/%s; set GONBATCH_PLATFORM=cpu", runtime.GOOS, runtime.GOARCH)
}
