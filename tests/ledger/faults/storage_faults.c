/* Makes writes and syncs below one folder fail, from the n-th on or once: loaded into a process by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { WRITES = 0, SYNCS = 1 };
static char under[4096];
static int armed, kind, code, sticky;
static long left, met;

void quorate_fault_arm(const char *folder, int which, long nth, int error, int stays) {
    strncpy(under, folder, sizeof under - 1);
    kind = which; left = nth; code = error; sticky = stays; met = 0; armed = 1;
}
long quorate_fault_met(void) { return met; } /* how many calls failed */
void quorate_fault_disarm(void) { armed = 0; }

static int fails(int fd, int which) {
    char link[64], path[4096];
    if (!armed || which != kind) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    size_t length = strlen(under);
    if (strncmp(path, under, length) || (path[length] && path[length] != '/')) return 0;
    if (left-- > 0) return 0;
    met++;
    if (!sticky) armed = 0;
    errno = code;
    return 1;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)
/* A disk that is full takes a part of a long write first. */
#define SHORT(n) if (left == 0 && armed && kind == WRITES && (n) > 512) n = 512

ssize_t write(int fd, const void *b, size_t n) { REAL(write); return fails(fd, WRITES) ? -1 : real(fd, b, n); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { REAL(pwrite); return fails(fd, WRITES) ? -1 : real(fd, b, n, o); }
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o) {
    REAL(pwrite64);
    if (fails(fd, WRITES)) return -1;
    SHORT(n);
    return real(fd, b, n, o);
}
int ftruncate(int fd, off_t n) { REAL(ftruncate); return fails(fd, WRITES) ? -1 : real(fd, n); }
int ftruncate64(int fd, off64_t n) { REAL(ftruncate64); return fails(fd, WRITES) ? -1 : real(fd, n); }
int fsync(int fd) { REAL(fsync); return fails(fd, SYNCS) ? -1 : real(fd); }
/* SQLite syncs the folder of a new log by fdatasync, and ignores an error (unixSync): the ledger syncs it before, by fsync. */
int fdatasync(int fd) {
    REAL(fdatasync);
    struct stat what;
    int folder = !fstat(fd, &what) && S_ISDIR(what.st_mode);
    return !folder && fails(fd, SYNCS) ? -1 : real(fd);
}
