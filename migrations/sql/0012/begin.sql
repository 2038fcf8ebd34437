SELECT nearsim.grant_rights();
