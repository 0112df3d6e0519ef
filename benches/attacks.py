#!/usr/bin/env python3
"""Attacks one embedded Holdfast as an unknown caller would, and prints the cost of each attack for other callers.

    benches/attacks.py target/release/holdfast                      every attack
    benches/attacks.py target/release/holdfast patterns Slots       some attacks
    benches/attacks.py target/release/holdfast --minutes 60         the attacks that last, in turn, for an hour beside ten bystanders

Each attack starts its own server on a free loopback port, with a JWT key, so that the server distinguishes anonymous
callers and users as in production. A probe requests /healthz every 50 ms during the attack.

An attack of one moment prints the attacker's responses, the probe's longest response time, and the peak of the server's
memory. An attack that lasts also prints what one bystander waited without and beside it, as p50 / p95 / p99: a run of
one word from its POST to its end, unless the attack says otherwise. SECONDS=30 is the time of each such attack.
The program needs Python 3.9 and Linux, and sends nothing to another host.
"""
import os, sys

from hostile import beside, callers, data, documents, pages, runs

MOMENTS = callers.ATTACKS + pages.ATTACKS
LASTING = data.ATTACKS + documents.ATTACKS + runs.ATTACKS


def print_moments(program, attacks):
    print("| attack | what it got | what it cost |\n|---|---|---|")
    for attack in attacks:
        got, cost = attack(program)
        print(f"| {attack.__doc__} | {got} | {cost} |", flush=True)


def print_lasting(program, attacks, seconds, count):
    print("| attack | what it got | a bystander without it | beside it | what it cost |\n|---|---|---|---|---|")
    for attack in attacks:
        got, without, with_it, cost = beside.measure(program, attack(), seconds, count)
        print(f"| {attack.__doc__} | {got} | {without} | {with_it} | {cost} |", flush=True)


if __name__ == "__main__":
    program, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    if wanted[:1] == ["--minutes"]:
        print_lasting(program, LASTING, int(wanted[1]) * 60 // len(LASTING), 10)
        sys.exit()
    moments = [attack for attack in MOMENTS if not wanted or attack.__name__ in wanted]
    lasting = [attack for attack in LASTING if not wanted or attack.__name__ in wanted]
    if moments:
        print_moments(program, moments)
    if lasting:
        print_lasting(program, lasting, int(os.environ.get("SECONDS", 30)), 1)
