"""Runs beside each other: two (`two.py`), several (`several.py`), one and a published number (`reported.py`).

In: run directories, or one and a leaderboard entry. Out: records for tables and for programs. Nothing is asked
and nothing is written. What the three share stands in `sides.py` and `alike.py`.
"""
