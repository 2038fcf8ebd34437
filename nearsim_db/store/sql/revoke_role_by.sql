-- A role is a member of one of ours no longer, as far as this grantor made it one.
REVOKE {role} FROM {user} GRANTED BY {grantor}
