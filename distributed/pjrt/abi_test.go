package pjrt

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
)

// TestABI compiles abi.h with the PJRT header that go-xla ships, and lets the C compiler compare
// the layouts.
func TestABI(t *testing.T) {
	out, err := bounded.Output(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gomlx/go-xla"))
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
	if out, err := bounded.CombinedOutput(exec.Command(cc, "-fsyntax-only", "-I", header, "-I", here, source)); err != nil {
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
FUNCTION(GB_PJRT_CLIENT_PLATFORM_NAME, PJRT_Client_PlatformName);
FUNCTION(GB_PJRT_CLIENT_PLATFORM_VERSION, PJRT_Client_PlatformVersion);
FUNCTION(GB_PJRT_CLIENT_ADDRESSABLE_DEVICES, PJRT_Client_AddressableDevices);
FUNCTION(GB_PJRT_DEVICE_DESCRIPTION_KIND, PJRT_DeviceDescription_Kind);
FUNCTION(GB_PJRT_DEVICE_GET_DESCRIPTION, PJRT_Device_GetDescription);
FUNCTION(GB_PJRT_EXECUTABLE_DESTROY, PJRT_Executable_Destroy);
FUNCTION(GB_PJRT_EXECUTABLE_SERIALIZE, PJRT_Executable_Serialize);
FUNCTION(GB_PJRT_LOADED_EXECUTABLE_GET_EXECUTABLE, PJRT_LoadedExecutable_GetExecutable);
FUNCTION(GB_PJRT_EXECUTABLE_DESERIALIZE_AND_LOAD, PJRT_Executable_DeserializeAndLoad);
FIELD(gb_pjrt_text_args, text, PJRT_Client_PlatformName_Args, platform_name);
FIELD(gb_pjrt_text_args, text_size, PJRT_Client_PlatformName_Args, platform_name_size);
FIELD(gb_pjrt_text_args, text, PJRT_Client_PlatformVersion_Args, platform_version);
FIELD(gb_pjrt_text_args, text_size, PJRT_Client_PlatformVersion_Args, platform_version_size);
FIELD(gb_pjrt_addressable_devices_args, devices, PJRT_Client_AddressableDevices_Args, addressable_devices);
FIELD(gb_pjrt_addressable_devices_args, num_devices, PJRT_Client_AddressableDevices_Args, num_addressable_devices);
FIELD(gb_pjrt_part_args, part, PJRT_Device_GetDescription_Args, device_description);
FIELD(gb_pjrt_text_args, text, PJRT_DeviceDescription_Kind_Args, device_kind);
FIELD(gb_pjrt_text_args, text_size, PJRT_DeviceDescription_Kind_Args, device_kind_size);
FIELD(gb_pjrt_part_args, part, PJRT_LoadedExecutable_GetExecutable_Args, executable);
FIELD(gb_pjrt_handle_args, handle, PJRT_Executable_Destroy_Args, executable);
FIELD(gb_pjrt_serialize_args, bytes, PJRT_Executable_Serialize_Args, serialized_bytes);
FIELD(gb_pjrt_serialize_args, bytes_size, PJRT_Executable_Serialize_Args, serialized_bytes_size);
FIELD(gb_pjrt_serialize_args, owner, PJRT_Executable_Serialize_Args, serialized_executable);
FIELD(gb_pjrt_serialize_args, delete_owner, PJRT_Executable_Serialize_Args, serialized_executable_deleter);
FIELD(gb_pjrt_deserialize_args, bytes, PJRT_Executable_DeserializeAndLoad_Args, serialized_executable);
FIELD(gb_pjrt_deserialize_args, bytes_size, PJRT_Executable_DeserializeAndLoad_Args, serialized_executable_size);
FIELD(gb_pjrt_deserialize_args, loaded_executable, PJRT_Executable_DeserializeAndLoad_Args, loaded_executable);
FIELD(gb_pjrt_deserialize_args, compile_options, PJRT_Executable_DeserializeAndLoad_Args, overridden_serialized_compile_options);
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
FUNCTION(GB_PJRT_DEVICE_MEMORY_STATS, PJRT_Device_MemoryStats);
SAME(sizeof(gb_pjrt_memory_stats_args), sizeof(PJRT_Device_MemoryStats_Args));
FIELD(gb_pjrt_memory_stats_args, device, PJRT_Device_MemoryStats_Args, device);
FIELD(gb_pjrt_memory_stats_args, peak_in_use, PJRT_Device_MemoryStats_Args, peak_bytes_in_use);
FIELD(gb_pjrt_memory_stats_args, peak_in_use.is_set, PJRT_Device_MemoryStats_Args, peak_bytes_in_use_is_set);
FIELD(gb_pjrt_memory_stats_args, limit, PJRT_Device_MemoryStats_Args, bytes_limit);
FIELD(gb_pjrt_memory_stats_args, limit.is_set, PJRT_Device_MemoryStats_Args, bytes_limit_is_set);
FUNCTION(GB_PJRT_EVENT_AWAIT, PJRT_Event_Await);
FUNCTION(GB_PJRT_CLIENT_CREATE, PJRT_Client_Create);
FUNCTION(GB_PJRT_CLIENT_DESTROY, PJRT_Client_Destroy);
FUNCTION(GB_PJRT_CLIENT_DEVICES, PJRT_Client_Devices);
FUNCTION(GB_PJRT_DEVICE_DESCRIPTION_ID, PJRT_DeviceDescription_Id);
FUNCTION(GB_PJRT_DEVICE_DESCRIPTION_PROCESS_INDEX, PJRT_DeviceDescription_ProcessIndex);
FUNCTION(GB_PJRT_LOADED_EXECUTABLE_DESTROY, PJRT_LoadedExecutable_Destroy);
FUNCTION(GB_PJRT_LOADED_EXECUTABLE_EXECUTE, PJRT_LoadedExecutable_Execute);
SAME(GB_PJRT_CANCELLED, PJRT_Error_Code_CANCELLED);
SAME(GB_PJRT_INVALID_ARGUMENT, PJRT_Error_Code_INVALID_ARGUMENT);
SAME(GB_PJRT_DEADLINE_EXCEEDED, PJRT_Error_Code_DEADLINE_EXCEEDED);
SAME(GB_PJRT_NOT_FOUND, PJRT_Error_Code_NOT_FOUND);
SAME(GB_PJRT_ALREADY_EXISTS, PJRT_Error_Code_ALREADY_EXISTS);
SAME(GB_PJRT_UNAVAILABLE, PJRT_Error_Code_UNAVAILABLE);
SAME(sizeof(gb_pjrt_named_value), sizeof(PJRT_NamedValue));
FIELD(gb_pjrt_named_value, name_size, PJRT_NamedValue, name_size);
FIELD(gb_pjrt_named_value, type, PJRT_NamedValue, type);
FIELD(gb_pjrt_named_value, int64_value, PJRT_NamedValue, int64_value);
FIELD(gb_pjrt_named_value, value_size, PJRT_NamedValue, value_size);
SAME(sizeof(gb_pjrt_callback_error), sizeof(PJRT_CallbackError));
SAME(sizeof(gb_pjrt_key_value_get_args), sizeof(PJRT_KeyValueGetCallback_Args));
FIELD(gb_pjrt_key_value_get_args, key_size, PJRT_KeyValueGetCallback_Args, key_size);
FIELD(gb_pjrt_key_value_get_args, timeout_in_ms, PJRT_KeyValueGetCallback_Args, timeout_in_ms);
FIELD(gb_pjrt_key_value_get_args, callback_error, PJRT_KeyValueGetCallback_Args, callback_error);
FIELD(gb_pjrt_key_value_get_args, value_size, PJRT_KeyValueGetCallback_Args, value_size);
FIELD(gb_pjrt_key_value_get_args, delete_value, PJRT_KeyValueGetCallback_Args, value_deleter_callback);
SAME(sizeof(gb_pjrt_key_value_try_get_args), sizeof(PJRT_KeyValueTryGetCallback_Args));
FIELD(gb_pjrt_key_value_try_get_args, callback_error, PJRT_KeyValueTryGetCallback_Args, callback_error);
FIELD(gb_pjrt_key_value_try_get_args, value_size, PJRT_KeyValueTryGetCallback_Args, value_size);
FIELD(gb_pjrt_key_value_try_get_args, delete_value, PJRT_KeyValueTryGetCallback_Args, value_deleter_callback);
SAME(sizeof(gb_pjrt_key_value_put_args), sizeof(PJRT_KeyValuePutCallback_Args));
FIELD(gb_pjrt_key_value_put_args, value_size, PJRT_KeyValuePutCallback_Args, value_size);
FIELD(gb_pjrt_key_value_put_args, callback_error, PJRT_KeyValuePutCallback_Args, callback_error);
SAME(sizeof(gb_pjrt_client_create_args), sizeof(PJRT_Client_Create_Args));
FIELD(gb_pjrt_client_create_args, num_options, PJRT_Client_Create_Args, num_options);
FIELD(gb_pjrt_client_create_args, get, PJRT_Client_Create_Args, kv_get_callback);
FIELD(gb_pjrt_client_create_args, put, PJRT_Client_Create_Args, kv_put_callback);
FIELD(gb_pjrt_client_create_args, client, PJRT_Client_Create_Args, client);
FIELD(gb_pjrt_client_create_args, try_get, PJRT_Client_Create_Args, kv_try_get_callback);
FIELD(gb_pjrt_handle_args, handle, PJRT_Client_Destroy_Args, client);
FIELD(gb_pjrt_addressable_devices_args, devices, PJRT_Client_Devices_Args, devices);
FIELD(gb_pjrt_addressable_devices_args, num_devices, PJRT_Client_Devices_Args, num_devices);
FIELD(gb_pjrt_description_number_args, number, PJRT_DeviceDescription_Id_Args, id);
FIELD(gb_pjrt_description_number_args, number, PJRT_DeviceDescription_ProcessIndex_Args, process_index);
FIELD(gb_pjrt_handle_args, handle, PJRT_LoadedExecutable_Destroy_Args, executable);
FIELD(gb_pjrt_handle_args, handle, PJRT_Event_Await_Args, event);
SAME(sizeof(gb_pjrt_execute_args), sizeof(PJRT_LoadedExecutable_Execute_Args));
FIELD(gb_pjrt_execute_args, executable, PJRT_LoadedExecutable_Execute_Args, executable);
FIELD(gb_pjrt_execute_args, num_devices, PJRT_LoadedExecutable_Execute_Args, num_devices);
FIELD(gb_pjrt_execute_args, complete_events, PJRT_LoadedExecutable_Execute_Args, device_complete_events);
SAME(sizeof(gb_pjrt_error_destroy_args), sizeof(PJRT_Error_Destroy_Args));
FUNCTION(GB_PJRT_PLUGIN_INITIALIZE, PJRT_Plugin_Initialize);
FUNCTION(GB_PJRT_EXECUTABLE_OPTIMIZED, PJRT_Executable_OptimizedProgram);
FUNCTION(GB_PJRT_TOPOLOGY_CREATE, PJRT_TopologyDescription_Create);
FUNCTION(GB_PJRT_TOPOLOGY_DESTROY, PJRT_TopologyDescription_Destroy);
FUNCTION(GB_PJRT_COMPILE, PJRT_Compile);
FUNCTION(GB_PJRT_EXECUTABLE_MEMORY, PJRT_Executable_GetCompiledMemoryStats);
SAME(GB_PJRT_STRING, PJRT_NamedValue_kString);
SAME(sizeof(gb_pjrt_initialize_args), sizeof(PJRT_Plugin_Initialize_Args));
SAME(sizeof(gb_pjrt_topology_args), sizeof(PJRT_TopologyDescription_Create_Args));
FIELD(gb_pjrt_topology_args, options, PJRT_TopologyDescription_Create_Args, create_options);
FIELD(gb_pjrt_topology_args, topology, PJRT_TopologyDescription_Create_Args, topology);
SAME(sizeof(gb_pjrt_handle_args), sizeof(PJRT_TopologyDescription_Destroy_Args));
FIELD(gb_pjrt_handle_args, handle, PJRT_TopologyDescription_Destroy_Args, topology);
SAME(sizeof(gb_pjrt_topology_compile_args), sizeof(PJRT_Compile_Args));
FIELD(gb_pjrt_topology_compile_args, program, PJRT_Compile_Args, program);
FIELD(gb_pjrt_topology_compile_args, options_size, PJRT_Compile_Args, compile_options_size);
FIELD(gb_pjrt_topology_compile_args, executable, PJRT_Compile_Args, executable);
SAME(sizeof(gb_pjrt_memory_args), sizeof(PJRT_Executable_GetCompiledMemoryStats_Args));
FIELD(gb_pjrt_memory_args, code, PJRT_Executable_GetCompiledMemoryStats_Args, generated_code_size_in_bytes);
FIELD(gb_pjrt_memory_args, arguments, PJRT_Executable_GetCompiledMemoryStats_Args, argument_size_in_bytes);
FIELD(gb_pjrt_memory_args, outputs, PJRT_Executable_GetCompiledMemoryStats_Args, output_size_in_bytes);
FIELD(gb_pjrt_memory_args, aliased, PJRT_Executable_GetCompiledMemoryStats_Args, alias_size_in_bytes);
FIELD(gb_pjrt_memory_args, temporary, PJRT_Executable_GetCompiledMemoryStats_Args, temp_size_in_bytes);
SAME(sizeof(gb_pjrt_optimized_args), sizeof(PJRT_Executable_OptimizedProgram_Args));
FIELD(gb_pjrt_optimized_args, program, PJRT_Executable_OptimizedProgram_Args, program);
`
