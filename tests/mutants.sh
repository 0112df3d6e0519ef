#!/usr/bin/env bash
# Breaks the code on purpose, and checks that the named tests fail. It builds each mutant, so it is too slow for ./check.
#   tests/mutants.sh            all mutants
#   tests/mutants.sh NAME       one mutant
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tree=$(mktemp -d)
trap 'git worktree remove --force "$tree/code" 2>/dev/null || true; rm -rf "$tree"' EXIT
git worktree add --quiet --detach "$tree/code"
export CARGO_TARGET_DIR=${MUTANTS_TARGET:-$PWD/target/mutants}
only=${1:-}
survivors=0

# edit FILE SED-SCRIPT: edits a file; fails if the edit changes nothing.
edit() {
  sed -i -E "$2" "$tree/code/$1"
  git -C "$tree/code" diff --quiet -- "$1" && { echo "the edit of $1 changes nothing: $2" >&2; exit 1; }
  return 0
}

# mutant NAME 'cargo test arguments' edits…: makes the edits; each test that the arguments select must fail.
mutant() {
  local name=$1 arguments=$2
  shift 2
  if [ -n "$only" ] && [ "$only" != "$name" ]; then return; fi
  git -C "$tree/code" checkout --quiet -- .
  while [ $# -gt 0 ]; do edit "$1" "$2"; shift 2; done
  # shellcheck disable=SC2086
  (cd "$tree/code" && cargo test --quiet $arguments --no-run 2>&1 | grep -E '^error' && exit 1) && { echo "$name does not compile" >&2; exit 1; }
  # shellcheck disable=SC2086
  local result
  result=$(cd "$tree/code" && timeout 300 cargo test --quiet $arguments -- 2>&1 | grep -E '^test result' | tail -1 || true)
  case $result in
    *" 0 passed; "[1-9]*) echo "killed:   $name ($result)" ;;
    *) echo "SURVIVED: $name ($result)"; survivors=$((survivors + 1)) ;;
  esac
}

mutant no-fence-anywhere "--test e2e a_stopped_owner_that_wakes_up" \
  shared/src/run_log/append.lua "/a > attempt then return 'fenced'/d" \
  shared/src/storage/run/attempt.rs 's/id = \$1 and attempt = \$2 and/id = $1 and $2 > 0 and/' \
  shared/src/storage/run/flush.rs 's/self.attempt == i64::from\(claim.attempt\) &&/claim.attempt > 0 \&\&/' \
  shared/src/storage/run/completion.rs 's/r.attempt = e.attempt/r.attempt > 0/' \
  shared/src/storage/run/plain_flush.rs 's/h.attempt = f.attempt/h.attempt > 0/' \
  worker/src/lease.rs 's/_ => shared.leases.fence\(\*run_id, \*attempt\),/_ => {}/'
mutant no-fence-in-the-database "-p holdfast-shared --test conformance a_stale_claim_writes_nothing" \
  shared/src/storage/run/flush.rs 's/self.attempt == i64::from\(claim.attempt\) &&/claim.attempt > 0 \&\&/'
mutant no-fence-in-a-group-of-flushes "-p holdfast-shared --test conformance a_fenced_member_of_a_group_archives_nothing" \
  shared/src/storage/run/plain_flush.rs 's/h.attempt = f.attempt/h.attempt > 0/'
mutant no-fence-in-the-log "-p holdfast-shared --test conformance scaled_out::appends_are_stored" \
  shared/src/run_log/append.lua "/a > attempt then return 'fenced'/d"
mutant gaps-in-the-log "-p holdfast-shared --test conformance scaled_out::appends_are_stored" \
  shared/src/run_log/append.lua "/return 'behind'/d"
mutant no-replay-of-the-archive "--test e2e after_a_restart" \
  api/src/relay/log_reader.rs 's/let events = truncate\(following\(archived.events, cursor\)\);/let events: Vec<Event> = Vec::new();/'
mutant clean-end-on-drain "--test e2e breaks_its_streams_off" \
  api/src/relay/frame_stream.rs 's/StreamPhase::Truncating => return Some\(self.truncate\(\).await\),/StreamPhase::Truncating => return None,/'
mutant end-shown-before-it-is-committed "-p holdfast-shared --test conformance a_late_answer_belongs_to_the_version" \
  shared/src/storage/run/finish.rs 's/Commit\(closed\)/RollBack(closed)/'
mutant two-live-runs "-p holdfast-shared --test conformance only_the_first_run" \
  shared/src/storage/run/queued.rs 's/earlier.position < r.position/earlier.position < 0/'
mutant another-line-in-the-archive "-p holdfast-shared --test conformance the_first_event_of_an_attempt" \
  shared/src/storage/run/attempt_start.rs 's/\|\| crashes \|\| cast/|| 0 || cast/'
mutant no-intent "--test e2e a_call_that_may_have_been_made" \
  worker/src/executor/tools.rs 's/= \(ToolCallStatus::Called, tool.effect, input\)/= (ToolCallStatus::Requested, tool.effect, input)/'
mutant intent-not-committed-before-the-call "--test e2e tools_with_effects_wait" \
  worker/src/executor/tools.rs 's/tool.effect != Effect::ReadOnly/false \&\& tool.effect != Effect::ReadOnly/'
mutant unknown-outcomes-are-guessed "--test e2e a_call_that_may_have_been_made" \
  worker/src/executor/call_plan.rs 's/Effect::Once => CallPlan::Ask\(ApprovalKind::UnknownOutcome, state.input.clone\(\)\)/Effect::Once => call(\&state.input)/'
mutant approvals-are-decided-twice "-p holdfast-shared --test conformance only_one_of_two_answers" \
  shared/src/storage/run/answer.rs 's/approval.status != ApprovalStatus::Pending/approval.status == ApprovalStatus::Superseded/'
mutant a-stale-claim-notes-progress "-p holdfast-shared --test conformance a_stale_claim_writes_no_progress" \
  shared/src/storage/run/attempt.rs 's/id = \$1 and attempt = \$2 and status/id = $1 and $2 = $2 and status/' \
  shared/src/storage/run/flush.rs 's/self.attempt == i64::from\(claim.attempt\) &&/claim.attempt > 0 \&\&/'
mutant a-waiting-run-blocks-its-conversation "--test e2e a_new_message_ends_the_wait" \
  shared/src/storage/run/submit.rs 's/run.status == RunStatus::Waiting/run.status == RunStatus::Failed/'

mutant takeovers-are-not-marked "--test e2e a_takeover_is_marked" \
  api/src/wire/mod.rs 's/base < previous/base > previous/'
mutant the-head-does-not-wait "--test e2e a_run_that_fails_before_its_first_output_returns" \
  api/src/relay/subscriber.rs 's/EventBody::RunFailed\(end\) => Some\(end.error\)/EventBody::RunFailed(_) => None/'
mutant chunks-that-are-gone-are-counted "--test e2e a_resumed_answer_leaves_out" \
  api/src/protocols/ai_sdk/routes/follow.rs 's/tail.is_none\(\) && skipped > 0/tail.is_some() \&\& skipped > 0/'

[ "$survivors" = 0 ] || { echo "$survivors mutants survived" >&2; exit 1; }
