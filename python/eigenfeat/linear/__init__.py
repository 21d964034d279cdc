"""Linear models on expanded rows: multinomial logit and calibrated least squares."""
