/* One table at two nodes: append, cache ahead of the log, repeated commands, projector, archive.
 *
 * Follows dealer/service/tables/live_table.py (states of a table in memory), dealer/eventlog/writer.py
 * (chains, conflicts, unknown outcomes of COMMIT), dealer/projector (cursor) and
 * dealer/service/operations/archiver.py. An event is the id of the command that wrote it; the last command
 * closes the table. Each `atomic` block is one step of one process: a COMMIT, a step of an event
 * loop, a system call that is durable when it returns. A process may crash between any two of them.
 *
 * Each fault can be planted by its name, for example `spin -a -DREPLY_BEFORE_COMMIT table.pml`;
 * test_model.py requires that the model without faults holds and that each fault is found.
 */

#define NODES 2
#ifndef COMMANDS
#define COMMANDS 3
#endif
#define CLOSE COMMANDS     /* the command that closes the table */
#ifndef CRASHES
#define CRASHES 1          /* crashes of nodes, projector and archiver together */
#endif
#define LOST 1             /* COMMITs with an error, whether or not they were written */
#define SENDS 2            /* requests of a command: it is sent again, to the same or another node */

/* The database: survives every crash. */
byte log_size = 0;         /* stream.version */
byte log_row[COMMANDS + 1];
byte rows_from = 1;        /* the archiver deletes the rows below */
bool archived = false;     /* the row of the archived tables */

/* Read models, in the same database. */
byte cursor = 0;
byte model[COMMANDS + 1];

/* The archive folder. */
byte bundle = 0;           /* events in the bundle, 0 without a file */

/* Clients. */
byte sends[COMMANDS + 1];
bool acknowledged[COMMANDS + 1];

/* Environment. */
byte crashes = 0;
byte lost = 0;

/* Memory of a node; `request` has a bit for each command. */
mtype = { UNLOADED, ACTIVE, RELOADING, ARCHIVED };
typedef Node {
    mtype state = UNLOADED;
    byte request = 0;
    byte optimistic = 0;   /* version of the state that commands are decided on */
    byte row[COMMANDS + 1];
    byte committed = 0;
    bool broken = false    /* the chain of appends has lost one */
};
Node node[NODES];
chan appends[NODES] = [COMMANDS] of { byte, byte };   /* to the writer: command, expected version */

/* Planted faults in guards. */
#ifdef RELOAD_WITH_APPENDS_IN_FLIGHT
#define MAY_RELOAD(n) true
#else
#define MAY_RELOAD(n) !IN_FLIGHT(n)
#endif
#ifdef HINT_INSTEAD_OF_LOG
#define MAY_WRITE(expected) (log_size >= expected)
#else
#define MAY_WRITE(expected) (log_size == expected)
#endif
#ifdef REPLY_BEFORE_COMMIT
#define MAY_REPLY(n, at) true
#else
#define MAY_REPLY(n, at) (at <= node[n].committed)
#endif
#ifdef REFUSE_ON_OPTIMISTIC_STATE
#define MAY_REFUSE(n) true
#else
#define MAY_REFUSE(n) !IN_FLIGHT(n)
#endif
#ifdef ARCHIVE_AN_OPEN_TABLE
#define MAY_ARCHIVE (log_size > 0)
#else
#define MAY_ARCHIVE (log_size > 0 && log_row[log_size] == CLOSE)
#endif

#ifdef LIST_BEFORE_BUNDLE
#define MAY_LIST true
#else
#define MAY_LIST (bundle == size)
#endif

#define ASKED(n, c) (node[n].request & (1 << c))
#define IN_FLIGHT(n) (len(appends[n]) > 0)

/* What holds after every step that changes the database or the folder. */
inline check_log() {
    assert(log_size < 2 || log_row[1] != log_row[2]);
    assert(log_size < 2 || log_row[1] != CLOSE);
#if COMMANDS > 2
    assert(log_size < 3 || (log_row[1] != log_row[3] && log_row[2] != log_row[3]));
    assert(log_size < 3 || log_row[2] != CLOSE);
#endif
    assert(!archived || log_row[log_size] == CLOSE)
}

inline check_models() {
    assert(cursor <= log_size);
    for (k : 1 .. COMMANDS) {
        assert(archived || k > cursor || model[k] == log_row[k])
    }
    k = 0
}

/* Subscribers are sent only what the log has, as the log has it. */
inline publish(n, v) {
    assert(v <= log_size && log_row[v] == node[n].row[v])
}

inline position_in_log(c, at) {
    at = 0;
    for (k : 1 .. COMMANDS) {
        if
        :: k <= log_size && log_row[k] == c -> at = k
        :: else
        fi
    }
}

inline load(n) {
    /* A load or reload reads the log, or finds that the table was archived. */
    if
    :: archived -> node[n].state = ARCHIVED; node[n].request = 0
    :: else ->
        for (k : 1 .. COMMANDS) {
            if
            :: k <= log_size -> node[n].row[k] = log_row[k]
            :: else -> node[n].row[k] = 0
            fi
        }
        node[n].optimistic = log_size;
        node[n].committed = log_size;
        node[n].broken = false;
        node[n].state = ACTIVE
    fi;
    k = 0
}

inline crash_node(n) {
    crashes < CRASHES -> crashes++;
    node[n].state = UNLOADED;
    node[n].request = 0;
    node[n].optimistic = 0;
    node[n].committed = 0;
    node[n].broken = false;
    do
    :: appends[n]?_,_
    :: empty(appends[n]) -> break
    od;
    for (k : 1 .. COMMANDS) { node[n].row[k] = 0 }
    k = 0
}

