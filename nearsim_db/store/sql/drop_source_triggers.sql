-- Nothing of ours stays on a table that was followed.
DROP TRIGGER IF EXISTS {rows} ON {relation};
DROP TRIGGER IF EXISTS {truncate} ON {relation}
