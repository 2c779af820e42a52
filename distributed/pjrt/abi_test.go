package pjrt

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestABI compiles abi.h beside the PJRT header that go-xla ships, and lets the C compiler compare
// the layouts.
func TestABI(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gomlx/go-xla").Output()
	if err != nil {
		t.Fatalf("find go-xla: %v", err)
	}
	header := filepath.Join(strings.TrimSpace(string(out)), "pjrt")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "abi.c")
	if err := os.WriteFile(source, []byte(abiProgram), 0o644); err != nil {
		t.Fatal(err)
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	if out, err := exec.Command(cc, "-fsyntax-only", "-I", header, "-I", here, source).CombinedOutput(); err != nil {
		t.Errorf("the layouts differ: %v\n%s", err, out)
	}
}

const abiProgram = `
#include <stdbool.h>
#include "pjrt_c_api.h"
#include "abi.h"

#define SAME(ours, theirs) _Static_assert(ours == theirs, #ours " is not " #theirs)
#define FIELD(our, field, their, name) SAME(offsetof(our, field), offsetof(their, name))
#define FUNCTION(index, name) SAME(offsetof(gb_pjrt_api, function) + index * sizeof(void *), offsetof(PJRT_Api, name))

SAME(GB_PJRT_EXTENSION_FFI, PJRT_Extension_Type_FFI);
FUNCTION(GB_PJRT_ERROR_DESTROY, PJRT_Error_Destroy);
FUNCTION(GB_PJRT_ERROR_MESSAGE, PJRT_Error_Message);
FUNCTION(GB_PJRT_ERROR_GET_CODE, PJRT_Error_GetCode);
SAME(GB_PJRT_FAILED_PRECONDITION, PJRT_Error_Code_FAILED_PRECONDITION);
FIELD(gb_pjrt_error_code_args, code, PJRT_Error_GetCode_Args, code);
FUNCTION(GB_PJRT_CLIENT_COMPILE, PJRT_Client_Compile);
FIELD(gb_pjrt_api, extension_start, PJRT_Api, extension_start);
FIELD(gb_pjrt_api, version, PJRT_Api, pjrt_api_version);
SAME(sizeof(gb_pjrt_version), sizeof(PJRT_Api_Version));
FIELD(gb_pjrt_version, minor_version, PJRT_Api_Version, minor_version);
SAME(sizeof(gb_pjrt_extension), sizeof(PJRT_Extension_Base));
FIELD(gb_pjrt_extension, next, PJRT_Extension_Base, next);
SAME(sizeof(gb_pjrt_program), sizeof(PJRT_Program));
FIELD(gb_pjrt_program, code, PJRT_Program, code);
FIELD(gb_pjrt_program, format_size, PJRT_Program, format_size);
SAME(sizeof(gb_pjrt_compile_args), sizeof(PJRT_Client_Compile_Args));
FIELD(gb_pjrt_compile_args, program, PJRT_Client_Compile_Args, program);
FIELD(gb_pjrt_compile_args, executable, PJRT_Client_Compile_Args, executable);
SAME(sizeof(gb_pjrt_error_message_args), sizeof(PJRT_Error_Message_Args));
FIELD(gb_pjrt_error_message_args, message_size, PJRT_Error_Message_Args, message_size);
SAME(sizeof(gb_pjrt_error_destroy_args), sizeof(PJRT_Error_Destroy_Args));
`