proctype Server(byte n) {
    byte c, k, at, v;
end:
    do
    /* Load on the first request, reload when nothing is in flight. */
    :: atomic { node[n].state == UNLOADED && node[n].request -> load(n) }
    :: atomic {
        node[n].state == RELOADING && MAY_RELOAD(n) -> load(n)
       }
    :: atomic { node[n].state == ARCHIVED && node[n].request -> node[n].request = 0 }

    /* Decide a command on the optimistic state. */
    :: atomic {
        node[n].state == ACTIVE && node[n].request ->
        select(c : 1 .. COMMANDS);
        if
        :: ASKED(n, c) ->
            at = 0;
            for (k : 1 .. COMMANDS) {
                if
                :: k <= node[n].optimistic && node[n].row[k] == c -> at = k
                :: else
                fi
            }
            k = 0;
            if
            :: at ->
                /* A repetition, or one whose event is on its way: the first answer, from the disk. */
                if
                :: MAY_REPLY(n, at) ->
                    node[n].request = node[n].request & ~(1 << c);
                    acknowledged[c] = true;
                    position_in_log(c, at);
                    k = 0;
                    assert(at)
                :: else
                fi
            :: !at && node[n].optimistic && node[n].row[node[n].optimistic] == CLOSE ->
                /* Refused: the table is closed. Confirmed only when that state is on disk. */
                if
                :: MAY_REFUSE(n) ->
                    node[n].request = node[n].request & ~(1 << c);
                    assert(log_row[log_size] == CLOSE)
                :: else
                fi
            :: else ->
                node[n].optimistic++;
                node[n].row[node[n].optimistic] = c;
                appends[n]!c,node[n].optimistic - 1;
#ifdef PUBLISH_BEFORE_COMMIT
                publish(n, node[n].optimistic)
#endif
            fi;
            at = 0
        :: else
        fi;
        c = 0
       }

    /* The writer commits the oldest append in flight. */
    :: atomic {
        appends[n]?c,v ->
        position_in_log(c, at);
        k = 0;
        if
        :: !node[n].broken && MAY_WRITE(v) && !at ->
            if
            :: true ->
                log_size++; log_row[log_size] = c;
                node[n].committed = v + 1;
                publish(n, node[n].committed)
            :: lost < LOST ->
                /* The outcome is unknown: an error, although it may have been written. */
                lost++;
                if
                :: log_size++; log_row[log_size] = c
                :: skip
                fi;
#ifdef UNKNOWN_COUNTS_AS_WRITTEN
                node[n].committed = v + 1;
                publish(n, node[n].committed)
#else
                node[n].broken = true
#endif
            fi
        :: else -> node[n].broken = true
        fi;
        if
        :: node[n].broken ->
#ifdef LATER_APPENDS_STAY
            node[n].broken = false;
#endif
            node[n].state = RELOADING
        :: else
        fi;
        c = 0; v = 0; at = 0;
        check_log()
       }

    /* An internal error leaves the state undefined while appends are in flight. */
    :: atomic { node[n].state == ACTIVE && crashes < CRASHES -> crashes++; node[n].state = RELOADING }

    /* A hint or a poll says that the log is ahead; an idle table leaves memory. */
    :: atomic { node[n].state == ACTIVE && !IN_FLIGHT(n) && log_size > node[n].committed ->
        node[n].state = RELOADING }
    :: atomic { node[n].state == ACTIVE && archived && !IN_FLIGHT(n) -> node[n].state = RELOADING }

    :: atomic { crash_node(n) }
    od
}

proctype Client(byte c) {
    /* A command is sent until it is acknowledged or refused; here at most SENDS times. */
    do
    :: atomic { sends[c] < SENDS && !acknowledged[c] ->
        sends[c]++;
        if
        :: node[0].request = node[0].request | (1 << c)
        :: node[1].request = node[1].request | (1 << c)
        fi }
    :: atomic { sends[c] == SENDS || acknowledged[c] -> break }
    od
}

proctype Projector() {
    byte k;
#ifdef CURSOR_BEFORE_ROWS
    byte next = 0;
#endif
end:
    do
#ifdef CURSOR_BEFORE_ROWS
    :: atomic { !next && cursor < log_size && !archived -> cursor++; next = cursor }
    :: atomic { next -> model[next] = log_row[next]; next = 0; check_models() }
    :: atomic { crashes < CRASHES -> crashes++; next = 0; check_models() }
#else
    /* One transaction writes the rows and the cursor, so a crash leaves nothing half done. */
    :: atomic { cursor < log_size && !archived ->
        cursor++; model[cursor] = log_row[cursor]; check_models() }
#endif
    od
}

proctype Archiver() {
    byte size = 0;
end:
    do
    /* Read a closed table, and write its bundle; an existing file is replaced as a whole. */
    :: atomic { !archived && size == 0 && MAY_ARCHIVE -> size = log_size }
    :: atomic { size && bundle != size && !archived -> bundle = size }
    /* One transaction lists the table as archived. */
    :: atomic { size && !archived && MAY_LIST -> archived = true; check_log() }
    /* Delete the rows and the read models, a slice at a time; a later run continues. */
    :: atomic { archived && rows_from <= log_size ->
        assert(bundle == log_size);
        model[rows_from] = 0; rows_from++ }
    :: atomic { crashes < CRASHES -> crashes++; size = 0 }
    od
}

init {
    atomic {
        run Server(0); run Server(1);
        run Client(1); run Client(CLOSE);
#if COMMANDS > 2
        run Client(2);
#endif
#ifdef KEEPERS
        run Projector(); run Archiver();
#endif
    }
}
