/* The house keys: rotation and retirement, by programs that may end at any system call.
 *
 * Follows dealer/service/operations/key_rotation.py and dealer/eventlog/keys.py. Key 0 is the first. Each
 * `atomic` block is one system call or one COMMIT. test_model.py requires that the model without
 * faults holds and that each planted fault is found.
 *
 * Assumed, as the program does: retirement waits longer than every running server takes to read
 * that a key was retired, and a server's start (keys read, first poll) ends within that time.
 */

#define KEYS 3
#define NODES 2
#ifndef CRASHES
#define CRASHES 2
#endif
#define NONE 7

/* The folder: the key in place, the next one, and earlier ones under their second names. */
byte current = 0;
byte next = NONE;
bool earlier[KEYS];

/* The database. */
byte known = 1;            /* keys whose check values are in the log: 0 .. known - 1 */
bool retired[KEYS];
bool used[KEYS];           /* whether tables opened under it have events in the log */

/* Servers: the key of new tables, and what they have read. */
byte key_of[NODES];
bool runs[NODES];
bool read_retired[NODES];
bool polled[NODES];

byte crashes = 0;
byte made = 1;             /* keys that were made: each is another one */

#define HAS_FILE(k) (current == k || next == k || earlier[k])
#define NEWEST (known - 1)

/* A server can be started at any time, and every table's key is there. */
inline check() {
    assert(current == NEWEST || next == NEWEST);
    for (k : 0 .. KEYS - 1) {
        assert(k >= known || retired[k] || HAS_FILE(k));
        assert(!used[k] || HAS_FILE(k))
    }
    k = 0
}

proctype Server(byte n) {
    byte k;
end:
    do
    :: atomic { !runs[n] -> runs[n] = true; key_of[n] = NEWEST;
        read_retired[n] = retired[NEWEST]; polled[n] = true }
    :: atomic { runs[n] -> read_retired[n] = retired[key_of[n]]; polled[n] = true }
    :: atomic { runs[n] && !read_retired[n] && !used[key_of[n]] ->
        used[key_of[n]] = true; check() }
    :: atomic { runs[n] && crashes < CRASHES -> crashes++; runs[n] = false }
    od
}

/* All tables of an earlier key are closed and archived. */
proctype Archiver() {
    byte k;
end:
    do
    :: atomic { used[0] && known > 1 -> used[0] = false }
    :: atomic { used[1] && known > 2 -> used[1] = false }
    od
}

/* `dealer rotate`, again after each crash, and `--retire`; one at a time. */
proctype Operator() {
    byte k, master, old;
    bool finished;
end:
    do
    :: made < KEYS || next != NONE ->
        /* An interrupted rotation is finished: the log knows a key that is not in place. */
        atomic { finished = (next != NONE && NEWEST != current); old = current }
        if
        :: !finished ->
            /* A file that is there already is used: its key is not in the log yet. */
            atomic {
                if
                :: next == NONE -> next = made; made++
                :: else
                fi;
                master = next; check()
            }
        :: else
        fi;
        if
        :: atomic { crashes < CRASHES -> crashes++; goto restart }
        :: skip
        fi;
#ifndef NO_SECOND_NAME
        atomic { earlier[old] = true; check() }
#endif
        if
        :: atomic { crashes < CRASHES -> crashes++; goto restart }
        :: skip
        fi;
#ifndef REPLACE_BEFORE_LOG
        if
        :: !finished -> atomic { assert(master == known); known++; check() }
        :: else
        fi;
        if
        :: atomic { crashes < CRASHES -> crashes++; goto restart }
        :: skip
        fi;
#endif
        atomic { current = next; next = NONE; check() }
#ifdef REPLACE_BEFORE_LOG
        if
        :: atomic { crashes < CRASHES -> crashes++; goto restart }
        :: skip
        fi;
        if
        :: !finished -> atomic { assert(master == known); known++; check() }
        :: else
        fi;
#endif
restart:
        atomic { finished = false; master = 0; old = 0 }

    /* Retire an earlier key whose tables are all archived. */
    :: atomic { known > 1 && earlier[0] && !used[0] && current != 0 -> old = 0 }
        goto retire
    :: atomic { known > 2 && earlier[1] && !used[1] && current != 1 -> old = 1 }
retire:
#ifndef DELETE_WITHOUT_NOTICE
        atomic { retired[old] = true; polled[0] = false; polled[1] = false; check() }
        if
        :: atomic { crashes < CRASHES -> crashes++; goto restart }
        :: skip
        fi;
#ifndef DELETE_WITHOUT_WAITING
        /* Every running server has read it. */
        (polled[0] || !runs[0]) && (polled[1] || !runs[1]);
        if
        :: atomic { crashes < CRASHES -> crashes++; goto restart }
        :: skip
        fi;
#endif
#endif
#ifdef DELETE_WITHOUT_SECOND_SEARCH
        atomic { earlier[old] = false; check() }
#else
        if
        :: atomic { used[old] -> retired[old] = false; check() }
        :: atomic { !used[old] -> earlier[old] = false; check() }
        fi;
#endif
        old = 0
    od
}

init {
    atomic { run Server(0); run Server(1); run Archiver(); run Operator() }
}
