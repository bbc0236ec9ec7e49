"""Files of the recorded desktop: the user's home, and settings that make every session the same.

In: the home's files from a script, and an empty directory for the rest. Out: the files on disk,
and the environment of the session. Settled here: window places (by program), one font, the Adwaita theme
without animations or blinking cursors, a panel with three launchers and the list of windows (no
clock), a file manager that lists names, sizes and types but no times, and data folders in which
the three programs are the only ones installed.
"""

from __future__ import annotations

import os
from pathlib import Path
from string import Template
from typing import Any

WINDOWS = {
    "Mousepad": (60, 90, 760, 480),
    "Thunar": (900, 90, 780, 480),
    "Galculator": (1300, 620, 330, 360),
}
LAUNCHERS = (
    ("Files", "thunar", "system-file-manager"),
    ("Text Editor", "mousepad", "accessories-text-editor"),
    ("Calculator", "galculator", "accessories-calculator"),
)
DATA = ("glib-2.0", "mime", "icons", "themes", "dbus-1", "gtksourceview-4", "galculator", "Thunar", "xfce4")
DESKTOP_FILES = ("org.xfce.mousepad.desktop", "thunar.desktop", "galculator.desktop")
FIXED_TIME = 1_700_000_000

GTK = """\
[Settings]
gtk-theme-name=Adwaita
gtk-icon-theme-name=Adwaita
gtk-font-name=DejaVu Sans 10
gtk-enable-animations=0
gtk-cursor-blink=0
"""

FONTS = Template("""\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig><dir>/usr/share/fonts/truetype/dejavu</dir><cachedir>$cache</cachedir>
<alias><family>Monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
""")

OPENBOX = Template("""\
<?xml version="1.0" encoding="UTF-8"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
<focus><focusNew>yes</focusNew></focus>
<theme><name>Clearlooks</name><titleLayout>NLIMC</titleLayout><animateIconify>no</animateIconify>
<font place="ActiveWindow"><name>DejaVu Sans</name><size>9</size></font>
<font place="InactiveWindow"><name>DejaVu Sans</name><size>9</size></font></theme>
<desktops><number>1</number><popupTime>0</popupTime></desktops>
<keyboard>
<keybind key="A-F4"><action name="Close"/></keybind>
<keybind key="A-Tab"><action name="NextWindow"><dialog>none</dialog>
<finalactions><action name="Focus"/><action name="Raise"/></finalactions></action></keybind>
</keyboard>
<mouse>
<context name="Client"><mousebind button="Left" action="Press">
<action name="Focus"/><action name="Raise"/></mousebind></context>
<context name="Titlebar"><mousebind button="Left" action="Press">
<action name="Focus"/><action name="Raise"/></mousebind></context>
</mouse>
<applications>$rules</applications>
</openbox_config>
""")

RULE = Template("""
<application class="$name" type="normal"><position force="yes"><x>$x</x><y>$y</y></position>
<size><width>$width</width><height>$height</height></size></application>""")

PANEL = Template("""\
<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
<property name="configver" type="int" value="2"/>
<property name="panels" type="array"><value type="int" value="1"/>
<property name="panel-1" type="empty">
<property name="position" type="string" value="p=6;x=0;y=0"/>
<property name="position-locked" type="bool" value="true"/>
<property name="length" type="uint" value="100"/>
<property name="size" type="uint" value="30"/>
<property name="plugin-ids" type="array">$ids<value type="int" value="9"/></property>
</property></property>
<property name="plugins" type="empty">$launchers
<property name="plugin-9" type="string" value="tasklist">
<property name="grouping" type="uint" value="0"/><property name="sort-order" type="uint" value="0"/>
</property></property>
</channel>
""")

LAUNCHER = Template("""
<property name="plugin-$id" type="string" value="launcher">
<property name="items" type="array"><value type="string" value="$id.desktop"/></property>
<property name="show-label" type="bool" value="true"/><property name="disable-tooltips" type="bool" value="true"/>
</property>""")

