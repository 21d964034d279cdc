"""Methods that the papers compare theirs with, and that only the papers' tables use."""
