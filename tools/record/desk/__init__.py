"""The desktop of the os recorder: session, programs' settings, actions, and the accessibility tree."""
