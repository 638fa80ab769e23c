"""The words, identifiers and paths that the corpus is made of, with how often each is drawn.

Function words stand at the head, as in any English text; technical words, which identifiers and paths are made of as well, follow;
the long tail is invented of syllables. Every word but the function words comes in inflected forms, so that stemming has something
to do. All three pools are of a fixed size: in a real archive names come again and again, and what grows without end is hexadecimal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

LEMMAS = 45_000
IDENTIFIERS = 20_000
PATHS = 5_000
# Zipf and Mandelbrot: weight of rank r = 1 / (r + SHIFT) ** EXPONENT. The first word is then drawn about 3 times in 100.
EXPONENT = 1.05
SHIFT = 2.7

_FUNCTION = """
the to of and a in is it that for this on with be as not are i you we if from at or by an was have can but will so when which do
there has all one no now what then they only also should out up its our more would been after any how where into than before them
could some because again here does had between these same other about still did over first both each just may were your their most
while against such without why who through those
"""
_TECHNICAL = """
test file error run code value change user time type call name data log line build path check key token config deploy branch commit
request response server client module function class method field table query index search result message session turn agent queue
worker cache store event schema parser format import export version release package install timeout retry limit batch stream buffer
thread lock block page cursor filter merge split sort order count number string list array object node tree graph edge row column
record entry header body status health probe metric trace span label image volume network socket port host proxy route handler
listener hook plugin driver adapter wrapper factory builder reader writer encoder decoder validator scheduler manager http url api
sql json html css auth login secret policy role scope audit report draft review issue patch diff rebase stash tag failure success
warning exception stack frame memory process signal clock timer interval window offset length width margin border button form input
output panel layout theme font color icon invoice payment refund basket price stock customer account
"""
_ACCENTED = """
café Zürich naïve résumé straße crème smørrebrød jalapeño São İzmir Nguyễn phở Łódź coöperate façade über Ångström żółw déjà señal
Größe cœur Þingvellir año Ελλάδα Москва сервер поиск λόγος שלום مرحبا
"""
_SPACELESS = """
検索 設定 東京 記憶 会議 変更 確認 します です の を に エラー テスト サーバー 返金 請求書
搜索 配置 服务器 错误 记忆 测试 修改 文件 请求 数据库 的 了 在 是
검색 설정 오류 서버 기억 회의 변경 확인
ค้นหา ข้อผิดพลาด เซิร์ฟเวอร์ ทดสอบ
"""
_ONSETS = "b c d f g h k l m n p r s t v w br cr dr fl gl gr pl pr sc sl sm sp st str tr ch sh th"
_NUCLEI = "a e i o u a e i o ai ea ee oa ou"
_CODAS = "l m n r s t d k p nd nt rt rk st ck sh m"
_ENDINGS = "er al ate ation ment ness ity ive ure ist ize"

FUNCTION = tuple(_FUNCTION.split())
TECHNICAL = tuple(_TECHNICAL.split())
ACCENTED = tuple(_ACCENTED.split())
SPACELESS = tuple(tuple(line.split()) for line in _SPACELESS.strip().splitlines())
ONSETS = _ONSETS.split()
NUCLEI = _NUCLEI.split()
# Half of the syllables are open, and a third of the words have no ending.
CODAS = [""] * 12 + _CODAS.split()
ENDINGS = [""] * 6 + _ENDINGS.split()
VOWELS = tuple("aeiou")


@dataclass(frozen=True, slots=True)
class Pool:
    """Words, the frequent first, and their weights summed up to each."""

    words: list[str]
    cumulative: list[float]

    def draw(self, random: Random, number: int) -> list[str]:
        """Draws that many words, each by its weight."""
        return random.choices(self.words, cum_weights=self.cumulative, k=number)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What texts are made of."""

    words: Pool
    identifiers: Pool
    paths: Pool


def vocabulary(random: Random) -> Vocabulary:
    """Makes a vocabulary: the same words in the same order for the same generator."""
    words: list[str] = []
    weights: list[float] = []
    for rank, lemma in enumerate(lemmas(random)):
        forms = [lemma] if lemma in FUNCTION else inflected(lemma)
        words += forms
        weights += [weight(rank) * share for share in shares(len(forms))]
    return Vocabulary(
        Pool(words, list(accumulate(weights))),
        zipfian([identifier(random) for _ in range(IDENTIFIERS)]),
        zipfian([path(random) for _ in range(PATHS)]),
    )


def weight(rank: int) -> float:
    """Says how often the word of that rank, from 0, is drawn, beside the others."""
    return float(1 / (rank + 1 + SHIFT) ** EXPONENT)


def zipfian(words: Sequence[str]) -> Pool:
    """Weighs the distinct ones of these words by their place."""
    distinct = list(dict.fromkeys(words))
    return Pool(distinct, list(accumulate(map(weight, range(len(distinct))))))


def lemmas(random: Random) -> Iterator[str]:
    """Gives the lemmas by rank: function words thinning out, technical words among them, then invented ones."""
    technical = list(TECHNICAL)
    random.shuffle(technical)
    seen = {*FUNCTION, *technical}
    yield from FUNCTION[:40]
    for place, word in enumerate(technical):
        yield word
        yield from FUNCTION[40 + place : 41 + place]
    while len(seen) < LEMMAS:
        lemma = invented(random)
        if lemma not in seen:
            seen.add(lemma)
            yield lemma


def invented(random: Random) -> str:
    """Makes up a word of one to three syllables, often with an English ending."""
    syllables = random.choices((1, 2, 3), cum_weights=(35, 85, 100))[0]
    stem = "".join(random.choice(ONSETS) + random.choice(NUCLEI) + random.choice(CODAS) for _ in range(syllables))
    ending = random.choice(ENDINGS)
    return (stem.rstrip("aeiou") if ending.startswith(VOWELS) else stem) + ending


def inflected(lemma: str) -> list[str]:
    """Gives the forms of a lemma, itself first: -s, -ed, -ing as English spells them."""
    if lemma.endswith("e"):
        return [lemma, lemma + "s", lemma + "d", lemma[:-1] + "ing"]
    if lemma.endswith("y") and not lemma[:-1].endswith(VOWELS):
        return [lemma, lemma[:-1] + "ies", lemma[:-1] + "ied", lemma + "ing"]
    if lemma.endswith(("s", "x", "z", "ch", "sh")):
        return [lemma, lemma + "es", lemma + "ed", lemma + "ing"]
    return [lemma, lemma + "s", lemma + "ed", lemma + "ing"]


def shares(forms: int) -> list[float]:
    """Says how often each form of a lemma is used: the lemma itself most of the time."""
    return [1.0] if forms == 1 else [0.6, 0.2, 0.1, 0.1]


def identifier(random: Random) -> str:
    """Makes a camelCase, PascalCase or snake_case name of two to four technical words."""
    parts = random.choices(TECHNICAL, k=random.choice((2, 2, 3, 4)))
    match random.randrange(4):
        case 0 | 1:
            return parts[0] + "".join(part.capitalize() for part in parts[1:])
        case 2:
            return "".join(part.upper() if part in {"http", "url", "api", "sql"} else part.capitalize() for part in parts)
        case _:
            return "_".join(parts)


def path(random: Random) -> str:
    """Makes the path of a source file."""
    folders = "/".join(random.choices(TECHNICAL, k=random.randrange(1, 4)))
    return f"src/{folders}/{random.choice(TECHNICAL)}.{random.choice(('py', 'ts', 'go', 'rs', 'cpp', 'md', 'json'))}"
