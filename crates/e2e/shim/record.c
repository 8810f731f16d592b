/*
 * Test tool, never shipped: an LD_PRELOAD layer that writes down every change a process makes to the files below one
 * directory, so that a test can afterwards build the directory as a disk may hold it after a power cut at any point.
 *
 *   FAULT_ROOT  the directory (canonical path). Unset: nothing is recorded.
 *   FAULT_LOG   the log, appended to. Several processes may share it, and the test itself appends marks to it.
 *   FAULT_SYNC_MICROS  how long an fsync takes at most; each takes a random part of it.
 *
 * fsync and its kin never reach the real disk: they are only recorded (the replayer is the disk), which also makes runs fast.
 *
 * Each operation and its record are one step under a lock (a mutex within a process, flock between processes), so the
 * log is an order in which the operations really happened. The kernel is called directly: no symbol is looked up, so the
 * layer works from the first instruction on. What it cannot describe it records as "unsupported", and the replayer refuses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind {
    K_CREATE = 1, /* path, inode */
    K_WRITE,      /* inode, offset, data */
    K_RESIZE,     /* inode, offset = new size */
    K_RENAME,     /* path, path2 */
    K_LINK,       /* path, inode */
    K_UNLINK,     /* path */
    K_MKDIR,      /* path, inode */
    K_RMDIR,      /* path */
    K_SYNC_BEGIN, /* inode of a file or directory, offset = which thread: what is there now ... */
    K_SYNC_END,   /* ... is durable now; the same two. Inode 0: everything */
    K_MARK, /* written by the test only */
    K_UNSUPPORTED, /* path = what */
};

struct header {
    uint32_t kind, path, path2, data; /* lengths in bytes of what follows, in this order */
    uint64_t inode, offset;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_length;
static int log_fd = -1;
static unsigned long sync_micros;

static void die(const char *what) {
    dprintf(2, "file layer: %s: %s\n", what, strerror(errno));
    abort();
}

static void start(void) {
    const char *r = getenv("FAULT_ROOT"), *l = getenv("FAULT_LOG"), *m = getenv("FAULT_SYNC_MICROS");
    if (!r || !l)
        return;
    int fd = syscall(SYS_openat, AT_FDCWD, l, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        die("cannot open FAULT_LOG");
    strncpy(root, r, sizeof root - 1);
    root_length = strlen(root);
    sync_micros = m ? strtoul(m, NULL, 10) : 0;
    log_fd = fd;
}

static int active(void) {
    pthread_once(&once, start);
    return log_fd >= 0;
}

static void lock(void) {
    pthread_mutex_lock(&mutex);
    while (syscall(SYS_flock, log_fd, LOCK_EX) != 0)
        if (errno != EINTR)
            die("cannot lock the log");
}

static void unlock(void) {
    int e = errno;
    syscall(SYS_flock, log_fd, LOCK_UN);
    pthread_mutex_unlock(&mutex);
    errno = e;
}

/* One record, in one write, so that a killed process leaves whole records. */
static void record(enum kind kind, const char *path, const char *path2, uint64_t inode, uint64_t offset,
                   const struct iovec *data, int pieces, size_t length) {
    int e = errno;
    struct header h = {kind, path ? strlen(path) : 0, path2 ? strlen(path2) : 0, length, inode, offset};
    size_t total = sizeof h + h.path + h.path2 + length;
    char *all = malloc(total), *at = all;
    if (!all)
        die("no memory");
    at = mempcpy(at, &h, sizeof h);
    at = mempcpy(at, path ? path : "", h.path);
    at = mempcpy(at, path2 ? path2 : "", h.path2);
    for (int i = 0; i < pieces && length; i++) {
        size_t n = data[i].iov_len < length ? data[i].iov_len : length;
        at = mempcpy(at, data[i].iov_base, n);
        length -= n;
    }
    if (syscall(SYS_write, log_fd, all, total) != (long)total)
        die("cannot write the log");
    free(all);
    errno = e;
}

static void note(enum kind kind, const char *path, const char *path2, uint64_t inode, uint64_t offset) {
    record(kind, path, path2, inode, offset, NULL, 0, 0);
}

static int below(const char *path) {
    return strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == 0);
}

static int fd_path(int fd, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, out, PATH_MAX - 1);
    if (n <= 0)
        return 0;
    out[n] = 0;
    return 1;
}

