package plugin_test

import (
	"fmt"

	"gonbatch/internal/plugin"
)

func ExampleFileName() {
	fmt.Println(plugin.FileName(plugin.CPU))
	// Output: pjrt_c_api_cpu_plugin.so
}
