"""The living index as other applications meet it: plain-SQL writers, worker processes, and what they leave behind."""
