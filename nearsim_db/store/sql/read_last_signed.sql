-- How far signing has come: it goes in doc_id order, so the largest tells.
SELECT max(doc_id) FROM {signature}
