-- A role is a member of one of ours no longer.
REVOKE {role} FROM {user}
