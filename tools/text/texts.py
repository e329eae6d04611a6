"""Texts that the goldens encode: languages, code, white space, marks, special tokens, edges.

Nothing newer than Unicode 14, so that every library involved knows every character.
"""

LANGUAGES = [
    "The quick brown fox jumps over the lazy dog. It's what we've said; they'll agree, I'd say.",
    "Don't SHOUT: IT'S WE'LL THEY'VE i'm 'tis o'clock rock'n'roll ’s don’t",
    "Où est la bibliothèque ? L’été, à Noël, naïve façade — « œuvre »…",
    "Die Straße heißt Königsallee; größer, Fuß, ẞ, Überläufer.",
    "El niño comió piñas. ¿Qué? ¡Sí! São Paulo, coração, irmãos.",
    "İstanbul'da ılık bir gün; IĞDIR, ığdır, şöyle böyle.",
    "Zażółć gęślą jaźń. Příliš žluťoučký kůň. Háború és béke.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Ёлка",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ΟΔΥΣΣΕΥΣ ς",
    "שלום עולם, מה שלומך? שָׁלוֹם",
    "مرحبا بالعالم، كيف حالك؟ ١٢٣٤ السَّلَامُ",
    "नमस्ते दुनिया, आप कैसे हैं? क्षत्रिय १२३",
    "สวัสดีชาวโลก วันนี้อากาศดีมาก ำน้ำ",
    "你好，世界！今天天气很好。《红楼梦》１２３",
    "こんにちは世界。ﾊﾝｶｸ カタカナ ひらがな、漢字〇々",
    "안녕하세요 세계! 한국어 ㄱㄴㄷ \u1112\u1161\u11ab",
    "Xin chào thế giới, tiếng Việt có dấu: ậ ệ ộ ữ",
    "Ẑḁ̋ͯ͝l̷̰̃g̵o T̶e̶x̶t̶ a\u0301\u0316\u0315b q\u0307\u0323 q\u0323\u0307",
]

CODE = [
    "def f(x):\n    if x > 0:\n        return x ** 2  # square\n\treturn None\n\n\n",
    "for (int i = 0; i < n; ++i) { a[i] += b[i] * 0x1F; }\r\n// done\r\n",
    '{"key": [1, 2.5, -3e10, null], "nested": {"a\\n": "\\u00e9"}}',
    '<div class="x">&nbsp;&#169;</div>\n\n    <p>text</p>   \n',
    "SELECT * FROM t WHERE a_b='c''d' AND e<>f;--x",
    "https://example.org/a/b?c=d&e=%20f#g user@host.tld 192.168.0.1",
    "snake_case camelCase PascalCase kebab-case __init__ $var @deco",
    "x=1;y=2;z=x+y // 10 % 3 && !a || ~b ^ c << 2 >> 1 ?: ...",
]

NUMBERS = [
    "1 12 123 1234 12345 123456 1234567 3.14159 1,000,000 -42 1e-9",
    "٣٤٥ १२३४ １２３４５ ⅣⅫ ½¾ ²³¹ ①②③ 〇一二三 ௧௨",
    "2024-02-29T12:34:56Z 10:30am $9.99 50% #1 No.5 A4 B2B 3D h2o",
]

SPACES = [
    "",
    " ",
    "  ",
    "   leading and trailing   ",
    "a  b   c    d",
    "\n",
    "\n\n",
    "a\nb\n\nc\n\n\nd",
    "\t\ttabs\t and \t mix \n\t\n",
    "\r\nwindows\r\n\r\nlines\r",
    " \n \n x \n",
    "nbsp\u00a0here\u2003em\u3000ideographic\u200bzero\u2028line\u0085next\ufeffbom",
    "word" + " " * 33 + "word" + "\n" * 9 + "end" + "\t" * 5,
    " \u0301 combining after space e\u0301 \u0301",
    "\u001c\u001d\u001e\u001f\u000b\u000c",
]

EMOJI = [
    "🙂👍🏽 family 👨‍👩‍👧‍👦 flags 🇩🇪🇯🇵 heart ❤️ keycap 1️⃣",
    "mixed🙂text🎉with emoji🙂🙂🙂",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝒶𝓁𝓅𝒽𝒶 𝟙𝟚𝟛 ∑∫√∞≠≤ αβγ→⇒",
    "ﬁ ﬂ ﬀ Ａｂｃ ℌ Å Å Ω ㎏ ㍿ ﷺ ½",
]

SPECIALS = [
    "<s>hello</s>",
    "<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n",
    "<|endoftext|><|endoftext|> x <|endoftext|>",
    "a<|im_start|b|im_end|>c<|im_start|><|im_end|",
    "text <mask> text<mask>text  <mask>  end",
    "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>",
    '<tool_call>{"a": 1}</tool_call>',
    "<unk> <pad> <0x41> <0xE2><0x82><0xAC> ▁▁ Ġ Ċ </w> ##ing",
    "<start_of_turn>user\nhi<end_of_turn>\n<bos><eos>",
]

EDGES = [
    "a" * 300,
    "ab" * 100 + "!" * 50 + "é" * 40,
    "\x00\x01\x02 \x7f \x80\x9f",
    "\ufffd \ufffe \uffff \ue000 \U0010ffff \U000e0041",
    "supercalifragilisticexpialidocious" * 3,
    "'",
    "''''s's''ll'",
    ".,;:!?-–—…·•*&^%$#@~`|\\/<>[]{}()",
    "?!?! ... --- === ### ```py\n```",
]

TEXTS = LANGUAGES + CODE + NUMBERS + SPACES + EMOJI + SPECIALS + EDGES

# For variants.py, whose tokenizer shows where words end.
SPLIT_TEXTS = [
    "The quick  brown fox's 12345 e-mail,\tÉté №3!\n\nHELLO aaab of x  yz",
    " <s>hello</s> user text <mask> endoft the Straße<|im_start|>user\n  Hi",
    "漢字、かな 한국 Ωмир١٢ ½²① ﬁ 🙂🙂 e\u0301 \u180e\u200c",
    "  a\r\nb_c-d... {AB} \x0b",
]
