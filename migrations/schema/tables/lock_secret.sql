-- Every session of the server can see advisory locks. The numbers of the locks depend on this secret, which only the owner can
-- read, so that nobody can infer from a lock which text is being inserted.
CREATE TABLE nearsim_index.lock_secret (
    generation_id integer CONSTRAINT lock_secret_pkey PRIMARY KEY CONSTRAINT lock_secret_generation_fkey
        REFERENCES nearsim.generation ON DELETE CASCADE,
    secret bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
);

COMMENT ON TABLE nearsim_index.lock_secret IS
    'Secret of a generation, from which the numbers of its advisory locks are computed; readers and writers have no right to read it';
COMMENT ON COLUMN nearsim_index.lock_secret.generation_id IS 'The generation';
COMMENT ON COLUMN nearsim_index.lock_secret.secret IS '32 random bytes';
