"""Characters that are hard to fold, to cut or to place: what the properties make texts of."""

from __future__ import annotations

from hypothesis import strategies as st

ASCII = "aAbBzZ019 _-.,+#/()'\"\n\t\x00\x1f"
MARKS = "\u0301\u0323\u0307\u0345\u05b8\u064b\u093f\u0903\u09be\u0e48\u0e4d\u0eb5\u17d2\u1037\u3099\u309a\u302a\u20d0\u0f71"
JOINERS = "\u00ad\u200b\u200c\u200d\u2060\ufeff\ufe0f\U000e0100\u180b"
LATIN = "éÉïİıŁøÆßẞſǅŉﬃﬁⅣ½²①ªK"
WIDE = "ＡｂＺ１＃　ﾞﾟｶﾊｱｰﾡﾢￂￇ"
JAMO = "가각나힣\u1100\u1112\u1161\u1175\u11a8\u11c2\u1160\ua960\ud7b0ㄱㄳㅋㅏㅠㅣㅤ㉠㉮"
SPACELESS = "東京がかはぱアヴー々〇กำนี้ກຳຢ่ູខ្មែြမြန်𠀀𛀁"
OTHER = "λΣςάЙйѝьעِश्रीকோ்𐌰𝐀𝔷😀👩🏽─–’“”…«´¨؀𑂽"
NASTY = ASCII + MARKS + JOINERS + LATIN + WIDE + JAMO + SPACELESS + OTHER
# Of these no character makes several words, so that each word has a place of its own.
PLACED = "".join(c for c in NASTY if c not in "½´¨")

letters = st.text(st.sampled_from(NASTY), max_size=24)
anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=16)
texts = st.one_of(letters, anything, st.lists(st.one_of(letters, anything), max_size=4).map(" ".join))