/* Is this descriptor a file or directory below the root? By asking the kernel each time, duplicates need no table. */
static int tracked(int fd, uint64_t *inode) {
    char path[PATH_MAX];
    struct stat s;
    int e = errno, yes = 0;
    if (active() && fd >= 0 && fd_path(fd, path) && below(path) && fstat(fd, &s) == 0 &&
        (S_ISREG(s.st_mode) || S_ISDIR(s.st_mode))) {
        *inode = s.st_ino;
        yes = 1;
    }
    errno = e;
    return yes;
}

/* The canonical path of a name (its parent resolved, itself not), if below the root; and its part after the root. */
static const char *named(int dirfd, const char *path, char *out) {
    char whole[2 * PATH_MAX], parent[PATH_MAX];
    int e = errno;
    const char *found = NULL;
    if (!active() || !path || !*path || strlen(path) >= PATH_MAX)
        return NULL;
    if (path[0] == '/') {
        strcpy(whole, path);
    } else {
        char base[PATH_MAX];
        if (dirfd == AT_FDCWD ? !getcwd(base, sizeof base) : !fd_path(dirfd, base))
            goto done;
        snprintf(whole, sizeof whole, "%s/%s", base, path);
    }
    size_t n = strlen(whole);
    while (n > 1 && whole[n - 1] == '/')
        whole[--n] = 0;
    char *slash = strrchr(whole, '/');
    if (!slash || slash == whole)
        goto done;
    *slash = 0;
    if (!realpath(whole, parent) || strlen(parent) + strlen(slash + 1) + 2 > PATH_MAX)
        goto done;
    sprintf(out, "%s/%s", parent, slash + 1);
    if (below(out) && out[root_length] == '/')
        found = out + root_length + 1;
done:
    errno = e;
    return found;
}

/* ---- opening ---- */

static int do_open(int dirfd, const char *path, int flags, mode_t mode) {
    char full[PATH_MAX];
    int anonymous = (flags & O_TMPFILE) == O_TMPFILE;
    const char *name = flags & (O_CREAT | O_TRUNC) || anonymous ? named(dirfd, path, full) : NULL;
    if (!name)
        return syscall(SYS_openat, dirfd, path, flags, mode);
    lock();
    struct stat before, after;
    int existed = lstat(full, &before) == 0;
    int fd = syscall(SYS_openat, dirfd, path, flags, mode);
    if (fd >= 0 && fstat(fd, &after) == 0) {
        if (anonymous)
            note(K_CREATE, NULL, NULL, after.st_ino, 0);
        else if (!existed)
            note(K_CREATE, name, NULL, after.st_ino, 0);
        else if (flags & O_TRUNC && before.st_size > 0)
            note(K_RESIZE, NULL, NULL, after.st_ino, 0);
    }
    unlock();
    return fd;
}

#define OPEN_MODE                                                                                                      \
    mode_t mode = 0;                                                                                                   \
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {                                                         \
        va_list a;                                                                                                     \
        va_start(a, flags);                                                                                            \
        mode = va_arg(a, mode_t);                                                                                      \
        va_end(a);                                                                                                     \
    }
