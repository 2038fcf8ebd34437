"""Replacement of an index under load: what readers and writers see and wait for, and the final contents."""
