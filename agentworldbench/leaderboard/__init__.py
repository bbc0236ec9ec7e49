"""Leaderboard entries as data: one JSON file each, validated, grouped, never mixed."""
