-- From here on the bytes of checkpoints, events and audit entries may lack what the columns beside them say: the
-- fields that a line begins with, its hash, an outcome that is the usual one. Rows that are there stay as they
-- are: each tells by its bytes whether it is whole. A program that does not know of this must not read them.

-- The beginnings of UUIDs tell nearly all of them apart; an index of whole ones is twice as large.
drop index checkpoints_uuid;
create index checkpoints_uuid on checkpoints (substr(uuid, 1, 8));
