// The collectives between the processes. Like NCCL's cliques, each collective of a program has its
// own connections: process 0 listens, publishes its address in the key-value store, and puts
// together what the others send.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi.h"
#include "frame.h"
#include "plugin.h"

enum { MAX_CLIQUES = 64, CLIQUE_LIMIT = 10 * 60 * 1000 };

typedef struct {
  pthread_mutex_t lock;
  int *sockets;  // By rank on process 0; only that of process 0 on others.
} clique;

static clique cliques[MAX_CLIQUES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_locks(void) {
  for (int i = 0; i < MAX_CLIQUES; i++) pthread_mutex_init(&cliques[i].lock, NULL);
}

// wait_forever imitates NCCL after the end of a process.
static void wait_forever(void) {
  for (;;) pause();
}

static void transfer(int socket, void *data, size_t size, ssize_t (*move)(int, void *, size_t)) {
  for (char *at = data; size > 0;) {
    ssize_t n = move(socket, at, size);
    if (n <= 0) wait_forever();
    at += n;
    size -= (size_t)n;
  }
}

static ssize_t send_some(int socket, void *data, size_t size) { return send(socket, data, size, MSG_NOSIGNAL); }
static ssize_t receive_some(int socket, void *data, size_t size) { return recv(socket, data, size, 0); }

// place is where process 0 listens.
typedef struct {
  struct sockaddr_in at;
  ino_t network;  // The number of its network namespace.
} place;

static ino_t network(void) {
  struct stat namespace;
  return stat("/proc/self/ns/net", &namespace) == 0 ? namespace.st_ino : 0;
}

// address returns an address at which other machines reach this one. It may be that of a bridge
// that another program removes, so processes of one machine don't use it.
static struct in_addr address(void) {
  struct in_addr found = {.s_addr = htonl(INADDR_LOOPBACK)};
  struct ifaddrs *all = NULL;
  getifaddrs(&all);
  for (struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
    if (i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET) {
      struct in_addr a = ((struct sockaddr_in *)i->ifa_addr)->sin_addr;
      if ((ntohl(a.s_addr) >> 24) != 127) found = a;
    }
  if (all != NULL) freeifaddrs(all);
  return found;
}

static void no_delay(int socket) {
  int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static PJRT_Error *host(clique *c, const char *key) {
  place here = {.at = {.sin_family = AF_INET}, .network = network()};
  socklen_t size = sizeof here.at;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener, (struct sockaddr *)&here.at, sizeof here.at) != 0 || listen(listener, me.size) != 0) return failed(PJRT_Error_Code_INTERNAL, "%s: can't listen", key);
  getsockname(listener, (struct sockaddr *)&here.at, &size);
  here.at.sin_addr = address();
  PJRT_Error *error = kv_put(key, &here, sizeof here);
  if (error != NULL) return error;
  for (int i = 1; i < me.size; i++) {
    int from = accept(listener, NULL, NULL), rank = 0;
    no_delay(from);
    transfer(from, &rank, sizeof rank, receive_some);
    c->sockets[rank] = from;
  }
  close(listener);
  return NULL;
}

static PJRT_Error *join(clique *c, const char *key) {
  place *host = NULL;
  size_t size = 0;
  PJRT_Error *error = kv_get(key, CLIQUE_LIMIT, (char **)&host, &size);
  if (error != NULL) return error;
  if (host->network == network()) host->at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  c->sockets[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int failure = connect(c->sockets[0], (struct sockaddr *)&host->at, sizeof host->at);
  free(host);
  if (failure) wait_forever();
  no_delay(c->sockets[0]);
  int rank = me.rank;
  transfer(c->sockets[0], &rank, sizeof rank, send_some);
  return NULL;
}

#define ADD(type)                                                               \
  do {                                                                          \
    type *a = into;                                                             \
    const type *b = from;                                                       \
    for (int64_t i = 0; i < count; i++) a[i] += b[i];                           \
  } while (0)

static void add(void *into, const void *from, int64_t count, int dtype) {
  switch (dtype) {
    case GB_FFI_F32: ADD(float); break;
    case GB_FFI_F64: ADD(double); break;
    case GB_FFI_S32: ADD(int32_t); break;
    case GB_FFI_S64: ADD(int64_t); break;
  }
}

static size_t size_of(int dtype) {
  switch (dtype) {
    case GB_FFI_F64:
    case GB_FFI_S64: return 8;
    case GB_FFI_F16:
    case GB_FFI_BF16: return 2;
  }
  return 4;
}

// exchange sends what this process gives to process 0, and receives its result from there.
static void exchange(clique *c, void *in, size_t in_size, void *out, size_t out_size) {
  transfer(c->sockets[0], in, in_size, send_some);
  transfer(c->sockets[0], out, out_size, receive_some);
}

static void gather(clique *c, void *in, void *out, size_t size) {
  if (me.rank != 0) {
    exchange(c, in, size, out, size * me.size);
    return;
  }
  memcpy(out, in, size);
  for (int rank = 1; rank < me.size; rank++) transfer(c->sockets[rank], (char *)out + size * rank, size, receive_some);
  for (int rank = 1; rank < me.size; rank++) transfer(c->sockets[rank], out, size * me.size, send_some);
}

static void scatter(clique *c, void *in, void *out, int64_t count, int dtype) {
  size_t size = (size_t)count * size_of(dtype), whole = size * me.size;
  if (me.rank != 0) {
    exchange(c, in, whole, out, size);
    return;
  }
  char *sum = malloc(whole), *theirs = malloc(whole);
  memcpy(sum, in, whole);
  for (int rank = 1; rank < me.size; rank++) {
    transfer(c->sockets[rank], theirs, whole, receive_some);
    add(sum, theirs, count * me.size, dtype);
  }
  memcpy(out, sum, size);
  for (int rank = 1; rank < me.size; rank++) transfer(c->sockets[rank], sum + size * rank, size, send_some);
  free(theirs);
  free(sum);
}

static void reduce(clique *c, void *data, int64_t count, int dtype) {
  size_t size = (size_t)count * size_of(dtype);
  if (me.rank != 0) {
    exchange(c, data, size, data, size);
    return;
  }
  void *theirs = malloc(size);
  for (int rank = 1; rank < me.size; rank++) {
    transfer(c->sockets[rank], theirs, size, receive_some);
    add(data, theirs, count, dtype);
  }
  free(theirs);
  for (int rank = 1; rank < me.size; rank++) transfer(c->sockets[rank], data, size, send_some);
}

enum { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER };

// collect runs a collective: in an all-gather and a reduce-scatter, `count` is that of one process.
static PJRT_Error *collect(int kind, int64_t number, void *in, void *out, int64_t count, int dtype) {
  pthread_once(&once, make_locks);
  clique *c = &cliques[number];
  PJRT_Error *error = NULL;
  pthread_mutex_lock(&c->lock);
  if (c->sockets == NULL) {
    char key[64];
    snprintf(key, sizeof key, "nccl_clique/%d", (int)number);
    c->sockets = calloc(me.size, sizeof *c->sockets);
    error = me.rank == 0 ? host(c, key) : join(c, key);
  }
  if (error == NULL && kind == ALL_REDUCE) reduce(c, out, count, dtype);
  if (error == NULL && kind == ALL_GATHER) gather(c, in, out, (size_t)count * size_of(dtype));
  if (error == NULL && kind == REDUCE_SCATTER) scatter(c, in, out, count, dtype);
  pthread_mutex_unlock(&c->lock);
  return error;
}

static int64_t count_of(const gb_ffi_buffer *b) {
  int64_t count = 1;
  for (int64_t i = 0; i < b->rank; i++) count *= b->dims[i];
  return count;
}

// handle takes this process's value, and the number of the collective in its program.
static gb_ffi_error *handle(gb_ffi_call_frame *frame, int kind) {
  if (gb_frame_metadata(frame) || frame->stage != GB_FFI_STAGE_EXECUTE) return NULL;
  gb_ffi_buffer *x = frame->args.values[0], *number = frame->args.values[1], *y = frame->rets.values[0];
  int64_t given = count_of(x), got = count_of(y);
  if (kind == ALL_REDUCE || me.size == 1 || me.mocks) memcpy(y->data, x->data, (size_t)(given < got ? given : got) * size_of(x->dtype));
  if (me.size == 1 || me.mocks) return NULL;
  PJRT_Error *error = collect(kind, *(int64_t *)number->data, x->data, y->data, given < got ? given : got, x->dtype);
  if (error == NULL) return NULL;
  drop(error);
  return gb_frame_fail(frame, GB_FFI_INTERNAL, "testplugin: the key-value store failed");
}

static gb_ffi_error *all_reduce(gb_ffi_call_frame *frame) { return handle(frame, ALL_REDUCE); }
static gb_ffi_error *all_gather(gb_ffi_call_frame *frame) { return handle(frame, ALL_GATHER); }
static gb_ffi_error *reduce_scatter(gb_ffi_call_frame *frame) { return handle(frame, REDUCE_SCATTER); }

static PJRT_Error *register_one(gb_pjrt_ffi_extension *ffi, const char *target, void *handler) {
  static const char platform[] = "Host";
  gb_pjrt_register_handler_args args = {.struct_size = sizeof args, .target_name = target, .target_name_size = strlen(target), .handler = handler, .platform_name = platform, .platform_name_size = strlen(platform)};
  return (PJRT_Error *)ffi->register_handler(&args);
}

PJRT_Error *register_collectives(void) {
  PJRT_Extension_Base *e = cpu->extension_start;
  while (e != NULL && e->type != PJRT_Extension_Type_FFI) e = e->next;
  if (e == NULL) return failed(PJRT_Error_Code_UNIMPLEMENTED, "the CPU plugin has no FFI");
  gb_pjrt_ffi_extension *ffi = (gb_pjrt_ffi_extension *)e;
  PJRT_Error *error = register_one(ffi, "testplugin_all_reduce", (void *)all_reduce);
  if (error == NULL) error = register_one(ffi, "testplugin_all_gather", (void *)all_gather);
  return error != NULL ? error : register_one(ffi, "testplugin_reduce_scatter", (void *)reduce_scatter);
}
