-- Whoever makes a generation knows the family's probability of agreement, and writes down what it comes to.
ALTER TABLE nearsim.generation ADD COLUMN expected_recall double precision;
COMMENT ON COLUMN nearsim.generation.expected_recall IS
    'Probability that two documents right at the threshold become candidates; NULL where it was not written down';
