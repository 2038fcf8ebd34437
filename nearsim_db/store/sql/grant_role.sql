-- A role becomes a member of one of ours.
GRANT {role} TO {user}
