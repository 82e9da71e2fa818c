// SPDX-License-Identifier: Apache-2.0
/* Look-back: published tiles and the walk over them, back to the nearest carry and forth again.
 * CELL says how value and status are kept together (published.hpp, published.cuh):
 *   RECORD  the value first, then the status; aggregate and carry have a place each
 *   WORD    status and value in one word
 *   QUAD    two words with a status each; a reader takes them when the two agree */
#define RECORD 0
#define WORD 1
#define QUAD 2
#ifndef CELL
#define CELL RECORD
#endif
#define LOCATIONS (3 * SECTIONS)
#define stop_here out

#ifndef AGGREGATE_RELEASE
#define AGGREGATE_RELEASE 1
#endif
#ifndef CARRY_RELEASE
#define CARRY_RELEASE 1
#endif
#ifndef READ_ACQUIRE
#define READ_ACQUIRE 1
#endif
#ifndef BOTH_AGREE
#define BOTH_AGREE 1 /* QUAD; 0: a reader takes what it finds */
#endif
#ifndef AGAIN_WAITS
#define AGAIN_WAITS (CELL == QUAD) /* the walk forth may find one half of a carry, which reads as nothing */
#endif

#ifndef SECTIONS
#define SECTIONS 3
#endif
#include "memory.pml"

#define none 0
#define has_aggregate 1
#define has_carry 2
#define status_at(t) (t)
#define aggregate_at(t) (SECTIONS + (t))
#define carry_at(t) (2 * SECTIONS + (t))
#define packed(state, value) ((state) * 16 + (value))
#define upper_at(t) (SECTIONS + (t)) /* QUAD's other word */

inline publish(t, state, value) {
#if CELL == RECORD
    if
    :: state == has_aggregate -> store(aggregate_at(t), value); store_flag(status_at(t), state, AGGREGATE_RELEASE)
    :: else -> store(carry_at(t), value); store_flag(status_at(t), state, CARRY_RELEASE)
    fi
#elif CELL == WORD
    store_flag(status_at(t), packed(state, value), 0)
#else
    if
    :: store_flag(status_at(t), packed(state, value), 0); store_flag(upper_at(t), packed(state, value), 0)
    :: store_flag(upper_at(t), packed(state, value), 0); store_flag(status_at(t), packed(state, value), 0)
    fi
#endif
}

/* state and value of tile t, once there is something (`blocking`) or as it is. */
inline read(t, blocking) {
#if CELL == RECORD
#if READ_ACQUIRE
    if
    :: !blocking
    :: blocking -> wait(memory[status_at(t)] != none)
    fi;
    state = memory[status_at(t)];
    if
    :: state == has_aggregate -> load(aggregate_at(t), value)
    :: state == has_carry -> load(carry_at(t), value)
    fi
#else
    /* Either value performed early. */
    load(aggregate_at(t), value);
    load(carry_at(t), early);
    if
    :: !blocking
    :: blocking -> wait(memory[status_at(t)] != none)
    fi;
    state = memory[status_at(t)];
    if
    :: state == has_carry -> value = early
    :: else
    fi;
    early = 0
#endif
#elif CELL == WORD
    if
    :: !blocking
    :: blocking -> wait(memory[status_at(t)] != none)
    fi;
    atomic { value = memory[status_at(t)]; state = value / 16; value = value % 16 }
#else
    do
    :: if
       :: value = memory[status_at(t)]; early = memory[upper_at(t)]
       :: early = memory[upper_at(t)]; value = memory[status_at(t)]
       fi;
       atomic {
           state = value / 16;
           if
           :: BOTH_AGREE && state != early / 16 -> state = none
           :: else
           fi;
           /* The two halves of a value belong together. */
           value = (value % 16 == early % 16 || state == none -> value % 16 : wrong);
           early = 0
       }
       if
       :: state != none || !blocking -> break
       :: else -> /* wait for a change: both words agree at last */
          wait(memory[status_at(t)] == memory[upper_at(t)] && memory[status_at(t)] != none || !BOTH_AGREE)
       fi
    od
#endif
}

proctype worker(byte me) {
    byte t, c, state, value, early, at;
    do
    :: take(t);
       if
       :: t == SECTIONS -> break
       :: else
       fi;
       may_throw;
       if
       :: t == 0 -> c = 1
       :: else ->
          publish(t, has_aggregate, t + 1);
          /* Back to the nearest carry. */
          at = t - 1;
          do
          :: read(at, true);
             if
             :: state == has_carry -> break
             :: else -> at--
             fi
          od;
          /* Forth again: the left fold of what was passed, read anew. */
          read(at, AGAIN_WAITS);
          c = value;
          at++;
          do
          :: at == t -> break
          :: else ->
             read(at, AGAIN_WAITS);
             if
             :: state == has_carry -> c = value
             :: else -> c = fold(c, value)
             fi;
             at++
          od
       fi;
       assert(c == t + 1);
       publish(t, has_carry, c + 1);
       c = 0; state = 0; value = 0; at = 0;
       finished++
    od;
out:
    left++
}

init { run_all() }
