"""Numbers with magnitudes and units, English and Chinese, in one spelling each.

`2,160万元`, `21.6 million yuan` and `21600000元` are `number 21600000 CNY`. Digits are handled as text, never as
numbers: a hostile text may hold one of a million digits. Chinese numerals become digits where they are
surely numbers (`三十六`, `二〇二五`, `四月`), not where they are words (`一些`, `十分`, `千万`). Units are renamed, not
converted: 5 km and 5000 m stay two statements.
"""

from __future__ import annotations

import re
from typing import Final

START: Final = r"[0-9](?<![0-9A-Za-z_][0-9])"
"""A digit that begins a number. The digit stands first because a pattern that begins with a set is searched fast."""

_SPELLINGS: Final = {
    "%": "%,percent,per cent",
    "m": "m,metre,metres,meter,meters,米",
    "km": "km,kilometre,kilometres,kilometer,kilometers,公里,千米",
    "cm": "cm,centimetre,centimetres,centimeter,centimeters,厘米",
    "mm": "mm,millimetre,millimetres,millimeter,millimeters,毫米",
    "m²": "m²,m2,square metres,square meters,平方米",
    "km²": "km²,km2,square kilometres,square kilometers,平方公里,平方千米",
    "ha": "ha,hectare,hectares,公顷",
    "km/h": "km/h,公里/小时,千米/小时",
    "kg": "kg,kilogram,kilograms,公斤,千克",
    "g": "g,gram,grams,克",
    "t": "t,tonne,tonnes,ton,tons,吨",
    "°C": "°C,degrees Celsius,摄氏度",
    "°": "°,degree,degrees,度",
    "year": "year,years,年",
    "month": "month,months,个月",
    "week": "week,weeks,周",
    "day": "day,days,天,日",
    "h": "h,hour,hours,小时",
    "min": "min,minute,minutes,分钟",
    "s": "second,seconds,秒",
    "CNY": "CNY,RMB,yuan,元,人民币",
    "USD": "USD,dollar,dollars,美元",
    "EUR": "EUR,euro,euros,欧元",
    "GBP": "GBP,英镑",
    "JPY": "JPY,yen,日元",
    "person": "person,persons,people,人",
    "kB": "kB,KB",
    "MB": "MB",
    "GB": "GB",
}
_UNITS: Final = {
    spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in spellings.split(",")
}
_SIGNS: Final = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "CNY", "￥": "CNY"}
_MAGNITUDES: Final = {
    "万亿": 12,
    "千万": 7,
    "百万": 6,
    "亿": 8,
    "万": 4,
    "千": 3,
    "百": 2,
    "thousand": 3,
    "million": 6,
    "billion": 9,
    "trillion": 12,
}


def _any_of(words: dict[str, str] | dict[str, int]) -> str:
    """One of the words, the longest that fits; an English one ends as a word."""
    longest = sorted(words, key=len, reverse=True)
    return "|".join(re.escape(word) + ("(?![A-Za-z])" if word[-1].isascii() else "") for word in longest)


NUMBER: Final = re.compile(
    rf"({START}(?:[0-9]{{0,2}}(?:,[0-9]{{3}})+(?![0-9])|[0-9]*))(?:\.([0-9]+))?"
    rf"(?: ?[多余]?({_any_of(_MAGNITUDES)})(?![米克瓦分]))?(?: ?({_any_of(_UNITS)}))?"
)

_WIDE: Final = dict(
    zip("０１２３４５６７８９％．：／－　℃㎡", [*"0123456789%.:/- ", "°C", "m²"], strict=True)
)
_ANY_WIDE: Final = re.compile(f"[{''.join(_WIDE)}]")

_DIGITS: Final = {char: n for n, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_SMALL: Final = {"十": 10, "百": 100, "千": 1000}
_LARGE: Final = {"万": 10**4, "亿": 10**8}
_NUMERAL: Final = re.compile("[零〇一二两三四五六七八九十][零〇一二两三四五六七八九十百千万亿]{0,30}")
_COUNTED: Final = frozenset("年月日号天倍元米吨岁")
"""Behind one of these even a single numeral is a number."""
_YEAR_DIGITS: Final = 4
"""Numerals without a magnitude in between are a number in a year or with a zero (三三两两 is a word)."""
_PERCENT: Final = re.compile(r"百分之([0-9]+(?:\.[0-9]+)?)")


def narrow(text: str) -> str:
    """Full-width digits and signs of numbers in the usual width."""
    return _ANY_WIDE.sub(lambda match: _WIDE[match[0]], text)


def arabic(text: str) -> str:
    """Chinese numerals as digits, where they are surely numbers."""
    text = _NUMERAL.sub(_digits, text)
    return _PERCENT.sub(r"\1%", text) if "百分之" in text else text


def _digits(match: re.Match[str]) -> str:
    text = match[0]
    behind = match.string[match.end() : match.end() + 1]
    if all(char in _DIGITS for char in text):
        if len(text) == 1:
            sure = behind in _COUNTED
        else:
            sure = len(text) >= _YEAR_DIGITS and (behind == "年" or any(char in "零〇" for char in text))
        return "".join(str(_DIGITS[char]) for char in text) if sure else text
    if text == "十" and behind not in _COUNTED:
        return text
    value = _value(text)
    return text if value is None else str(value)


def _value(text: str) -> int | None:
    """Value of a numeral with magnitudes; None where it is none (`三五百`: three to five hundred)."""
    total = section = 0
    digit: int | None = None
    unit = 1
    for char in text:
        if char in _DIGITS:
            if digit:
                return None
            digit = _DIGITS[char]
            unit = 1 if digit == 0 else unit
        elif char in _SMALL:
            unit = _SMALL[char]
            section += (1 if digit is None else digit) * unit
            digit = None
        else:
            unit = _LARGE[char]
            section += digit or 0
            total = (total + section) * unit if unit > total else total + section * unit
            section, digit = 0, None
    # Three thousand five is written with a zero; 三千五 is three thousand five hundred.
    return total + section + (digit or 0) * (unit // 10 if unit > 10 else 1)


def quantity(plain: str, match: re.Match[str]) -> str:
    """`number VALUE [UNIT]` of a match of `NUMBER` in `plain`."""
    whole, fraction, magnitude, unit = match[1], match[2] or "", match[3], _UNITS.get(match[4] or "", "")
    before = plain[max(match.start() - 2, 0) : match.start()]
    sign = ""
    if before[-1:] in {"-", "−"} and not before[:-1].strip(" \n\t|(（:,，"):
        sign = "-"
    if not unit:
        unit = _SIGNS.get(before[-1:], "")
    elif unit == "year" and len(whole) == 4 and not fraction and not magnitude:
        unit = ""  # 2025年 and 2025 name the same year
    shift = _MAGNITUDES[magnitude] if magnitude else 0
    value = _shifted(whole.replace(",", ""), fraction, shift)
    return f"number {sign}{value} {unit}".rstrip()


def _shifted(whole: str, fraction: str, shift: int) -> str:
    """The decimal number with its point moved `shift` places, without zeros that say nothing."""
    whole = (whole + fraction[:shift].ljust(shift, "0")).lstrip("0") or "0"
    fraction = fraction[shift:].rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole
