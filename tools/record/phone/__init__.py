"""The simulated phone of the android recorder: views, apps, windows, and the three forms a screen is printed in."""
