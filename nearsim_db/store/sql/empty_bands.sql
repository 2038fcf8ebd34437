-- An interrupted load of band rows begins anew.
TRUNCATE {band}