int open(const char *path, int flags, ...) { OPEN_MODE return do_open(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { OPEN_MODE return do_open(AT_FDCWD, path, flags, mode); }
int openat(int d, const char *path, int flags, ...) { OPEN_MODE return do_open(d, path, flags, mode); }
int openat64(int d, const char *path, int flags, ...) { OPEN_MODE return do_open(d, path, flags, mode); }
int creat(const char *path, mode_t mode) { return do_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

/* ---- data ---- */

ssize_t write(int fd, const void *data, size_t n) {
    uint64_t inode;
    if (!tracked(fd, &inode))
        return syscall(SYS_write, fd, data, n);
    lock();
    ssize_t r = syscall(SYS_write, fd, data, n);
    if (r > 0) {
        struct iovec one = {(void *)data, n};
        record(K_WRITE, NULL, NULL, inode, lseek(fd, 0, SEEK_CUR) - r, &one, 1, r);
    }
    unlock();
    return r;
}

ssize_t writev(int fd, const struct iovec *v, int count) {
    uint64_t inode;
    if (!tracked(fd, &inode))
        return syscall(SYS_writev, fd, v, count);
    lock();
    ssize_t r = syscall(SYS_writev, fd, v, count);
    if (r > 0)
        record(K_WRITE, NULL, NULL, inode, lseek(fd, 0, SEEK_CUR) - r, v, count, r);
    unlock();
    return r;
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t offset) {
    uint64_t inode;
    if (!tracked(fd, &inode))
        return syscall(SYS_pwrite64, fd, data, n, offset);
    lock();
    ssize_t r = syscall(SYS_pwrite64, fd, data, n, offset);
    if (r > 0) {
        struct iovec one = {(void *)data, n};
        record(K_WRITE, NULL, NULL, inode, offset, &one, 1, r);
    }
    unlock();
    return r;
}
ssize_t pwrite(int fd, const void *data, size_t n, off_t offset) { return pwrite64(fd, data, n, offset); }

/* The pieces one by one: a short answer is allowed, and callers go on from there. */
ssize_t pwritev64(int fd, const struct iovec *v, int count, off64_t offset) {
    ssize_t total = 0;
    for (int i = 0; i < count; i++) {
        ssize_t r = pwrite64(fd, v[i].iov_base, v[i].iov_len, offset + total);
        if (r < 0)
            return total ? total : r;
        total += r;
        if ((size_t)r < v[i].iov_len)
            break;
    }
    return total;
}
ssize_t pwritev(int fd, const struct iovec *v, int count, off_t offset) { return pwritev64(fd, v, count, offset); }
ssize_t pwritev64v2(int fd, const struct iovec *v, int count, off64_t offset, int flags) {
    (void)flags;
    return offset == -1 ? writev(fd, v, count) : pwritev64(fd, v, count, offset);
}
ssize_t pwritev2(int fd, const struct iovec *v, int count, off_t offset, int flags) {
    return pwritev64v2(fd, v, count, offset, flags);
}

int ftruncate64(int fd, off64_t size) {
    uint64_t inode;
    if (!tracked(fd, &inode))
        return syscall(SYS_ftruncate, fd, size);
    lock();
    int r = syscall(SYS_ftruncate, fd, size);
    if (r == 0)
        note(K_RESIZE, NULL, NULL, inode, size);
    unlock();
    return r;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int truncate64(const char *path, off64_t size) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int r = ftruncate64(fd, size), e = errno;
    close(fd);
    errno = e;
    return r;
}
int truncate(const char *path, off_t size) { return truncate64(path, size); }

/* Reserved space reads as zeros; only the size can be seen afterwards. */
int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
    uint64_t inode;
    struct stat s;
    if (!tracked(fd, &inode))
        return syscall(SYS_fallocate, fd, mode, offset, length);
    if (mode != 0) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (fstat(fd, &s) != 0)
        return -1;
    return s.st_size >= offset + length ? 0 : ftruncate64(fd, offset + length);
}
int fallocate(int fd, int mode, off_t offset, off_t length) { return fallocate64(fd, mode, offset, length); }
int posix_fallocate64(int fd, off64_t offset, off64_t length) {
    return fallocate64(fd, 0, offset, length) == 0 ? 0 : errno;
}
int posix_fallocate(int fd, off_t offset, off_t length) { return posix_fallocate64(fd, offset, length); }

/* Copies inside the kernel are refused, so that callers fall back to reads and writes. */
ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags) {
    uint64_t inode;
    if (!tracked(out, &inode))
        return syscall(SYS_copy_file_range, in, in_at, out, out_at, n, flags);
    errno = EXDEV;
    return -1;
}
ssize_t sendfile64(int out, int in, off64_t *at, size_t n) {
    uint64_t inode;
    if (!tracked(out, &inode))
        return syscall(SYS_sendfile, out, in, at, n);
    errno = EINVAL;
    return -1;
}
ssize_t sendfile(int out, int in, off_t *at, size_t n) { return sendfile64(out, in, at, n); }
ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags) {
    uint64_t inode;
    if (!tracked(out, &inode))
        return syscall(SYS_splice, in, in_at, out, out_at, n, flags);
    errno = EINVAL;
    return -1;
}

/* SQLite's -shm is rebuilt by the first to open the database: it is no durable state. Any other writable shared mapping
   would change a file unseen. */
