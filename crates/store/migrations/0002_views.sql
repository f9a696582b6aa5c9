-- Lists by tool look at the workspace in the index itself, without a visit to each row.
drop index calls_of_tool;
create index calls_of_tool on calls (tenant, tool, id, workspace);
-- Most calls succeed, so what did not costs little to keep at hand.
create index calls_unsuccessful on calls (tenant, status, id, workspace) where status <> 'success';
create index calls_unsuccessful_of_tool on calls (tenant, tool, status, id, workspace) where status <> 'success';

-- Whatever belongs to a call goes with it.
create trigger calls_forgotten before delete on calls begin
    delete from outputs where tenant = old.tenant and call = old.id;
    delete from questions where tenant = old.tenant and call = old.id;
    delete from events where tenant = old.tenant and call = old.id;
end;

-- One row for each tool, day since the epoch and bucket of how long the work took (-1 where that was not counted yet),
-- so that numbers cost the same however many calls there were.
alter table counters rename to counters_before;
create table counters (
    tenant text not null,
    workspace text not null,
    day integer not null,
    tool text not null,
    took integer not null,
    calls integer not null,
    success integer not null,
    error integer not null,
    rejected integer not null,
    cancelled integer not null,
    asked integer not null,
    cached integer not null,
    retried integer not null,
    total_ms integer not null,
    primary key (tenant, workspace, day, tool, took)
) strict, without rowid;
insert into counters select tenant, workspace, unixepoch() / 86400, tool, -1, calls, success, error, rejected,
    cancelled, asked, 0, 0, total_ms from counters_before;
drop table counters_before;
