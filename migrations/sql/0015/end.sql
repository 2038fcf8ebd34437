DROP TABLE nearsim.schema_floor;
