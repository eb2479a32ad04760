/* Traces the file locks that SQLite takes on one folder's databases, and pauses a checkpoint.

   gcc -shared -fPIC -O1 -o walwatch.so walwatch.c -ldl
   LD_PRELOAD=walwatch.so WALWATCH_FOLDER=/where/the/database/is WALWATCH_TRACE=trace program …

   Each lock is one line: the process, the file (`shm`, the index of the WAL, or `db`), the action
   (`write` or `read` lock taken, `unlock`, `close`, which drops all of a file's locks), the first
   byte, and the number of bytes. A lock is recorded after it was taken and before it is dropped, so
   a process holds every lock that the trace shows. Lines of a process are in the order of its calls.

   WALWATCH_PAUSE=path pauses the process where SQLite unmaps the database, if a file of that name
   exists. A checkpoint of a connection with `PRAGMA mmap_size` unmaps it between reading how many
   frames the WAL has and reading how many of them were copied already (sqlite3WalCheckpoint in
   wal.c), which is where the WAL-reset bug is. Opening the FIFO `path.at` for reading waits for the
   pause, opening `path.go` for writing ends it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *folder, *watched_pause;
static int trace = -1;
static void *database_map;

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("WALWATCH_TRACE");
    folder = getenv("WALWATCH_FOLDER");
    watched_pause = getenv("WALWATCH_PAUSE");
    if (file != NULL && folder != NULL)
        trace = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* `shm` or `db` for a descriptor of one of the folder's databases, NULL for any other. */
static const char *kind_of(int fd) {
    char link[40], path[4096];
    if (folder == NULL || fd < 0) return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return NULL;
    path[length] = 0;
    if (strncmp(path, folder, strlen(folder))) return NULL;
    if (strstr(path, ".db-shm")) return "shm";
    return length > 3 && !strcmp(path + length - 3, ".db") ? "db" : NULL;
}

static void record(const char *kind, const char *what, long long start, long long length) {
    char line[120];
    int size = snprintf(line, sizeof line, "%d %s %s %lld %lld\n", (int)getpid(), kind, what,
                        start, length);
    if (write(trace, line, (size_t)size) != size) abort();
}

static int lock(int (*real)(int, int, ...), int fd, int command, struct flock *wanted) {
    const char *kind = trace < 0 ? NULL : kind_of(fd);
    if (kind != NULL && wanted->l_type == F_UNLCK)
        record(kind, "unlock", wanted->l_start, wanted->l_len);
    int failed = real(fd, command, wanted);
    if (kind != NULL && !failed && wanted->l_type != F_UNLCK)
        record(kind, wanted->l_type == F_WRLCK ? "write" : "read", wanted->l_start, wanted->l_len);
    return failed;
}

#define FCNTL(symbol) \
    int symbol(int fd, int command, ...) { \
        static int (*real)(int, int, ...); \
        if (!real) real = (int (*)(int, int, ...))dlsym(RTLD_NEXT, #symbol); \
        va_list rest; \
        va_start(rest, command); \
        void *argument = va_arg(rest, void *); \
        va_end(rest); \
        if (command == F_SETLK || command == F_SETLKW) return lock(real, fd, command, argument); \
        return real(fd, command, argument); \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

int close(int fd) {
    REAL(int, "close", int);
    const char *kind = trace < 0 ? NULL : kind_of(fd);
    if (kind != NULL) record(kind, "close", 0, 0);
    return real(fd);
}

#define MMAP(symbol) \
    void *symbol(void *at, size_t size, int protection, int flags, int fd, off_t offset) { \
        REAL(void *, #symbol, void *, size_t, int, int, int, off_t); \
        void *map = real(at, size, protection, flags, fd, offset); \
        if (watched_pause != NULL && map != MAP_FAILED && fd >= 0) { \
            const char *kind = kind_of(fd); \
            if (kind != NULL && !strcmp(kind, "db")) database_map = map; \
        } \
        return map; \
    }
MMAP(mmap)
MMAP(mmap64)

/* The open of a FIFO returns when its other end is opened. */
static void meet(const char *end, int flags) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s", watched_pause, end);
    close(open(path, flags));
}

int munmap(void *at, size_t size) {
    REAL(int, "munmap", void *, size_t);
    if (at != NULL && at == database_map) {
        database_map = NULL;
        if (!access(watched_pause, F_OK)) {
            meet(".at", O_WRONLY);
            meet(".go", O_RDONLY);
        }
    }
    return real(at, size);
}
