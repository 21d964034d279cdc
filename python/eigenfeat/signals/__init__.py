"""Epochs of many channels and series: spatial filters, covariances' tangent space, convolutions."""
