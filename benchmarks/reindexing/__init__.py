"""An index that is replaced while others write and search: what they are told, how long they wait, what it holds then."""
