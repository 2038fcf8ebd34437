-- Tell so many pairs and clusters more of a generation that went live; whether others may be left.
SELECT nearsim.tell_slice({generation_id}, %(most)s)