THUNAR = """\
<?xml version="1.0" encoding="UTF-8"?>
<channel name="thunar" version="1.0">
<property name="last-view" type="string" value="ThunarDetailsView"/>
<property name="last-details-view-visible-columns" type="string" value="THUNAR_COLUMN_NAME,THUNAR_COLUMN_SIZE,THUNAR_COLUMN_TYPE"/>
<property name="last-side-pane" type="string" value="void"/>
<property name="misc-single-click" type="bool" value="false"/>
<property name="misc-folder-item-count" type="string" value="THUNAR_FOLDER_ITEM_COUNT_ONLY_LOCAL"/>
<property name="misc-thumbnail-mode" type="string" value="THUNAR_THUMBNAIL_MODE_NEVER"/>
</channel>
"""

ASSOCIATIONS = """\
[Default Applications]
text/plain=org.xfce.mousepad.desktop
text/csv=org.xfce.mousepad.desktop
inode/directory=thunar.desktop
"""


def write_files(home: Path, files: dict[str, dict[str, Any]]) -> None:
    """The user's files; a name that ends in `/` is a folder, `read_only: true` takes the write bits away.

    Folders come out with a fixed time like the files, so that nothing depends on the hour.
    """
    for name, file in files.items():
        path = home / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file["text"], encoding="utf-8")
    for name, file in files.items():
        if file.get("read_only"):
            (home / name).chmod(0o555 if name.endswith("/") else 0o444)
    for path in [home, *home.rglob("*")]:
        os.utime(path, (FIXED_TIME, FIXED_TIME))


def write_settings(base: Path) -> None:
    """Configuration, data and runtime folders below `base`."""
    ids = range(1, len(LAUNCHERS) + 1)
    panel = PANEL.substitute(
        ids="".join(f'<value type="int" value="{number}"/>' for number in ids),
        launchers="".join(LAUNCHER.substitute(id=number) for number in ids),
    )
    rules = [
        RULE.substitute(name=name, x=x, y=y, width=width, height=height)
        for name, (x, y, width, height) in WINDOWS.items()
    ]
    channels = "config/xfce4/xfconf/xfce-perchannel-xml"
    texts = {
        "config/gtk-3.0/settings.ini": GTK,
        "config/openbox/rc.xml": OPENBOX.substitute(rules="".join(rules)),
        "config/mimeapps.list": ASSOCIATIONS,
        "config/fonts.conf": FONTS.substitute(cache=base / "cache" / "fonts"),
        f"{channels}/xfce4-panel.xml": panel,
        f"{channels}/thunar.xml": THUNAR,
    }
    for number, (name, command, icon) in zip(ids, LAUNCHERS, strict=True):
        entry = f"[Desktop Entry]\nType=Application\nName={name}\nExec={command}\nIcon={icon}\n"
        texts[f"config/xfce4/panel/launcher-{number}/{number}.desktop"] = entry
    for place, text in texts.items():
        path = base / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for place in ("cache/fonts", "run", "data", "state", "share/applications"):
        (base / place).mkdir(parents=True, exist_ok=True)
    (base / "run").chmod(0o700)
    base.chmod(0o755)
    shared = Path("/usr/share")
    for name in DATA:
        (base / "share" / name).symlink_to(shared / name)
    for name in DESKTOP_FILES:
        (base / "share/applications" / name).symlink_to(shared / "applications" / name)


def environment(home: Path, base: Path) -> dict[str, str]:
    """The whole environment of the session; display and bus are added when they are up."""
    return {
        "HOME": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "USER": home.name,
        "LOGNAME": home.name,
        "TMPDIR": str(base / "run"),
        "XDG_CONFIG_HOME": str(base / "config"),
        "XDG_CACHE_HOME": str(base / "cache"),
        "XDG_DATA_HOME": str(base / "data"),
        "XDG_STATE_HOME": str(base / "state"),
        "XDG_RUNTIME_DIR": str(base / "run"),
        "XDG_DATA_DIRS": str(base / "share"),
        "XDG_CONFIG_DIRS": str(base / "config"),
        "XDG_CURRENT_DESKTOP": "XFCE",
        "FONTCONFIG_FILE": str(base / "config/fonts.conf"),
        "GSETTINGS_BACKEND": "memory",
        "GTK_CSD": "0",
        "GIO_USE_VFS": "local",
    }
