#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the models of the hand-over (models/README.md) with spin: as written they must hold, and every weakened twin must
# be refuted. Exit 1 on any surprise.
#
#   scripts/check-models.sh [IGNORED]...      CC names the C compiler
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
models="$root/models"
compiler=${CC:-cc}
surprises=0
checked=0
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

command -v spin >/dev/null || { printf 'polyscan: spin is needed (apt-get install spin)\n' >&2 && exit 2; }

# run MODEL FLAG...: prints "holds", "wrong carry" or "deadlock", and the number of states.
run() {
    local model=$1 states=""
    shift
    cd -- "$work"
    rm -f -- pan*
    spin -a "$@" "$models/$model.pml" >spin.log 2>&1 || { cat spin.log >&2 && return 1; }
    "$compiler" -O0 -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=3000 -o pan pan.c
    ./pan -m500000 -w22 >pan.log 2>&1 || true
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
    if grep -q -E 'max search depth too small|out of memory|memory limit|hash-table full' pan.log; then
        printf 'search cut short|%s\n' "$states"
    elif grep -q 'assertion violated (' pan.log; then
        printf 'wrong carry|%s\n' "$states"
    elif grep -q 'invalid end state (' pan.log; then
        printf 'deadlock|%s\n' "$states"
    elif grep -q 'errors: 0' pan.log; then
        printf 'holds|%s\n' "$states"
    else
        cat pan.log >&2
        return 1
    fi
}

# expect RESULT MODEL WHAT FLAG...
expect() {
    local expected=$1 model=$2 what=$3 outcome found states verdict=""
    shift 3
    outcome=$(run "$model" "$@")
    IFS='|' read -r found states <<<"$outcome"
    checked=$((checked + 1))
    if [ "$found" != "$expected" ]; then
        surprises=$((surprises + 1))
        verdict="  <-- SURPRISE"
    fi
    printf '%-14s %-58s %-12s %-12s %8s%s\n' "$model" "$what" "$expected" "$found" "$states" "$verdict"
}

# tickets_needed MODEL: with tickets from a counter any number of workers will do; with the tile index from the launch not.
tickets_needed() {
    local model=$1
    expect holds "$model" "as written, 1 worker, 4 sections" -DSECTIONS=4 -DWORKERS=1
    expect holds "$model" "as written, 2 workers, 4 sections" -DSECTIONS=4
    expect holds "$model" "as written, 3 workers, 3 sections" -DSECTIONS=3 -DWORKERS=3
    expect deadlock "$model" "tile index from the launch, 1 resident of 3" -DSECTIONS=3 -DWORKERS=1 -DLAUNCH_ORDER
    expect deadlock "$model" "tile index from the launch, 2 resident of 4" -DSECTIONS=4 -DWORKERS=2 -DLAUNCH_ORDER
}

# failures_stop_all MODEL: after an exception everybody returns, because everybody who waits looks at the flag.
failures_stop_all() {
    local model=$1
    expect holds "$model" "a worker throws, 2 workers, 4 sections" -DSECTIONS=4 -DTHROWS
    expect holds "$model" "a worker throws, 3 workers, 3 sections" -DSECTIONS=3 -DWORKERS=3 -DTHROWS
    expect deadlock "$model" "a worker throws, waiting workers do not look" -DSECTIONS=4 -DTHROWS -DDEAF
}


# weakened MODEL ORDERING: the one ordering made relaxed.
weakened() {
    local model=$1 ordering=$2
    shift 2
    expect "wrong carry" "$model" "$ordering relaxed" -DSECTIONS=3 "-D$ordering=0" "$@"
}

main() {
    local ordering all_resident=(-DSECTIONS=3 -DWORKERS=3 -DLAUNCH_ORDER)
    printf '%-14s %-58s %-12s %-12s %8s\n' model "what is checked" expected found states

    tickets_needed domino
    failures_stop_all domino
    expect holds domino "tile index from the launch, all 3 resident" "${all_resident[@]}"
    expect holds domino "a ring of one link" -DRING=1
    expect holds domino "4 workers, a ring of one link" -DRING=1 -DWORKERS=4
    for ordering in PASS_ON_RELEASE RECEIVE_ACQUIRE; do
        weakened domino "$ordering"
    done

    tickets_needed look_back
    failures_stop_all look_back
    expect holds look_back "tile index from the launch, all 3 resident" "${all_resident[@]}"
    for ordering in AGGREGATE_RELEASE CARRY_RELEASE READ_ACQUIRE; do
        weakened look_back "$ordering"
    done
    expect holds look_back "status and value in one word, all relaxed, 3 workers" -DCELL=1 -DSECTIONS=3 -DWORKERS=3
    expect holds look_back "status and value in one word, all relaxed, 4 tiles" -DCELL=1 -DSECTIONS=4
    expect holds look_back "two words with a status each, all relaxed, 3 workers" -DCELL=2 -DSECTIONS=3 -DWORKERS=3
    expect "wrong carry" look_back "two words, a reader does not compare the statuses" -DCELL=2 -DSECTIONS=3 -DBOTH_AGREE=0
    expect "wrong carry" look_back "two words, a second look at a tile does not wait" \
        -DCELL=2 -DSECTIONS=3 -DWORKERS=3 -DAGAIN_WAITS=0

    tickets_needed prefix_server
    failures_stop_all prefix_server
    # A worker holds several sections: it may wait for an earlier one while it has a later one still to publish.
    expect deadlock prefix_server "tile index from the launch, all 3 resident" "${all_resident[@]}"
    expect holds prefix_server "one desk for 2 workers" -DDESKS=1 -DSECTIONS=4
    expect holds prefix_server "one section waits, not two" -DWAITING=1 -DSECTIONS=4
    expect deadlock prefix_server "a worker waits for a desk with a section of its own" -DWAITS_FOR_ITSELF -DSECTIONS=4
    for ordering in PUBLISH_ACQUIRE PUBLISH_RELEASE FETCH_ACQUIRE FETCH_RELEASE LOCK_ACQUIRE LOCK_RELEASE SERVE_ACQUIRE \
        SERVE_RELEASE; do
        weakened prefix_server "$ordering"
    done

    tickets_needed server_warp
    # Here, too: a block draws its next tile before it has the carry of the last.
    expect deadlock server_warp "tile index from the launch, all 3 resident" "${all_resident[@]}"
    for ordering in AGGREGATE_RELEASE AGGREGATE_ACQUIRE CARRY_RELEASE CARRY_ACQUIRE; do
        weakened server_warp "$ordering"
    done

    printf '%d models checked, %d surprises, %d s\n' "$checked" "$surprises" "$SECONDS"
    [ "$surprises" -eq 0 ]
}

main
