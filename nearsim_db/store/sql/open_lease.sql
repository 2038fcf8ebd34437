-- A worker begins.
INSERT INTO nearsim.lease (worker) VALUES (%(worker)s) RETURNING lease_id
