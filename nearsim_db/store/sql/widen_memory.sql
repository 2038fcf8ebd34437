-- Until the transaction ends sorts and hashes may take 64 MB, or more where the server is set so.
SELECT set_config('work_mem', greatest(pg_size_bytes(current_setting('work_mem')), 64 * 1024 * 1024) / 1024 || 'kB', true)
