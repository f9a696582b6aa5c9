-- Whether the entry still waits to be filed. A row stays when its entry is filed, and the next one is written over it: a page
-- that is neither taken nor given back leaves all others as they are.
alter table tray add column lies integer not null default true;

-- JSON within an entry is no longer a text in it.
update tray set entry = json_set(
    entry,
    '$.opening.input', json(entry ->> '$.opening.input'),
    '$.standing.turn', json(entry ->> '$.standing.turn'),
    '$.standing.outcome', json(entry ->> '$.standing.outcome'),
    '$.events', json((
        select json_group_array(json_set(value, '$.data', json(value ->> '$.data'))) from json_each(entry, '$.events')
    ))
) where json_valid(entry) and not refused;
