-- Whole outputs are compressed; those that are there stay as they are.
drop trigger calls_forgotten;
alter table outputs rename to outputs_before;
create table outputs (
    tenant text not null,
    call text not null,
    body blob not null,
    primary key (tenant, call)
) strict;
insert into outputs select tenant, call, cast(body as blob) from outputs_before;
drop table outputs_before;
create trigger calls_forgotten before delete on calls begin
    delete from outputs where tenant = old.tenant and call = old.id;
    delete from questions where tenant = old.tenant and call = old.id;
    delete from events where tenant = old.tenant and call = old.id;
end;
