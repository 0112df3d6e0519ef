"""The database states of each unfinished run over time, together with the faults: explains why a run resumed late."""

import asyncio
import time

UNFINISHED = """select id, attempt, archived_to, status, coalesce(right(holder, 6), '-'), executing, crashes,
    coalesce(probation::text, '-'), coalesce(round(extract(epoch from lease_until - now()))::text, '-')
    from kb.agent_runs where status not in ('completed', 'failed', 'cancelled')"""


class History:
    def __init__(self, stack):
        self.stack, self.runs, self.faults = stack, {}, []

    def note(self, fault):
        self.faults.append((time.monotonic(), fault))

    async def poll(self):
        """Returns each unfinished run's attempt and last archived event, or None while the database is away."""
        rows = await asyncio.to_thread(self.stack.sql, UNFINISHED)
        if rows is None:
            return None
        now, states = time.monotonic(), {}
        for run_id, attempt, archived_to, *rest in (row.split("|") for row in rows):
            states[run_id] = [attempt, archived_to]
            *state, lease = rest
            entries = self.runs.setdefault(run_id, [])
            if not entries or entries[-1][1] != [attempt, *state]:
                entries.append((now, [attempt, *state], lease))
        return states

    async def watch(self):
        while True:
            await self.poll()
            await asyncio.sleep(1)

    def describe(self, run_id, since):
        """Returns the states of a run and the faults, by the seconds before and after the last fault."""
        lines = [(at, f"fault: {what}") for at, what in self.faults]
        for at, (attempt, status, holder, executing, crashes, probation), lease in self.runs.get(run_id, []):
            lines.append((at, f"{status}: attempt {attempt}, holder {holder}, executing {executing}, crashes {crashes}, "
                              f"probation {probation}, lease {lease} s"))
        return "\n".join([f"run {run_id}"] + [f"{at - since:+8.1f} s  {what}" for at, what in sorted(lines)])

    def write(self, path, since):
        path.write_text("\n\n".join(self.describe(run_id, since) for run_id in self.runs))
