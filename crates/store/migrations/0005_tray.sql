-- First entries of calls that are durable and not yet where they are looked for. One that was refused there stays behind.
-- Its place is a part of the call's id: a number needs no index of its own, so that laying an entry writes one page.
create table tray (
    place integer primary key,
    tenant text not null,
    call text not null,
    refused integer not null,
    entry text not null
) strict;
