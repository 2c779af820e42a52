// The test plugin's own errors, besides those of the CPU plugin.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

static const char tag;

typedef struct {
  const char *tag;  // &tag. The first word of the CPU plugin's errors is different.
  PJRT_Error_Code code;
  char text[1024];
} own;

static own *as_own(const PJRT_Error *error) {
  own *o = (own *)error;
  return o != NULL && o->tag == &tag ? o : NULL;
}

PJRT_Error *failed(PJRT_Error_Code code, const char *format, ...) {
  own *o = calloc(1, sizeof *o);
  o->tag = &tag;
  o->code = code;
  va_list args;
  va_start(args, format);
  vsnprintf(o->text, sizeof o->text, format, args);
  va_end(args);
  return (PJRT_Error *)o;
}

PJRT_Error *callback_error(PJRT_Error_Code code, const char *message, size_t size) {
  return failed(code, "%.*s", (int)size, message);
}

static void destroy(PJRT_Error_Destroy_Args *args) {
  if (as_own(args->error) != NULL)
    free(args->error);
  else
    cpu->PJRT_Error_Destroy(args);
}

static void message(PJRT_Error_Message_Args *args) {
  own *o = as_own(args->error);
  if (o == NULL) {
    cpu->PJRT_Error_Message(args);
    return;
  }
  args->message = o->text;
  args->message_size = strlen(o->text);
}

static PJRT_Error *get_code(PJRT_Error_GetCode_Args *args) {
  own *o = as_own(args->error);
  if (o == NULL) return cpu->PJRT_Error_GetCode(args);
  args->code = o->code;
  return NULL;
}

PJRT_Error_Code code_of(PJRT_Error *error) {
  own *o = as_own(error);
  return error == NULL ? PJRT_Error_Code_OK : o == NULL ? PJRT_Error_Code_UNKNOWN : o->code;
}

void drop(PJRT_Error *error) {
  PJRT_Error_Destroy_Args args = {.struct_size = PJRT_Error_Destroy_Args_STRUCT_SIZE, .error = error};
  if (error != NULL) destroy(&args);
}

void wrap_errors(PJRT_Api *api) {
  api->PJRT_Error_Destroy = destroy;
  api->PJRT_Error_Message = message;
  api->PJRT_Error_GetCode = get_code;
}
