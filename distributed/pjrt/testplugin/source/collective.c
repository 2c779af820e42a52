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

enum { MAX_CLIQUES = 2048, CLIQUE_LIMIT = 10 * 60 * 1000 };

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

// call is a collective: what this process gives and gets, and what it does.
typedef struct {
  int kind;
  int64_t number;  // Of the collective in its program.
  int reduction, dtype;
  const int64_t *groups;  // The members of a group are one after the other.
  int members;            // Of each group.
  void *in, *out;
  size_t in_size, out_size;
} call;

static size_t size_of(int dtype) {
  switch (dtype) {
    case GB_FFI_F64:
    case GB_FFI_S64: return 8;
    case GB_FFI_F16:
    case GB_FFI_BF16: return 2;
    case GB_FFI_U8: return 1;
  }
  return 4;
}

#define COMBINE(type)                                                                       \
  do {                                                                                      \
    type *a = into;                                                                         \
    const type *b = from;                                                                   \
    for (size_t i = 0; i < size / sizeof *a; i++) {                                         \
      if (reduction == SUM) a[i] += b[i];                                                   \
      if ((reduction == MIN && b[i] < a[i]) || (reduction == MAX && b[i] > a[i])) a[i] = b[i]; \
    }                                                                                       \
  } while (0)

static void combine(void *into, const void *from, size_t size, int dtype, int reduction) {
  switch (dtype) {
    case GB_FFI_F32: COMBINE(float); break;
    case GB_FFI_F64: COMBINE(double); break;
    case GB_FFI_S32: COMBINE(int32_t); break;
    case GB_FFI_S64: COMBINE(int64_t); break;
    case GB_FFI_U8: COMBINE(uint8_t); break;
  }
}

// result computes what the process at a place of a group gets from what all processes give.
static void result(const call *c, char *const *given, const int64_t *group, int place, char *out) {
  size_t part = c->in_size / c->members, at = c->kind == REDUCE_SCATTER ? place * part : 0;
  for (int i = 0; i < c->members; i++) {
    const char *theirs = given[group[i]];
    switch (c->kind) {
      case ALL_GATHER: memcpy(out + i * c->in_size, theirs, c->in_size); break;
      case ALL_TO_ALL: memcpy(out + i * part, theirs + place * part, part); break;
      case BROADCAST:
        if (i == 0) memcpy(out, theirs, c->out_size);
        break;
      default:
        if (i == 0) memcpy(out, theirs + at, c->out_size);
        else combine(out, theirs + at, c->out_size, c->dtype, c->reduction);
    }
  }
}

// serve is process 0's part: it receives what the others give, and sends them what they get.
static void serve(const clique *c, const call *l) {
  char **given = calloc(me.size, sizeof *given), *out = malloc(l->out_size);
  for (int rank = 0; rank < me.size; rank++) {
    given[rank] = malloc(l->in_size);
    if (rank == 0) memcpy(given[rank], l->in, l->in_size);
    else transfer(c->sockets[rank], given[rank], l->in_size, receive_some);
  }
  for (int i = 0; i < me.size; i++) {
    int rank = (int)l->groups[i], place = i % l->members;
    result(l, given, l->groups + i - place, place, rank == 0 ? l->out : out);
    if (rank != 0) transfer(c->sockets[rank], out, l->out_size, send_some);
  }
  for (int rank = 0; rank < me.size; rank++) free(given[rank]);
  free(given);
  free(out);
}

static PJRT_Error *collect(const call *l) {
  pthread_once(&once, make_locks);
  clique *c = &cliques[l->number];
  PJRT_Error *error = NULL;
  pthread_mutex_lock(&c->lock);
  if (c->sockets == NULL) {
    char key[64];
    snprintf(key, sizeof key, "nccl_clique/%d", (int)l->number);
    c->sockets = calloc(me.size, sizeof *c->sockets);
    error = me.rank == 0 ? host(c, key) : join(c, key);
  }
  if (error == NULL && me.rank == 0) serve(c, l);
  if (error == NULL && me.rank != 0) {
    transfer(c->sockets[0], l->in, l->in_size, send_some);
    transfer(c->sockets[0], l->out, l->out_size, receive_some);
  }
  pthread_mutex_unlock(&c->lock);
  return error;
}

static size_t bytes_of(const gb_ffi_buffer *b) {
  size_t bytes = size_of(b->dtype);
  for (int64_t i = 0; i < b->rank; i++) bytes *= (size_t)b->dims[i];
  return bytes;
}

// handle takes this process's value, and a form: the number of the collective in its program, its
// kind, its reduction, the number of members of each group, and the groups.
static gb_ffi_error *handle(gb_ffi_call_frame *frame) {
  if (gb_frame_prepares(frame)) return NULL;
  gb_ffi_buffer *x = frame->args.values[0], *y = frame->rets.values[0];
  const int64_t *form = ((gb_ffi_buffer *)frame->args.values[1])->data;
  call l = {.number = form[0], .kind = (int)form[1], .reduction = (int)form[2], .members = (int)form[3], .groups = form + 4, .dtype = x->dtype,
            .in = x->data, .in_size = bytes_of(x), .out = y->data, .out_size = bytes_of(y)};
  if (me.size == 1 || me.mocks) {
    memcpy(l.out, l.in, l.in_size < l.out_size ? l.in_size : l.out_size);
    return NULL;
  }
  if (l.number >= MAX_CLIQUES) return gb_frame_fail(frame, GB_FFI_INTERNAL, "testplugin: a program with so many collectives needs a larger MAX_CLIQUES");
  PJRT_Error *error = collect(&l);
  if (error == NULL) return NULL;
  drop(error);
  return gb_frame_fail(frame, GB_FFI_INTERNAL, "testplugin: the key-value store failed");
}

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
  return register_one(ffi, "testplugin_collective", (void *)handle);
}
