// SPDX-License-Identifier: Apache-2.0
/* Domino: carry_chain. Each worker waits for the carry of its section and passes the next one on. The links form a ring;
 * RING is smaller than in the code, so that links are used again. */
#ifndef RING
#define RING 2
#endif
#define LOCATIONS (2 * RING)
#define ready(s) ((s) % RING)        /* s + 1, 0: nothing yet */
#define carry(s) (RING + (s) % RING)
#define stop_here out

/* The orderings of the code: 1 as written, 0 weakened to relaxed. */
#ifndef PASS_ON_RELEASE
#define PASS_ON_RELEASE 1
#endif
#ifndef RECEIVE_ACQUIRE
#define RECEIVE_ACQUIRE 1
#endif

#include "memory.pml"

proctype worker(byte me) {
    byte s, c;
    do
    :: take(s);
       if
       :: s == SECTIONS -> break
       :: else
       fi;
       may_throw;
       /* receive(s) */
#if RECEIVE_ACQUIRE
       wait(memory[ready(s)] == s + 1);
       load(carry(s), c);
#else
       load(carry(s), c); /* performed early */
       wait(memory[ready(s)] == s + 1);
#endif
       assert(c == s + 1);
       /* pass_on(s + 1) */
       store(carry(s + 1), c + 1);
       store_flag(ready(s + 1), s + 2, PASS_ON_RELEASE);
       c = 0;
       finished++
    od;
out:
    left++
}

init {
    memory[ready(0)] = 1;
    memory[carry(0)] = 1;
    run_all()
}
