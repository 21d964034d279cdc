"""Peers: each task done with other packages, as efficiently as their users could."""
