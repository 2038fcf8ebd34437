CREATE TABLE nearsim.band (
    bucket_hash bigint NOT NULL,
    doc_id bigint NOT NULL,
    generation_id integer NOT NULL,
    band_no smallint GENERATED ALWAYS AS ((bucket_hash >> 56) & 255) STORED
) PARTITION BY RANGE (generation_id);

COMMENT ON TABLE nearsim.band IS
    'Bands of heads: documents with the same bucket_hash may be similar; band_no is its top byte';
COMMENT ON COLUMN nearsim.band.bucket_hash IS 'Hash of one band of the sketch; its top byte is the number of the band';
COMMENT ON COLUMN nearsim.band.doc_id IS 'The head to whose sketch the band belongs';
COMMENT ON COLUMN nearsim.band.band_no IS 'The number of the band: the top byte of bucket_hash';
