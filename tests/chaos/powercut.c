/* Records the writes and syncs of a process to the files of one folder, to simulate power cuts.

   gcc -shared -fPIC -O1 -o powercut.so powercut.c -ldl -lpthread
   LD_PRELOAD=powercut.so POWERCUT_FOLDER=/where/the/database/is POWERCUT_TRACE=trace program …

   Each record is a header, a name (for rename and link two, with a zero between them), and the
   bytes written. A lock is held during a call and its record, so records are in the order of the
   calls, and the record of a sync follows those of all writes that it made durable. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, TRUNCATE, SYNC, CREATE, UNLINK, RENAME, LINK };
struct header { uint32_t kind, names; uint64_t inode, offset, length; };

#define FDS 65536
static char ours[FDS];
static const char *folder;
static size_t folder_length;
static int trace = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("POWERCUT_TRACE");
    folder = getenv("POWERCUT_FOLDER");
    if (file == NULL || folder == NULL) return;
    folder_length = strlen(folder);
    REAL(int, "open", const char *, int, ...);
    trace = real(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* The shared-memory index is rebuilt from the log after a cut, so it is not recorded. */
static int is_ours(const char *path) {
    if (trace < 0 || path == NULL || strncmp(path, folder, folder_length)) return 0;
    size_t length = strlen(path);
    if (path[folder_length] != 0 && path[folder_length] != '/') return 0;
    return length < 4 || strcmp(path + length - 4, "-shm");
}

static int is_our_fd(int fd) { return trace >= 0 && fd >= 0 && fd < FDS && ours[fd]; }

static uint64_t inode_of(int fd) {
    struct stat found;
    return fstat(fd, &found) ? 0 : found.st_ino;
}

static void record(uint32_t kind, uint64_t inode, uint64_t offset, const char *names,
                   uint32_t names_length, const void *data, uint64_t length) {
    struct header header = {kind, names_length, inode, offset, length};
    struct iovec parts[3] = {{&header, sizeof header}, {(void *)names, names_length},
                             {(void *)data, data == NULL ? 0 : length}};
    ssize_t whole = (ssize_t)(sizeof header + names_length + parts[2].iov_len);
    if (writev(trace, parts, 3) != whole) abort();
}

static int opened(int fd, const char *path, int existed) {
    if (fd >= 0 && fd < FDS) {
        ours[fd] = (char)is_ours(path);
        if (ours[fd] && !existed)
            record(CREATE, inode_of(fd), 0, path, (uint32_t)strlen(path), NULL, 0);
    }
    return fd;
}

#define OPEN(symbol) \
    int symbol(const char *path, int flags, ...) { \
        REAL(int, #symbol, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        pthread_mutex_lock(&lock); \
        int existed = !(flags & O_CREAT) || !access(path, F_OK); \
        int fd = opened(real(path, flags, mode), path, existed); \
        if (fd >= 0 && is_our_fd(fd) && existed && (flags & O_TRUNC)) \
            record(TRUNCATE, inode_of(fd), 0, NULL, 0, NULL, 0); \
        pthread_mutex_unlock(&lock); \
        return fd; \
    }
OPEN(open)
OPEN(open64)

int close(int fd) {
    REAL(int, "close", int);
    if (fd >= 0 && fd < FDS) ours[fd] = 0;
    return real(fd);
}

ssize_t write(int fd, const void *data, size_t length) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (!is_our_fd(fd)) return real(fd, data, length);
    pthread_mutex_lock(&lock);
    int append = fcntl(fd, F_GETFL) & O_APPEND;
    off_t offset = lseek(fd, 0, append ? SEEK_END : SEEK_CUR);
    ssize_t done = real(fd, data, length);
    if (done > 0) record(WRITE, inode_of(fd), (uint64_t)offset, NULL, 0, data, (uint64_t)done);
    pthread_mutex_unlock(&lock);
    return done;
}

#define PWRITE(symbol) \
    ssize_t symbol(int fd, const void *data, size_t length, off_t offset) { \
        REAL(ssize_t, #symbol, int, const void *, size_t, off_t); \
        if (!is_our_fd(fd)) return real(fd, data, length, offset); \
        pthread_mutex_lock(&lock); \
        ssize_t done = real(fd, data, length, offset); \
        if (done > 0) \
            record(WRITE, inode_of(fd), (uint64_t)offset, NULL, 0, data, (uint64_t)done); \
        pthread_mutex_unlock(&lock); \
        return done; \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define TRUNCATED(symbol) \
    int symbol(int fd, off_t length) { \
        REAL(int, #symbol, int, off_t); \
        if (!is_our_fd(fd)) return real(fd, length); \
        pthread_mutex_lock(&lock); \
        int failed = real(fd, length); \
        if (!failed) record(TRUNCATE, inode_of(fd), 0, NULL, 0, NULL, (uint64_t)length); \
        pthread_mutex_unlock(&lock); \
        return failed; \
    }
TRUNCATED(ftruncate)
TRUNCATED(ftruncate64)

#define SYNCED(symbol) \
    int symbol(int fd) { \
        REAL(int, #symbol, int); \
        if (!is_our_fd(fd)) return real(fd); \
        pthread_mutex_lock(&lock); \
        int failed = real(fd); \
        if (!failed) record(SYNC, inode_of(fd), 0, NULL, 0, NULL, 0); \
        pthread_mutex_unlock(&lock); \
        return failed; \
    }
SYNCED(fsync)
SYNCED(fdatasync)

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    if (!is_ours(path)) return real(path);
    pthread_mutex_lock(&lock);
    int failed = real(path);
    if (!failed) record(UNLINK, 0, 0, path, (uint32_t)strlen(path), NULL, 0);
    pthread_mutex_unlock(&lock);
    return failed;
}

#define TWO_NAMES(symbol, kind) \
    int symbol(const char *old, const char *new) { \
        REAL(int, #symbol, const char *, const char *); \
        if (!is_ours(old)) return real(old, new); \
        pthread_mutex_lock(&lock); \
        int failed = real(old, new); \
        char both[8192]; \
        size_t first = strlen(old) + 1, second = strlen(new); \
        if (!failed && first + second <= sizeof both) { \
            memcpy(both, old, first); \
            memcpy(both + first, new, second); \
            record(kind, 0, 0, both, (uint32_t)(first + second), NULL, 0); \
        } \
        pthread_mutex_unlock(&lock); \
        return failed; \
    }
TWO_NAMES(rename, RENAME)
TWO_NAMES(link, LINK)
