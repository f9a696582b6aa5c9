-- Version 1. `{int}`, `{text}`, `{bytes}`, `{table}` and `{small_table}` stand for what the database at hand calls them (db.rs).
-- A small table has few or short rows: SQLite keeps them in their key's own tree, so that a change of a row touches one page.

-- The version of these tables, and the oldest program that may still use them.
create table meta (
    name {text} primary key,
    number {int} not null
) {small_table};

-- One row for each tenant: the number of its last event, a number that changes with every commit, and the number of the
-- newest event that was deleted.
create table heads (
    tenant {text} primary key,
    seq {int} not null,
    version {int} not null,
    forgotten {int} not null
) {small_table};

-- The journal: what one step of a call says. An entry of k events takes k numbers, and seq is the last of them: so whatever
-- comes after an event is found by one comparison, also inside of an entry.
create table entries (
    tenant {text} not null,
    seq {int} not null,
    at {int} not null,
    call {text} not null,
    session {text},
    run {text},
    agent {text},
    space {text},
    kinds {text} not null,
    events {text} not null,
    primary key (tenant, seq)
) {table};
create index entries_of_call on entries (tenant, call, seq);
create index entries_of_session on entries (tenant, session, seq) where session is not null;
create index entries_of_run on entries (tenant, run, seq) where run is not null;
create index entries_of_agent on entries (tenant, agent, seq) where agent is not null;
create index entries_of_space on entries (tenant, space, seq) where space is not null;

-- Calls that have not ended. The owner is the process that carries the call, or '' when whoever answers may carry it on.
create table open_calls (
    tenant {text} not null,
    id {text} not null,
    workspace {text},
    tool {text} not null,
    parent {text},
    caller {text} not null,
    source {text} not null,
    auto_approve {text} not null,
    owner {text} not null,
    state {text} not null,
    stop_wanted {int} not null,
    answered {int} not null,
    asked {int} not null,
    status {text},
    code {text},
    isolation {text},
    turn_of {text},
    turn_direction {text},
    started_at {int} not null,
    finished_at {int},
    duration_ms {int},
    turn {text},
    input {text} not null,
    outcome {text},
    primary key (tenant, id)
) {small_table};
-- Those that wait may be many; those that are under way are few, and come and go with every call.
create index open_calls_waiting on open_calls (tenant, workspace, id) where state = 'waiting';
create index open_calls_under_way on open_calls (tenant, id, owner) where state <> 'waiting';
create index open_calls_answered on open_calls (tenant, id) where answered = 1;
create index open_calls_of_parent on open_calls (tenant, parent, id) where parent is not null;
-- Most calls turn only what they staged themselves, and are found by their own id.
create index open_calls_of_turn on open_calls (tenant, turn_of, id) where turn_of <> id;

-- Calls that have ended, each written once. Bodies stand last in a row, so that lists never walk through them.
create table calls (
    tenant {text} not null,
    id {text} not null,
    workspace {text},
    tool {text} not null,
    parent {text},
    caller {text} not null,
    source {text} not null,
    auto_approve {text} not null,
    owner {text} not null,
    ended_seq {int} not null,
    asked {int} not null,
    status {text},
    code {text},
    isolation {text},
    turn_of {text},
    turn_direction {text},
    started_at {int} not null,
    finished_at {int},
    duration_ms {int},
    turn {text},
    input {text} not null,
    outcome {text},
    primary key (tenant, id)
) {table};
create index calls_of_workspace on calls (tenant, workspace, id);
-- Lists by tool look at the workspace in the index itself, without a visit to each row.
create index calls_of_tool on calls (tenant, tool, id, workspace);
-- Most calls succeed, so what did not costs little to keep at hand.
create index calls_unsuccessful on calls (tenant, status, id, workspace) where status <> 'success';
create index calls_unsuccessful_of_tool on calls (tenant, tool, status, id, workspace) where status <> 'success';
create index calls_of_parent on calls (tenant, parent, id) where parent is not null;
create index calls_of_turn on calls (tenant, turn_of, ended_seq) where turn_of <> id;

-- A call may put several questions, one after the other.
create table questions (
    tenant {text} not null,
    call {text} not null,
    number {int} not null,
    workspace {text},
    asked_at {int} not null,
    expires_at {int} not null,
    open {int} not null,
    answer {text},
    body {text} not null,
    primary key (tenant, call, number)
) {table};
create index questions_open on questions (tenant, call) where open = 1;
create index questions_open_of_workspace on questions (tenant, workspace, call) where open = 1;
create index questions_expiring on questions (expires_at) where open = 1;

create table grants (
    tenant {text} not null,
    id {text} not null,
    workspace {text},
    tool {text} not null,
    bounds {text} not null,
    caller {text},
    until {int},
    uses_left {int},
    used {int} not null,
    created_at {int} not null,
    last_used {int},
    revoked {int} not null,
    primary key (tenant, id)
) {small_table};
create index grants_of_tool on grants (tenant, tool, id);

-- The whole outputs of calls whose envelope holds only head and tail.
create table outputs (
    tenant {text} not null,
    call {text} not null,
    body {bytes} not null,
    primary key (tenant, call)
) {table};

-- One row for each tool, day since the epoch and bucket of how long the work took, so that numbers cost the same however
-- many calls there were. The workspace is '' for calls without one: a key cannot hold null.
create table counters (
    tenant {text} not null,
    workspace {text} not null,
    day {int} not null,
    tool {text} not null,
    bucket {int} not null,
    calls {int} not null,
    success {int} not null,
    error {int} not null,
    rejected {int} not null,
    cancelled {int} not null,
    asked {int} not null,
    cached {int} not null,
    retried {int} not null,
    total_ms {int} not null,
    primary key (tenant, workspace, day, tool, bucket)
) {small_table};

-- Who carries calls and when its lease ends, where no file can be locked; and the last batch that each has committed.
create table nodes (
    id {text} primary key,
    lease_until {int} not null,
    batch {int} not null
) {small_table};