void *mmap64(void *address, size_t n, int protection, int flags, int fd, off64_t offset) {
    uint64_t inode;
    char path[PATH_MAX];
    if (fd >= 0 && flags & MAP_SHARED && protection & PROT_WRITE && tracked(fd, &inode) && fd_path(fd, path)) {
        size_t length = strlen(path);
        if (length < 4 || strcmp(path + length - 4, "-shm") != 0) {
            lock();
            note(K_UNSUPPORTED, "writable shared mapping", path, inode, 0);
            unlock();
        }
    }
    return (void *)syscall(SYS_mmap, address, n, protection, flags, fd, offset);
}
void *mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset) {
    return mmap64(address, n, protection, flags, fd, offset);
}

/* ---- names ---- */

int renameat2(int d1, const char *from, int d2, const char *to, unsigned flags) {
    char full1[PATH_MAX], full2[PATH_MAX];
    const char *a = named(d1, from, full1), *b = named(d2, to, full2);
    if (!a && !b)
        return syscall(SYS_renameat2, d1, from, d2, to, flags);
    lock();
    int r = syscall(SYS_renameat2, d1, from, d2, to, flags);
    if (r == 0) {
        if (!a || !b || flags & ~RENAME_NOREPLACE)
            note(K_UNSUPPORTED, "rename across the root, or an exchange", from, 0, 0);
        else
            note(K_RENAME, a, b, 0, 0);
    }
    unlock();
    return r;
}
int renameat(int d1, const char *from, int d2, const char *to) { return renameat2(d1, from, d2, to, 0); }
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int linkat(int d1, const char *from, int d2, const char *to, int flags) {
    char full[PATH_MAX];
    const char *name = named(d2, to, full);
    if (!name)
        return syscall(SYS_linkat, d1, from, d2, to, flags);
    lock();
    struct stat s;
    int r = syscall(SYS_linkat, d1, from, d2, to, flags);
    if (r == 0 && lstat(full, &s) == 0)
        note(K_LINK, name, NULL, s.st_ino, 0);
    unlock();
    return r;
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int symlinkat(const char *target, int d, const char *path) {
    char full[PATH_MAX];
    if (named(d, path, full)) {
        lock();
        note(K_UNSUPPORTED, "symbolic link", path, 0, 0);
        unlock();
    }
    return syscall(SYS_symlinkat, target, d, path);
}
int symlink(const char *target, const char *path) { return symlinkat(target, AT_FDCWD, path); }

int unlinkat(int d, const char *path, int flags) {
    char full[PATH_MAX];
    const char *name = named(d, path, full);
    if (!name)
        return syscall(SYS_unlinkat, d, path, flags);
    lock();
    int r = syscall(SYS_unlinkat, d, path, flags);
    if (r == 0)
        note(flags & AT_REMOVEDIR ? K_RMDIR : K_UNLINK, name, NULL, 0, 0);
    unlock();
    return r;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
    int r = unlink(path);
    return r != 0 && errno == EISDIR ? rmdir(path) : r;
}

int mkdirat(int d, const char *path, mode_t mode) {
    char full[PATH_MAX];
    const char *name = named(d, path, full);
    if (!name)
        return syscall(SYS_mkdirat, d, path, mode);
    lock();
    struct stat s;
    int r = syscall(SYS_mkdirat, d, path, mode);
    if (r == 0 && lstat(full, &s) == 0)
        note(K_MKDIR, name, NULL, s.st_ino, 0);
    unlock();
    return r;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

/* ---- making durable ---- */

/* The lock is not held meanwhile: others write, read what is not durable yet, and may be killed. */
static void make_durable(uint64_t inode) {
    uint64_t thread = syscall(SYS_gettid);
    lock();
    note(K_SYNC_BEGIN, NULL, NULL, inode, thread);
    unlock();
    if (sync_micros) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        usleep((now.tv_nsec ^ thread * 7919) % sync_micros);
    }
    lock();
    note(K_SYNC_END, NULL, NULL, inode, thread);
    unlock();
}

int fsync(int fd) {
    uint64_t inode;
    if (tracked(fd, &inode))
        make_durable(inode);
    return 0;
}
int fdatasync(int fd) { return fsync(fd); }
void sync(void) {
    if (active())
        make_durable(0);
}
int syncfs(int fd) {
    (void)fd;
    sync();
    return 0;
}
int sync_file_range(int fd, off64_t offset, off64_t n, unsigned flags) {
    (void)fd, (void)offset, (void)n, (void)flags; /* promises nothing about a power cut */
    return 0;
}
