-- First entries of calls that are durable and not yet where they are looked for. One that was refused there stays behind.
create table tray (
    tenant text not null,
    call text not null,
    refused integer not null,
    entry text not null,
    primary key (tenant, call)
) strict;
