-- A call may put several questions, one after the other.
drop trigger calls_forgotten;
alter table questions rename to questions_before;
drop index questions_open;
create table questions (
    tenant text not null,
    call text not null,
    number integer not null,
    workspace text,
    asked_at integer not null,
    expires_at integer not null,
    open integer not null,
    answer text,
    body text not null,
    primary key (tenant, call, number)
) strict;
create index questions_open on questions (tenant, call) where open = true;
insert into questions select tenant, call, 1, workspace, asked_at, expires_at, open, answer, body from questions_before;
drop table questions_before;
create trigger calls_forgotten before delete on calls begin
    delete from outputs where tenant = old.tenant and call = old.id;
    delete from questions where tenant = old.tenant and call = old.id;
    delete from events where tenant = old.tenant and call = old.id;
end;
