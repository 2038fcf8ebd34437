-- What is new gets its owner and its privileges.
SELECT nearsim.grant_rights();
