-- Bodies stand last in a row, so that lists never walk through them.
create table calls (
    tenant text not null,
    id text not null,
    workspace text,
    tool text not null,
    parent text,
    caller text not null,
    source text not null,
    auto_approve text not null,
    state text not null,
    status text,
    code text,
    turn_of text,
    turn_direction text,
    owner text not null,
    stop_wanted integer not null,
    asked integer not null,
    started_at integer not null,
    finished_at integer,
    duration_ms integer,
    turn text,
    input text not null,
    outcome text,
    primary key (tenant, id)
) strict;
create index calls_of_workspace on calls (tenant, workspace, id);
create index calls_of_tool on calls (tenant, tool, id);
create index calls_open on calls (tenant, id) where state <> 'ended';
create index calls_of_parent on calls (tenant, parent, id) where parent is not null;
create index calls_of_turn on calls (tenant, turn_of, id) where turn_of is not null;

create table events (
    seq integer primary key autoincrement,
    tenant text not null,
    call text not null,
    at integer not null,
    kind text not null,
    data text not null,
    foreign key (tenant, call) references calls (tenant, id)
) strict;
create index events_of_call on events (tenant, call, seq);

create table questions (
    tenant text not null,
    call text not null,
    workspace text,
    asked_at integer not null,
    expires_at integer not null,
    open integer not null,
    answer text,
    body text not null,
    primary key (tenant, call)
) strict;
create index questions_open on questions (tenant, call) where open = true;

create table grants (
    tenant text not null,
    id text not null,
    workspace text,
    tool text not null,
    bounds text not null,
    caller text,
    until integer,
    uses_left integer,
    used integer not null,
    created_at integer not null,
    last_used integer,
    revoked integer not null,
    primary key (tenant, id)
) strict;
create index grants_of_tool on grants (tenant, tool, id);

create table outputs (
    tenant text not null,
    call text not null,
    body text not null,
    primary key (tenant, call)
) strict;

-- The workspace is '' for calls without one: a key cannot hold null.
create table counters (
    tenant text not null,
    workspace text not null,
    tool text not null,
    calls integer not null,
    success integer not null,
    error integer not null,
    rejected integer not null,
    cancelled integer not null,
    asked integer not null,
    total_ms integer not null,
    primary key (tenant, workspace, tool)
) strict;
