-- Until the transaction ends, tables are read by their indexes, or without them.
SELECT set_config('enable_seqscan', CASE WHEN %(by_index)s THEN 'off' ELSE 'on' END, true),
    set_config('enable_indexscan', CASE WHEN %(by_index)s THEN 'on' ELSE 'off' END, true),
    set_config('enable_indexonlyscan', CASE WHEN %(by_index)s THEN 'on' ELSE 'off' END, true),
    set_config('enable_bitmapscan', 'off', true)
