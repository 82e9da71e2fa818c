// SPDX-License-Identifier: Apache-2.0
/* Memory as C++ and CUDA allow it to behave, for a model checker that knows only sequential consistency.
 *
 * Stores. Each worker has a buffer of stores that others cannot see yet, drained by a process of its own, whenever it
 * likes. Data and flags sit in queues of their own, so that a flag may become visible before data stored earlier. A
 * release is a flag that leaves the buffer only when the data stored before it have left. Flags of one worker stay in
 * order, as do its data; neither helps a reader that finds a new flag beside old data. A store, release or not, may
 * become visible after later loads of the same worker.
 *
 * Loads. A load in program order behind an acquire is performed after it. Without the acquire it may have been
 * performed earlier: the models then perform the two in either order, with other workers' steps in between. The same for
 * a store behind a load that is no acquire, and for a load before a store that is no release.
 *
 * Waiting is a blocking guard, not a loop, so that a wait without end is a deadlock that the checker reports.
 *
 * A model defines LOCATIONS, `stop_here` (the label where a worker goes on when another one failed), and includes this.
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef SECTIONS
#define SECTIONS 4
#endif
#ifndef BUFFERS
#define BUFFERS WORKERS
#endif
#ifndef PENDING
#define PENDING 2 /* stores of a kind that a buffer holds */
#endif

byte memory[LOCATIONS];
chan data_out[BUFFERS] = [PENDING] of { byte, byte };      /* location, value */
chan flag_out[BUFFERS] = [PENDING] of { byte, byte, bit }; /* location, value, release */

#define store(location, value) data_out[me]!location, value
#define store_flag(location, value, release) flag_out[me]!location, value, release
/* A worker sees its own stores: it waits for them to leave its buffer. */
#define load(location, into) atomic { !(data_out[me] ?? [eval(location), _]) -> into = memory[location] }

proctype buffer(byte me) {
    byte location, value;
    bit release;
end:
    do
    :: atomic { data_out[me]?location, value -> memory[location] = value; location = 0; value = 0 }
    :: atomic { empty(data_out[me]) && nempty(flag_out[me]) ->
           flag_out[me]?location, value, release; memory[location] = value; location = 0; value = 0; release = 0 }
    :: atomic { flag_out[me]?[_, _, 0] ->
           flag_out[me]?location, value, release; memory[location] = value; location = 0; value = 0; release = 0 }
    od
}

/* The fold. Section s has the aggregate s + 1, and what lies before it has the carry s + 1 (the init alone is 1); so a
 * fold of anything old, missing, doubled or out of order comes out as `wrong`. */
#define wrong 255
#define fold(carry, aggregate) ((carry) == (aggregate) -> (aggregate) + 1 : wrong)

/* ---- which section a worker takes --------------------------------------------------------------------------------- */
#ifdef LAUNCH_ORDER
/* From the launch: the hardware starts the blocks in any order, WORKERS of them are resident at a time. */
bool started[4];
inline take(s) {
    atomic {
        if
        :: SECTIONS > 0 && !started[0] -> s = 0; started[0] = true
        :: SECTIONS > 1 && !started[1] -> s = 1; started[1] = true
        :: SECTIONS > 2 && !started[2] -> s = 2; started[2] = true
        :: SECTIONS > 3 && !started[3] -> s = 3; started[3] = true
        :: else -> s = SECTIONS
        fi
    }
}
#else
/* From a counter. */
byte tickets;
inline take(s) {
    atomic {
        s = tickets;
        if
        :: tickets < SECTIONS -> tickets++
        :: else
        fi
    }
}
#endif

/* ---- failures ----------------------------------------------------------------------------------------------------- */
bool stopped; /* some worker threw */
byte left;     /* workers that have returned */
byte finished; /* sections whose owner had the right carry */
#ifdef DEAF
#define others_stopped false
#else
#define others_stopped stopped
#endif
#ifdef THROWS
/* One of the workers throws, at any of its calls of the operator, or none does. */
#define may_throw if :: true :: atomic { !stopped -> stopped = true } -> goto stop_here fi
#else
#define may_throw skip
#endif
#define wait(condition) if :: (condition) :: others_stopped -> goto stop_here fi

inline run_all() {
    byte i;
    atomic {
        for (i : 0 .. BUFFERS - 1) { run buffer(i) }
        for (i : 0 .. WORKERS - 1) { run worker(i) }
        i = 0
    }
    /* A worker that never returns leaves this process blocked: the checker's "invalid end state". */
    left == WORKERS;
    assert(stopped || finished == SECTIONS)
}
