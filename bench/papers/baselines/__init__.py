"""Methods with which the papers compare their own; only the papers' tables use them."""
