"""An index that is replaced while others write and search: what they see and wait for, and what it holds then."""
