-- Ids met earlier in the same file: the earlier line is superseded. Relies on the key of met.
SELECT met.external_id, met.line, incoming.line FROM incoming JOIN met USING (external_id) ORDER BY met.line
