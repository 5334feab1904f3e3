"""Measurements as ratios, side by side in one run: machines are noisy, ratios less so."""
