-- What was dropped and made anew, and what is new, gets its owner and its privileges.
SELECT nearsim.grant_rights();
